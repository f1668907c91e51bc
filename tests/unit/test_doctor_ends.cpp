#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "doctor/checks/checks.hpp"
#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

using synthetic::dgx;
using synthetic::Machine;
using synthetic::machine_named;
using testing::ElementsAre;

std::set<std::string> causes_of(const Machine& here, const Machine& there) {
  SyntheticFacts own(here), remote(there);
  std::set<std::string> causes;
  for (const Finding& finding : compare_ends(*own, *remote)) {
    EXPECT_EQ(finding.check, "ends");
    if (finding.verdict != Verdict::ok) causes.insert(finding.cause);
  }
  return causes;
}

void set_gids(Machine& machine, const std::string& gid, const std::string& type) {
  for (const char* device : {"mlx5_0", "mlx5_1"}) {
    const std::string port = machine.tree.target(std::string("sys/class/infiniband/") + device) + "/ports/1";
    for (const char* table : {"/gids", "/gid_attrs"}) machine.tree.remove(port + table);
    machine.add_gid(device, 0, gid, type, device == std::string("mlx5_0") ? "eth0" : "eth1");
  }
}

Machine with_gid(const std::string& gid, const std::string& type = "RoCE v2") {
  Machine machine = dgx();
  set_gids(machine, gid, type);
  return machine;
}

constexpr const char* global_ipv6_gid = "2001:0db8:0000:0000:0000:0000:0000:0005";
constexpr const char* link_local_gid = "fe80:0000:0000:0000:0000:0000:0000:0005";

TEST(Ends, OfOneKindFit) {
  SyntheticFacts own(dgx()), remote(dgx());
  const std::vector<Finding> findings = compare_ends(*own, *remote);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().verdict, Verdict::ok);
  EXPECT_EQ(findings.front().subject, "mlx5_0 port 1 here, mlx5_0 port 1 there");
}

TEST(Ends, WithoutAnActivePortAreNotCompared) {
  EXPECT_TRUE(causes_of(dgx(), machine_named("server_without_nics")).empty());
  EXPECT_TRUE(causes_of(machine_named("dgx_with_netdevs_down"), dgx()).empty());
}

TEST(Ends, OfDifferentLinkLayersFail) {
  EXPECT_THAT(causes_of(dgx(), machine_named("infiniband")), ElementsAre("link_layers_differ"));
  // One that has both reaches either, each by the port that fits.
  EXPECT_TRUE(causes_of(dgx(), machine_named("dgx_of_both_link_layers")).empty());
  EXPECT_TRUE(causes_of(machine_named("dgx_of_both_link_layers"), machine_named("infiniband")).empty());
}

TEST(Ends, OfDifferentFabricsFail) {
  EXPECT_THAT(causes_of(dgx(), machine_named("soft_roce")), ElementsAre("fabrics_differ"));
  EXPECT_TRUE(causes_of(machine_named("soft_roce"), machine_named("soft_roce")).empty());
}

TEST(Ends, WhoseGidsDoNotReachEachOtherFail) {
  EXPECT_THAT(causes_of(dgx(), with_gid(global_ipv6_gid)), ElementsAre("gid_families_differ"));
  EXPECT_THAT(causes_of(dgx(), machine_named("dgx_with_roce_v1_alone")), ElementsAre("gid_versions_differ"));
  EXPECT_THAT(causes_of(with_gid(link_local_gid), dgx()), ElementsAre("link_local_meets_global"));
  EXPECT_TRUE(causes_of(with_gid(global_ipv6_gid), with_gid(global_ipv6_gid)).empty());
}

TEST(Ends, OfDifferentPathMtusAreNamedWithBoth) {
  SyntheticFacts own(dgx()), remote(machine_named("dgx_with_mtu_1500"));
  const std::vector<Finding> findings = compare_ends(*own, *remote);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().cause, "path_mtu_differs");
  ASSERT_EQ(findings.front().evidence.size(), 2u);
  EXPECT_EQ(findings.front().evidence[0].value, "4096");
  EXPECT_EQ(findings.front().evidence[1].value, "1024");
}

TEST(Ends, OfWhichNobodyAskedLibibverbsComparePathMtusByNetdev) {
  Machine here = dgx(), there = machine_named("dgx_with_mtu_1500");
  here.answers.rdma.clear();
  there.answers.rdma.clear();
  EXPECT_THAT(causes_of(here, there), ElementsAre("path_mtu_differs"));
}

TEST(Ends, WithGpuMemoryAtOneOnlyAreNamed) {
  Machine there = dgx();
  for (GpuAnswer& gpu : there.answers.gpus) gpu.gpu_direct_rdma = false;
  EXPECT_THAT(causes_of(dgx(), there), ElementsAre("gpu_memory_at_one_end"));
  // Nobody knows: no driver answered.
  there.answers.gpus.clear();
  EXPECT_TRUE(causes_of(dgx(), there).empty());
}

TEST(Ends, OfDifferentVersionsAreRemarked) {
  Machine there = dgx();
  there.tree.file("sys/module/nvidia/version", "570.86.15");
  there.tree.file(there.tree.target("sys/class/infiniband/mlx5_0") + "/fw_ver", "28.36.1010");
  EXPECT_THAT(causes_of(dgx(), there), ElementsAre("drivers_differ", "firmware_differs"));
}

TEST(Ends, HaveATestForEveryCause) {
  std::set<std::string> causes;
  for (const Cause& cause : ends_check.causes) causes.insert(std::string(cause.id));
  EXPECT_EQ(causes,
            (std::set<std::string>{"ok", "link_layers_differ", "fabrics_differ", "gid_versions_differ",
                                   "gid_families_differ", "link_local_meets_global", "path_mtu_differs",
                                   "gpu_memory_at_one_end", "drivers_differ", "firmware_differs"}));
}

}  // namespace
}  // namespace gdrbench::doctor
