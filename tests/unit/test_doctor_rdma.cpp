#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/check.hpp"
#include "doctor/kernel_modules.hpp"
#include "doctor/rdma_ports.hpp"
#include "machines/faults.hpp"
#include "machines/healthy.hpp"
#include "made_facts.hpp"

namespace gdrbench::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

machines::Machine known(const std::string& name) {
  for (const machines::Known& one : machines::known_machines())
    if (one.name == name) return one.make();
  throw std::logic_error("no machine " + name);
}

std::vector<Finding> run(const std::string& check, const machines::Machine& made) {
  const MadeFacts facts(made);
  for (const Check* one : checks())
    if (one->name == check) return one->run(*one, *facts);
  return {};
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
  machines::Machine made = machines::dgx();
  const std::string port = made.tree.target("sys/class/infiniband/mlx5_0") + "/ports/1";
  for (const char* table : {"/gids", "/gid_attrs"}) made.tree.remove(port + table);
  int index = 0;
  for (const Slot& slot : slots) made.add_gid("mlx5_0", index++, slot.gid, slot.type, "eth0");
  made.tree.folder(port + "/gids/9");
  made.add_gid("mlx5_0", 10, "0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2", "eth0");
  const MadeFacts facts(made);
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
  machines::Machine made = machines::dgx();
  const std::string table = made.tree.target("sys/class/infiniband/mlx5_0") + "/ports/1/gid_attrs/ndevs/3";
  for (const char* odd : {"eth0; reboot", "../../etc", "a-name-of-16-char", "\x1b[31m"}) {
    made.tree.file(table, odd);
    const MadeFacts facts(made);
    EXPECT_EQ(gid_table(facts->root, rdma_ports(facts->root).front()).back().netdev, "") << odd;
  }
}

TEST(RdmaFindings, NameTheNetdevInCauseAndFix) {
  for (const auto& [check, name] :
       {std::pair("ports", "dgx_with_netdevs_down"), std::pair("gids", "dgx_without_gids"),
        std::pair("mtu", "dgx_with_mtu_1500")}) {
    const Finding finding = run(check, known(name)).front();
    EXPECT_THAT(finding.text, AllOf(HasSubstr("eth0"), Not(HasSubstr("<netdev>"))));
    EXPECT_THAT(finding.fix, AllOf(HasSubstr("eth0"), Not(HasSubstr("<netdev>"))));
  }
}

TEST(RdmaFindings, ShowTheArithmeticOfSoftRoce) {
  const std::vector<Finding> findings = run("soft_roce", known("soft_roce_with_mtu_1500"));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings.back().evidence.front().source, "/sys/class/net/veth0/mtu");
  EXPECT_EQ(findings.back().evidence.front().value, "1500 − 80 = 1420, so 1024");
}

TEST(RdmaFindings, NameTheModuleThatIsMissing) {
  const Finding finding = run("rdma_devices", known("dgx_without_mlx5_ib")).front();
  EXPECT_THAT(finding.fix, HasSubstr("modprobe mlx5_ib"));
  const Finding unbound = run("rdma_devices", known("dgx_with_unbound_nics")).front();
  EXPECT_THAT(unbound.fix, HasSubstr("/sys/bus/pci/devices/0000:1c:00.0/modalias"));
}

TEST(RdmaFindings, NameTheNicsThatDoNoRdmaAndTheirDrivers) {
  const Finding guest = run("rdma_devices", known("guest_with_virtio_alone")).front();
  ASSERT_EQ(guest.evidence.size(), 2u);
  EXPECT_EQ(guest.evidence[1].value, "empty");
  EXPECT_EQ(guest.evidence[0].source, "/sys/bus/pci/devices/0000:00:03.0/driver");
  EXPECT_EQ(guest.evidence[0].value, "virtio-pci");
  EXPECT_THAT(guest.text,
              AllOf(HasSubstr("no NIC of this machine is known to do RDMA"), Not(HasSubstr("modules"))));
  EXPECT_THAT(guest.fix,
              AllOf(HasSubstr("virtual function"), HasSubstr("netdev eth0"), Not(HasSubstr("<netdev>"))));
  EXPECT_EQ(run("rdma_devices", known("server_with_ethernet_alone")).front().evidence.size(), 3u);
}

TEST(RdmaFindings, OfPortsAreNoneWithoutDevices) {
  for (const char* check : {"ports", "gids", "mtu", "counters", "memlock", "rdma_cm", "netns"})
    EXPECT_TRUE(run(check, known("server_without_nics")).empty()) << check;
}

TEST(KernelModules, AreLoadedAvailableBuiltInOrAbsent) {
  const MadeFacts with(known("server_with_rxe_module")), builtin(known("server_with_builtin_rxe")),
      without(known("server_with_own_kernel")), hidden(known("server_without_nics"));
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
