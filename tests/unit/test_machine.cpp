#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "synthetic/healthy.hpp"
#include "topology/hwloc_view.hpp"
#include "topology/machine.hpp"

namespace gdrbench::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class MadeMachine : public testing::Test {
 protected:
  ~MadeMachine() override { std::filesystem::remove_all(folder_); }
  Machine read(const synthetic::Machine& made) {
    std::filesystem::remove_all(folder_);
    made.write(folder_);
    return read_machine(Root(folder_));
  }

  /// Of hwloc's document alone.
  Machine read_xml_of(const synthetic::Machine& made) {
    std::filesystem::remove_all(folder_);
    made.write(folder_);
    const std::string xml = hwloc_xml(Root(folder_));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ / "topology.xml") << xml;
    return read_machine(Root(folder_));
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("gdrbench-machine-" + std::to_string(getpid()));
};

TEST_F(MadeMachine, shows_its_devices_where_they_are) {
  const Machine machine = read(synthetic::dgx());
  ASSERT_EQ(machine.gpus.size(), 2U);
  EXPECT_EQ(machine.gpus[1].pci.address, "0000:bb:00.0");
  EXPECT_EQ(machine.gpus[1].pci.class_code, 0x030200U);
  EXPECT_EQ(machine.gpus[1].pci.numa_node, 1);
  EXPECT_EQ(machine.gpus[1].pci.driver, "nvidia");
  EXPECT_THAT(machine.gpus[1].pci.way,
              ElementsAre("pci0000:b7", "0000:b7:01.0", "0000:b8:00.0", "0000:b9:01.0", "0000:bb:00.0"));
  EXPECT_EQ(machine.gpus[1].pci.link.transfers_per_second, 32e9);
  EXPECT_EQ(machine.gpus[1].pci.link.lanes, 16);
  ASSERT_EQ(machine.nics.size(), 2U);
  EXPECT_THAT(machine.nics[0].rdma_devices, ElementsAre("mlx5_0"));
  EXPECT_THAT(machine.nics[0].netdevs, ElementsAre("eth0"));
  ASSERT_EQ(machine.numa_nodes.size(), 2U);
  EXPECT_EQ(machine.numa_nodes[1].cores, "4-7");
  EXPECT_EQ(machine.cores, "0-7");
}

TEST_F(MadeMachine, shows_the_link_of_every_hop) {
  synthetic::Machine made = synthetic::dgx();
  made.tree.file(made.folder_of("0000:b8:00.0") + "/current_link_speed", "16.0 GT/s PCIe");
  made.tree.file(made.folder_of("0000:b9:01.0") + "/current_link_width", "8");
  made.tree.file(made.folder_of("0000:b7:01.0") + "/max_link_speed", "Unknown");
  const Machine machine = read(made);
  const std::vector<Hop>& hops = machine.gpus[1].pci.hops;
  ASSERT_THAT(hops, SizeIs(4));
  EXPECT_EQ(hops[0].link.max_transfers_per_second, 0);
  EXPECT_EQ(hops[1].address, "0000:b8:00.0");
  EXPECT_EQ(hops[1].link.transfers_per_second, 16e9);
  EXPECT_EQ(hops[1].link.max_transfers_per_second, 32e9);
  EXPECT_EQ(hops[2].link.lanes, 8);
  EXPECT_EQ(narrowest(hops_between(hops, machine.nics[1].pci.hops))->address, "0000:b9:01.0");
}

TEST_F(MadeMachine, names_models_and_cores_next_to_devices) {
  const Machine machine = read(synthetic::dgx());
  EXPECT_THAT(machine.nics[0].pci.model, HasSubstr("ConnectX-7"));
  EXPECT_EQ(machine.nics[0].pci.cores, "0-3");
  EXPECT_EQ(machine.gpus[1].pci.cores, "4-7");
}

TEST_F(MadeMachine, names_a_gpu_that_the_list_lacks_as_its_driver_does) {
  synthetic::Machine made = synthetic::plain();
  constexpr std::uint16_t h100 = 0x2330, not_listed = 0xfffe;
  for (const auto& [address, device, name] : {std::tuple("0000:00:05.0", h100, "NVIDIA by its driver"),
                                              std::tuple("0000:00:06.0", not_listed, "NVIDIA H300"),
                                              std::tuple("0000:00:07.0", not_listed, "Unknown")}) {
    made.add_function({.way = {"pci0000:00", address},
                       .config = {.vendor = 0x10de, .device = device, .class_code = 0x030200},
                       .driver = "nvidia"});
    made.tree.file(std::string("proc/driver/nvidia/gpus/") + address + "/information",
                   std::string("Model: \t\t ") + name + "\nIRQ:   \t\t 41\nBus Location: \t " + address);
  }
  const Machine machine = read(made);
  ASSERT_THAT(machine.gpus, SizeIs(3));
  EXPECT_THAT(machine.gpus[0].pci.model, HasSubstr("H100"));
  EXPECT_EQ(machine.gpus[1].pci.model, "NVIDIA H300");
  EXPECT_EQ(machine.gpus[2].pci.model, "");
}

