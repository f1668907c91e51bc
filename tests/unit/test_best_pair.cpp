#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/best_pair.hpp"

namespace gdrbench::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PciFunction function(const std::vector<std::string>& way, int node, const std::string& cores) {
  PciFunction made;
  made.address = way.back();
  made.numa_node = node;
  made.way = way;
  made.cores = cores;
  for (std::size_t i = 1; i < way.size(); ++i)
    made.hops.push_back(
        {way[i],
         {.transfers_per_second = 32e9, .lanes = 16, .max_transfers_per_second = 32e9, .max_lanes = 16}});
  return made;
}

// Below the switch of a host bridge, at one of its ports.
PciFunction below(const std::string& bus, int port, int node, const std::string& cores) {
  const std::string at = std::to_string(port);
  return function({"pci0000:" + bus, "0000:" + bus + ":01.0", "0000:" + bus + ":02." + at,
                   "0000:" + bus + ":1" + at + ".0"},
                  node, cores);
}

Nic nic(const PciFunction& pci, const std::string& device, double gigabits = 400,
        const std::string& state = "ACTIVE") {
  return {.pci = pci,
          .rdma_devices = {device},
          .netdevs = {},
          .ports = {{.device = device,
                     .number = 1,
                     .state = state,
                     .link_layer = "Ethernet",
                     .bytes_per_second = gigabits * 1e9 / 8,
                     .netdev = ""}}};
}

std::vector<std::string> devices(const Machine& machine) {
  std::vector<std::string> names;
  for (const BestPair& pair : best_pairs(machine)) names.push_back(pair.port.device);
  return names;
}

TEST(BestPair, is_the_nearest_however_fast_a_farther_one_is) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic(below("b7", 1, 1, "4-7"), "far", 400), nic(below("17", 1, 0, "0-3"), "near", 100)};
  EXPECT_THAT(devices(machine), ElementsAre("near"));
  EXPECT_EQ(best_pairs(machine).front().distance, PciDistance::pix);
}

TEST(BestPair, is_the_faster_of_two_that_are_as_near) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic(below("17", 1, 0, "0-3"), "slow", 100), nic(below("17", 2, 0, "0-3"), "fast", 200)};
  EXPECT_THAT(devices(machine), ElementsAre("fast"));
}

TEST(BestPair, counts_a_narrow_pcie_link_against_a_fast_port) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic(below("17", 1, 0, "0-3"), "narrow", 400), nic(below("17", 2, 0, "0-3"), "wide", 200)};
  machine.nics[0].pci.hops.back().link.max_lanes = 4;
  EXPECT_THAT(devices(machine), ElementsAre("wide"));
}

// As virtual machines have them.
Nic nic_without_rates(PciFunction pci, const std::string& device) {
  for (Hop& hop : pci.hops) hop.link = {};
  return nic(pci, device, 0);
}

TEST(BestPair, promises_no_rate_of_a_nic_of_which_none_is_known) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic_without_rates(below("17", 1, 0, "0-3"), "unknown")};
  EXPECT_EQ(best_pairs(machine).front().bytes_per_second, 0);
  machine.nics[0].ports.clear();
  EXPECT_EQ(best_pairs(machine).front().bytes_per_second, 0);
  machine.nics[0].pci.hops.back().link = {.max_transfers_per_second = 16e9, .max_lanes = 8};
  EXPECT_EQ(best_pairs(machine).front().bytes_per_second, link_bytes_per_second(16e9, 8));
}

TEST(BestPair, is_no_nic_of_unknown_rate_where_one_that_is_as_near_has_a_rate) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic_without_rates(below("17", 1, 0, "0-3"), "unknown"),
                  nic(below("17", 2, 0, "0-3"), "slow", 10)};
  EXPECT_THAT(devices(machine), ElementsAre("slow"));
  machine.nics = {nic_without_rates(below("17", 1, 0, "0-3"), "unknown"),
                  nic(below("17", 2, 0, "0-3"), "narrow", 0)};
  machine.nics[1].pci.hops.back().link.max_lanes = 1;
  EXPECT_THAT(devices(machine), ElementsAre("narrow"));
}

TEST(BestPair, has_an_active_port_before_one_that_is_down) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic(below("17", 1, 0, "0-3"), "down", 400, "DOWN"),
                  nic(below("17", 2, 0, "0-3"), "up", 400)};
  EXPECT_THAT(devices(machine), ElementsAre("up"));
}

TEST(BestPair, spreads_equal_choices_over_the_gpus) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}, {below("17", 1, 0, "0-3")}};
  machine.nics = {nic(below("17", 2, 0, "0-3"), "a"), nic(below("17", 3, 0, "0-3"), "b")};
  EXPECT_THAT(devices(machine), ElementsAre("a", "b"));
}

TEST(BestPair, leaves_the_only_choice_to_the_gpu_that_has_no_other) {
  Machine machine;
  machine.gpus = {{function({"pci0000:17", "0000:17:06.0"}, 0, "0-3")}, {below("17", 1, 0, "0-3")}};
  machine.nics = {nic(below("17", 2, 0, "0-3"), "a"),
                  nic(function({"pci0000:17", "0000:17:05.0"}, 0, "0-3"), "b")};
  // The first GPU is as far from both, the second is below one switch with "a".
  EXPECT_THAT(devices(machine), ElementsAre("b", "a"));
}

TEST(BestPair, prefers_rdma_devices_to_other_nics_and_takes_those_where_there_are_no_others) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {{.pci = below("17", 1, 0, "0-3"), .rdma_devices = {}, .netdevs = {"eth0"}, .ports = {}}};
  ASSERT_EQ(best_pairs(machine).size(), 1U);
  EXPECT_EQ(best_pairs(machine).front().port.device, "");
  machine.nics.push_back(nic(below("b7", 1, 1, "4-7"), "mlx5_0"));
  EXPECT_THAT(devices(machine), ElementsAre("mlx5_0"));
}

TEST(BestPair, prefers_rdma_devices_whose_ports_are_unknown_to_other_nics) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {{.pci = below("17", 1, 0, "0-3"), .rdma_devices = {}, .netdevs = {"eth0"}, .ports = {}},
                  {.pci = below("b7", 1, 1, "4-7"), .rdma_devices = {"mlx5_0"}, .netdevs = {}, .ports = {}}};
  EXPECT_EQ(best_pairs(machine).front().nic, 1U);
}

TEST(BestPair, has_the_cores_next_to_both_else_those_next_to_the_nic) {
  Machine machine;
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  machine.nics = {nic(below("17", 1, 0, "2-5"), "a")};
  EXPECT_EQ(best_pairs(machine).front().cores, "2-3");
  machine.nics[0].pci.cores = "4-7";
  EXPECT_EQ(best_pairs(machine).front().cores, "4-7");
  machine.nics[0].pci.cores = "";
  EXPECT_EQ(best_pairs(machine).front().cores, "0-3");
}

TEST(BestPair, is_not_there_without_a_nic) {
  Machine machine;
  EXPECT_THAT(best_pairs(machine), IsEmpty());
  machine.gpus = {{below("17", 0, 0, "0-3")}};
  EXPECT_THAT(best_pairs(machine), IsEmpty());
}

}  // namespace
}  // namespace gdrbench::topology
