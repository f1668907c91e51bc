#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/check_list.hpp"
#include "doctor/subnets.hpp"
#include "machines/faults.hpp"
#include "made_facts.hpp"

namespace gdrbench::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* head =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

std::vector<Finding> findings_on(const std::string& machine) {
  for (const machines::Known& one : machines::known_machines())
    if (one.name == machine) return arp_check.run(arp_check, *MadeFacts(one.make()));
  throw std::logic_error("no machine " + machine);
}

TEST(AttachedSubnets, are_those_of_routes_without_a_gateway) {
  const auto attached = attached_subnets(std::string(head) +
                                         "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
                                         "eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"
                                         "eth0\t0700000A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n"
                                         "eth1\t000010AC\t00000000\t0001\t0\t0\t0\t0000F0FF\t0\t0\t0\n"
                                         "*\t0000A8C0\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0");
  ASSERT_THAT(attached, SizeIs(2));
  EXPECT_EQ(attached[0].netdev, "eth0");
  EXPECT_EQ(to_string(attached[0].subnet), "10.0.0.0/24");
  EXPECT_EQ(attached[1].netdev, "eth1");
  EXPECT_EQ(to_string(attached[1].subnet), "172.16.0.0/12");
}

TEST(AttachedSubnets, are_none_of_what_is_no_table_of_routes) {
  for (const char* odd : {"", "\n\n", "eth0", "eth0\tx\ty\tz", "eth0 0A 0 1 0 0 0",
                          "eth0 0000000A 0 1 0 0 0 FF00FF00", "eth0 FFFFFFFFFF 0 1 0 0 0 00FFFFFF"})
    EXPECT_THAT(attached_subnets(odd), SizeIs(0)) << odd;
}

TEST(AttachedSubnets, are_the_same_when_written_and_read_again) {
  const std::string written =
      route_table({{"eth0.100", {0x0a000100, 0xffffff00}}, {"ib0", {0xc0a80000, 0xffff0000}}});
  const auto attached = attached_subnets(written);
  ASSERT_THAT(attached, SizeIs(2));
  EXPECT_EQ(attached[0].netdev, "eth0.100");
  EXPECT_EQ(to_string(attached[0].subnet), "10.0.1.0/24");
  EXPECT_EQ(to_string(attached[1].subnet), "192.168.0.0/16");
  EXPECT_EQ(route_table(attached), written);
}

TEST(Arp, names_ports_subnet_files_and_values) {
  const std::vector<Finding> findings = findings_on("dgx_with_arp_flux");
  ASSERT_THAT(findings, SizeIs(1));
  const Finding& flux = findings.front();
  EXPECT_EQ(flux.subject, "eth0, eth1");
  EXPECT_THAT(flux.text, AllOf(HasSubstr("10.0.0.0/24"), Not(HasSubstr("<subnet>"))));
  ASSERT_THAT(flux.evidence, SizeIs(4));
  EXPECT_EQ(flux.evidence[0].source, "/proc/net/route");
  EXPECT_EQ(flux.evidence[0].value, "10.0.0.0/24 by eth0, eth1");
  EXPECT_EQ(flux.evidence[1].source, "/proc/sys/net/ipv4/conf/{all,eth0,eth1}/arp_ignore");
  EXPECT_EQ(flux.evidence[1].value, "0, 0, 0");
  EXPECT_THAT(flux.fix,
              AllOf(HasSubstr("arp_ignore=1"), HasSubstr("arp_announce=2"), HasSubstr("rp_filter=2")));
}

TEST(Arp, says_nothing_of_a_machine_with_one_port) {
  EXPECT_THAT(findings_on("virtual_machine"), SizeIs(0));
}

}  // namespace
}  // namespace gdrbench::doctor
