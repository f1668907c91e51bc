#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/check.hpp"
#include "doctor/facts/kernel.hpp"
#include "doctor/facts/rdma_ports.hpp"
#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

using synthetic::machine_named;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* route_head =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

TEST(AttachedSubnets, are_those_of_routes_without_a_gateway) {
  const auto attached = attached_subnets(std::string(route_head) +
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
  const std::vector<Finding> findings = findings_of("arp", machine_named("dgx_with_arp_flux"));
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
  EXPECT_THAT(findings_of("arp", machine_named("virtual_machine")), SizeIs(0));
}

TEST(PortCounters, AreReadOfEveryPortAndWithoutSettings) {
  synthetic::Machine machine = synthetic::dgx();
  const std::string port = machine.tree.target("sys/class/infiniband/mlx5_0") + "/ports/1";
  machine.tree.file(port + "/hw_counters/out_of_sequence", "18446744073709551615");  // does not fit: left out
  machine.tree.file(port + "/hw_counters/packet_seq_err", "7");
  machine.tree.file(port + "/hw_counters/odd", "many");
  const SyntheticFacts facts(machine);
  const Counters counters = read_counters(facts->root);
  EXPECT_EQ(counters.at("mlx5_0/1/packet_seq_err"), 7u);
  EXPECT_EQ(counters.at("mlx5_1/1/port_xmit_discards"), 0u);
  EXPECT_FALSE(counters.contains("mlx5_0/1/lifespan"));
  EXPECT_FALSE(counters.contains("mlx5_0/1/odd"));
  EXPECT_FALSE(counters.contains("mlx5_0/1/out_of_sequence"));
}

TEST(PortCounters, AreNoneWithoutDevices) {
  EXPECT_TRUE(read_counters(topology::Root("/nonexistent")).empty());
}

TEST(PortCounters, SurviveARecording) {
  Answers answers;
  answers.counters_before = {{"mlx5_0/1/out_of_sequence", 3}};
  answers.counters_after = {{"mlx5_0/1/out_of_sequence", std::uint64_t{1} << 63}};
  nlohmann::json document = to_json(answers);
  const Answers back = answers_from_json(document);
  EXPECT_EQ(back.counters_before, answers.counters_before);
  EXPECT_EQ(back.counters_after, answers.counters_after);

  document["counters_after"] = {{"a", "no number"}, {"b", -1}, {"c", 5}};
  EXPECT_EQ(answers_from_json(document).counters_after, (Counters{{"c", 5}}));
  document["counters_after"] = 7;
  EXPECT_TRUE(answers_from_json(document).counters_after.empty());
}

TEST(PathMtuOfNetdev, LeavesRoomForHeaders) {
  EXPECT_EQ(path_mtu(1500, hardware_overhead_bytes), 1024);
  EXPECT_EQ(path_mtu(4200, hardware_overhead_bytes), 4096);
  EXPECT_EQ(path_mtu(4191, hardware_overhead_bytes), 2048);
  EXPECT_EQ(path_mtu(9000, hardware_overhead_bytes), 4096);
  EXPECT_EQ(path_mtu(4176, rxe_overhead_bytes), 4096);
  EXPECT_EQ(path_mtu(4175, rxe_overhead_bytes), 2048);
  EXPECT_EQ(path_mtu(336, rxe_overhead_bytes), 256);
  EXPECT_EQ(path_mtu(335, rxe_overhead_bytes), 0);
  EXPECT_EQ(path_mtu(-1, rxe_overhead_bytes), 0);
  EXPECT_EQ(path_mtu(INT64_MAX, rxe_overhead_bytes), 4096);
}

struct Slot {
  const char *gid, *type;
};

// Index that is chosen of a table read from sysfs, whose slot 9 cannot be read, and slot 10 is zeros.
std::optional<int> chosen_of(const std::vector<Slot>& slots) {
  synthetic::Machine machine = synthetic::dgx();
  const std::string port = machine.tree.target("sys/class/infiniband/mlx5_0") + "/ports/1";
  for (const char* table : {"/gids", "/gid_attrs"}) machine.tree.remove(port + table);
  int index = 0;
  for (const Slot& slot : slots) machine.add_gid("mlx5_0", index++, slot.gid, slot.type, "eth0");
  machine.tree.folder(port + "/gids/9");
  machine.add_gid("mlx5_0", 10, "0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2", "eth0");
  const SyntheticFacts facts(machine);
  const auto gid = chosen_gid(gid_table(facts->root, rdma_ports(facts->root).front()));
  if (!gid) return std::nullopt;
  return gid->entry.index;
}

TEST(GidTable, OfSysfsGivesTheKnownChoices) {
  const char* const local = "fe80:0000:0000:0000:0000:0000:0000:0005";
  const char* const ipv4 = "0000:0000:0000:0000:0000:ffff:0a00:0005";
  EXPECT_EQ(chosen_of({{local, "IB/RoCE v1"}, {local, "RoCE v2"}, {ipv4, "IB/RoCE v1"}, {ipv4, "RoCE v2"}}),
            3);
  EXPECT_EQ(chosen_of({{local, "RoCE v2"}, {ipv4, "RoCE v2"}}), 1);
  EXPECT_EQ(chosen_of({{local, "RoCE v2"}, {"fd93:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"}}), 1);
  EXPECT_EQ(chosen_of({}), std::nullopt);
}

TEST(GidTable, QuotesNoNetdevThatCouldNotBeOne) {
  synthetic::Machine machine = synthetic::dgx();
  const std::string table = machine.tree.target("sys/class/infiniband/mlx5_0") + "/ports/1/gid_attrs/ndevs/3";
  for (const char* odd : {"eth0; reboot", "../../etc", "a-name-of-16-char", "\x1b[31m"}) {
    machine.tree.file(table, odd);
    const SyntheticFacts facts(machine);
    EXPECT_EQ(gid_table(facts->root, rdma_ports(facts->root).front()).back().netdev, "") << odd;
  }
}

TEST(RdmaFindings, NameTheNetdevInCauseAndFix) {
  for (const auto& [check, name] :
       {std::pair("ports", "dgx_with_netdevs_down"), std::pair("gids", "dgx_without_gids"),
        std::pair("mtu", "dgx_with_mtu_1500")}) {
    const Finding finding = findings_of(check, machine_named(name)).front();
    EXPECT_THAT(finding.text, AllOf(HasSubstr("eth0"), Not(HasSubstr("<netdev>"))));
    EXPECT_THAT(finding.fix, AllOf(HasSubstr("eth0"), Not(HasSubstr("<netdev>"))));
  }
}

TEST(RdmaFindings, ShowTheArithmeticOfSoftRoce) {
  const std::vector<Finding> findings = findings_of("soft_roce", machine_named("soft_roce_with_mtu_1500"));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings.back().evidence.front().source, "/sys/class/net/veth0/mtu");
  EXPECT_EQ(findings.back().evidence.front().value, "1500 − 80 = 1420, so 1024");
}