TEST_F(MadeMachine, shows_the_ports_of_its_nics) {
  synthetic::Machine made = synthetic::dgx();
  made.tree.file(made.tree.target("sys/class/infiniband/mlx5_1") + "/ports/1/state", "1: DOWN");
  const Machine machine = read(made);
  ASSERT_THAT(machine.nics[0].ports, SizeIs(1));
  const RdmaPort& port = machine.nics[0].ports[0];
  EXPECT_EQ(port.device, "mlx5_0");
  EXPECT_EQ(port.number, 1);
  EXPECT_TRUE(port.is_active());
  EXPECT_EQ(port.link_layer, "Ethernet");
  EXPECT_EQ(port.bytes_per_second, 50e9);
  EXPECT_EQ(port.netdev, "eth0");
  EXPECT_EQ(machine.nics[1].ports[0].state, "DOWN");
}

TEST_F(MadeMachine, names_the_netdev_of_a_port_without_gids_by_its_number) {
  synthetic::Machine made = synthetic::dgx();
  const std::string device = made.tree.target("sys/class/infiniband/mlx5_0");
  made.tree.remove(device + "/ports/1/gid_attrs");
  EXPECT_EQ(read(made).nics[0].ports[0].netdev, "eth0");
}

TEST_F(MadeMachine, has_every_device_on_its_only_numa_node) {
  synthetic::Machine made = synthetic::virtual_machine();
  ASSERT_EQ(made.tree.text(made.folder_of("0000:00:05.0") + "/numa_node"), "-1");
  EXPECT_EQ(read(made).gpus[0].pci.numa_node, 0);
  made.add_numa_node(1, "");
  EXPECT_EQ(read(made).gpus[0].pci.numa_node, -1) << "of two nodes, either may be meant";
}

// Memory that was plugged in later belongs to no node.
TEST_F(MadeMachine, has_all_its_memory_on_its_only_numa_node) {
  synthetic::Machine made = synthetic::virtual_machine();
  made.tree.file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:        5598704 kB");
  made.tree.file("proc/meminfo", "MemTotal:       263998500 kB\nMemFree:        262595476 kB");
  EXPECT_EQ(read(made).numa_nodes.at(0).memory_bytes, std::uint64_t{263998500} << 10);
  for (const char* odd :
       {"", "MemTotal:", "MemTotal: x kB", "MemTotal: -5 kB", "MemTotal: 99999999999999999999 kB",
        "MemTotal: 9999999999999999999 kB", "MemTotal:       1 kB"}) {
    made.tree.file("proc/meminfo", odd);
    EXPECT_EQ(read(made).numa_nodes.at(0).memory_bytes, std::uint64_t{5598704} << 10) << odd;
  }
}

TEST_F(MadeMachine, has_of_several_numa_nodes_each_with_its_own_memory) {
  synthetic::Machine made = synthetic::dgx();
  made.tree.file("proc/meminfo", "MemTotal:       963998500 kB");
  for (const NumaNode& node : read(made).numa_nodes)
    EXPECT_EQ(node.memory_bytes, std::uint64_t{131072000} << 10) << node.number;
}

TEST_F(MadeMachine, without_sysfs_has_its_devices_on_the_nodes_that_hwloc_puts_them_on) {
  const Machine one = read_xml_of(synthetic::virtual_machine());
  ASSERT_THAT(one.gpus, SizeIs(1));
  ASSERT_THAT(one.nics, SizeIs(1));
  EXPECT_EQ(one.gpus[0].pci.numa_node, 0);
  EXPECT_EQ(one.nics[0].pci.numa_node, 0);
  const Machine two = read_xml_of(synthetic::dgx());
  ASSERT_THAT(two.gpus, SizeIs(2));
  EXPECT_EQ(two.gpus[0].pci.numa_node, 0);
  EXPECT_EQ(two.gpus[1].pci.numa_node, 1);
  synthetic::Machine hidden = synthetic::virtual_machine();
  hidden.add_numa_node(1, "");
  EXPECT_EQ(read_xml_of(hidden).gpus.at(0).pci.numa_node, -1) << "of two nodes, either may be meant";
}