TEST(RdmaFindings, NameTheModuleThatIsMissing) {
  const Finding finding = findings_of("rdma_devices", machine_named("dgx_without_mlx5_ib")).front();
  EXPECT_THAT(finding.fix, HasSubstr("modprobe mlx5_ib"));
  const Finding unbound = findings_of("rdma_devices", machine_named("dgx_with_unbound_nics")).front();
  EXPECT_THAT(unbound.fix, HasSubstr("/sys/bus/pci/devices/0000:1c:00.0/modalias"));
}

TEST(RdmaFindings, NameTheNicsThatDoNoRdmaAndTheirDrivers) {
  const Finding guest = findings_of("rdma_devices", machine_named("guest_with_virtio_alone")).front();
  ASSERT_EQ(guest.evidence.size(), 2u);
  EXPECT_EQ(guest.evidence[1].value, "empty");
  EXPECT_EQ(guest.evidence[0].source, "/sys/bus/pci/devices/0000:00:03.0/driver");
  EXPECT_EQ(guest.evidence[0].value, "virtio-pci");
  EXPECT_THAT(guest.text,
              AllOf(HasSubstr("no NIC of this machine is known to support RDMA"), Not(HasSubstr("modules"))));
  EXPECT_THAT(guest.fix,
              AllOf(HasSubstr("virtual function"), HasSubstr("netdev eth0"), Not(HasSubstr("<netdev>"))));
  EXPECT_EQ(findings_of("rdma_devices", machine_named("server_with_ethernet_alone")).front().evidence.size(),
            3u);
}

TEST(RdmaFindings, OfPortsAreNoneWithoutDevices) {
  for (const char* check : {"ports", "gids", "mtu", "counters", "memlock", "rdma_cm", "netns"})
    EXPECT_TRUE(findings_of(check, machine_named("server_without_nics")).empty()) << check;
}

TEST(KernelModules, AreLoadedAvailableBuiltInOrAbsent) {
  const SyntheticFacts with(machine_named("server_with_rxe_module")),
      builtin(machine_named("server_with_builtin_rxe")), without(machine_named("server_with_own_kernel")),
      hidden(machine_named("server_without_nics"));
  EXPECT_EQ(module_state(with->root, "rdma_rxe"), ModuleState::available);
  EXPECT_EQ(module_state(with->root, "nvidia"), ModuleState::loaded);
  // A part of another name is no name.
  EXPECT_EQ(module_state(with->root, "rxe"), ModuleState::absent);
  EXPECT_EQ(module_state(builtin->root, "rdma_rxe"), ModuleState::builtin);
  EXPECT_EQ(module_state(without->root, "rdma_rxe"), ModuleState::absent);
  EXPECT_EQ(module_state(hidden->root, "rdma_rxe"), ModuleState::unknown);
  EXPECT_EQ(module_state(topology::Root("/nonexistent"), "rdma_rxe"), ModuleState::unknown);
}

}  // namespace
}  // namespace gdrbench::doctor