TEST_F(MadeMachine, shows_nvme_devices_and_gpus_of_both_classes) {
  synthetic::Machine made = synthetic::dgx();
  synthetic::add_nvme(made, {"pci0000:17", "0000:17:05.0", "0000:20:00.0"}, 0, "nvme0n1");
  const synthetic::Way way = {"pci0000:17", "0000:17:07.0", "0000:21:00.0"};
  made.add_function(
      {.way = way, .config = {.vendor = 0x10de, .device = 0x2684, .class_code = 0x030000}, .driver = ""});
  // Its sound, and the display of a server's management.
  made.add_function({.way = {"pci0000:17", "0000:17:07.0", "0000:21:00.1"},
                     .config = {.vendor = 0x10de, .device = 0x22ba, .class_code = 0x040300},
                     .driver = ""});
  made.add_function({.way = {"pci0000:17", "0000:17:08.0", "0000:22:00.0"},
                     .config = {.vendor = 0x1a03, .device = 0x2000, .class_code = 0x030000},
                     .driver = ""});
  const Machine machine = read(made);
  ASSERT_THAT(machine.nvmes, SizeIs(1));
  EXPECT_THAT(machine.nvmes[0].disks, ElementsAre("nvme0n1"));
  EXPECT_EQ(machine.nvmes[0].pci.link.lanes, 4);
  ASSERT_THAT(machine.gpus, SizeIs(3));
  EXPECT_EQ(machine.gpus[1].pci.address, "0000:21:00.0");
}

TEST_F(MadeMachine, lists_rdma_devices_that_no_function_is_behind) {
  synthetic::Machine made = synthetic::dgx();
  synthetic::add_rxe(made, "rxe0", "eth0");
  synthetic::add_rxe(made, "siw0", "eth1");
  made.tree.remove("sys/devices/virtual/infiniband/siw0/parent");
  made.tree.file("sys/devices/virtual/infiniband/siw0/node_type", "4: RNIC");
  const Machine machine = read(made);
  ASSERT_THAT(machine.software_nics, SizeIs(2));
  EXPECT_EQ(machine.software_nics[0].name, "rxe0");
  EXPECT_EQ(machine.software_nics[0].kind, "soft-roce");
  EXPECT_EQ(machine.software_nics[0].ports[0].netdev, "eth0");
  EXPECT_EQ(machine.software_nics[1].kind, "iWARP");
  EXPECT_THAT(machine.nics[0].rdma_devices, ElementsAre("mlx5_0"));
}

// Kernels before 4.20 hang rxe below the network card's function.
TEST_F(MadeMachine, takes_a_soft_roce_device_for_none_of_the_card_that_it_uses) {
  synthetic::Machine made = synthetic::dgx();
  const std::string device = made.folder_of("0000:1c:00.0") + "/infiniband/rxe0";
  made.tree.link("sys/class/infiniband/rxe0", device);
  made.tree.file(device + "/parent", "eth0");
  made.tree.file(device + "/node_type", "1: CA");
  const Machine machine = read(made);
  EXPECT_THAT(machine.nics[0].rdma_devices, ElementsAre("mlx5_0"));
  ASSERT_THAT(machine.software_nics, SizeIs(1));
  EXPECT_EQ(machine.software_nics[0].name, "rxe0");
}

TEST_F(MadeMachine, may_have_neither_gpu_nor_nic) {
  const Machine machine = read(synthetic::plain());
  EXPECT_THAT(machine.gpus, IsEmpty());
  EXPECT_THAT(machine.nics, IsEmpty());
  EXPECT_EQ(machine.cores, "0-3");
}

// hwloc would wait for somebody to write into it.
TEST_F(MadeMachine, with_a_pipe_in_place_of_a_file_is_not_waited_for) {
  synthetic::dgx().write(folder_);
  const std::filesystem::path file = folder_ / "sys/devices/system/node/node1/cpumap";
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(read_machine(Root(folder_)).gpus, IsEmpty());
}

TEST_F(MadeMachine, of_sixteen_gpus_and_nics_is_read_well_within_a_second) {
  synthetic::large().write(folder_);
  const auto started = std::chrono::steady_clock::now();
  const Machine machine = read_machine(Root(folder_));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
  EXPECT_THAT(machine.gpus, SizeIs(16));
  EXPECT_THAT(machine.nics, SizeIs(16));
  EXPECT_THAT(machine.nvmes, SizeIs(4));
  EXPECT_LT(taken.count(), 1);
}

}  // namespace
}  // namespace gdrbench::topology
