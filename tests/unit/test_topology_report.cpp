#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "report/text_table.hpp"
#include "report/topology_report.hpp"
#include "synthetic/healthy.hpp"

namespace gdrbench::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class TopologyReport : public testing::Test {
 protected:
  ~TopologyReport() override { std::filesystem::remove_all(folder_); }
  topology::Machine read(const synthetic::Machine& made) {
    made.write(folder_);
    return topology::read_machine(topology::Root(folder_));
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("gdrbench-report-" + std::to_string(getpid()));
};

// A GPU elsewhere than the NIC of the first known input: below the same host bridge, below another of the
// NUMA node, and of another NUMA node.
TEST_F(TopologyReport, gives_each_pair_its_class) {
  synthetic::Machine made = synthetic::dgx();
  made.add_gpu({"pci0000:b7", "0000:b7:03.0", "0000:d0:00.0"}, 1);
  made.add_gpu({"pci0000:e0", "0000:e0:01.0", "0000:e1:00.0"}, 1);
  const topology::Machine machine = read(made);
  const auto document = topology_json(machine, "");
  const auto class_of = [&](const std::string& gpu) {
    for (const auto& pair : document.at("distances"))
      if (pair.at("from") == gpu && pair.at("to") == "NIC1") return pair.at("class").get<std::string>();
    return std::string("absent");
  };
  ASSERT_EQ(machine.nics[1].pci.address, "0000:bc:00.0");
  EXPECT_EQ(class_of("GPU0"), "SYS");
  EXPECT_EQ(class_of("GPU1"), "PIX");
  EXPECT_EQ(class_of("GPU2"), "PHB");
  EXPECT_EQ(class_of("GPU3"), "NODE");
  EXPECT_THAT(document.at("distances"), SizeIs(6 * 5 / 2));
  EXPECT_THAT(document.at("numa_distances"), SizeIs(6 * 2));
}

TEST_F(TopologyReport, knows_no_class_where_the_kernel_hides_the_nodes) {
  synthetic::Machine made = synthetic::plain();
  made.add_numa_node(1, "");
  made.add_gpu({"pci0000:00", "0000:00:05.0"}, -1);
  made.add_nic({"pci0001:00", "0001:00:06.0"}, -1, "mlx5_0", "eth0");
  const auto document = topology_json(read(made), "");
  EXPECT_EQ(document.at("distances").at(0).at("class"), "UNKNOWN");
  EXPECT_EQ(document.at("numa_distances").at(0).at("class"), "UNKNOWN");
  EXPECT_TRUE(document.at("gpus").at(0).at("numa_node").is_null());
  EXPECT_EQ(document.at("best_pairs").at(0).at("device"), "mlx5_0");
}

TEST_F(TopologyReport, has_all_devices_on_the_node_of_a_machine_with_one) {
  const topology::Machine machine = read(synthetic::virtual_machine());
  EXPECT_EQ(topology_json(machine, "").at("numa_distances").at(0).at("class"), "NODE");
  const std::string text = topology_text(machine, "");
  EXPECT_THAT(text, Not(HasSubstr("node unknown")));
  EXPECT_THAT(text, HasSubstr("  GPU0  X     PHB   NODE   0-3\n"));
}

TEST_F(TopologyReport, says_of_an_empty_machine_what_it_lacks) {
  const std::string text = topology_text(read(synthetic::plain()), "node-a");
  EXPECT_THAT(text, HasSubstr("host node-a · 0 GPUs · 0 NICs · 0 NVMe devices · 1 NUMA node · 4 cores"));
  EXPECT_THAT(text, HasSubstr("No NVIDIA GPU"));
  EXPECT_THAT(text, HasSubstr("No RDMA device"));
  EXPECT_THAT(text, Not(HasSubstr("Distances")));
}

TEST_F(TopologyReport, does_not_speak_for_the_kernel_where_sysfs_was_not_recorded) {
  topology::Machine machine = read(synthetic::plain());
  machine.has_sysfs = false;
  const std::string text = topology_text(machine, "");
  EXPECT_THAT(text, HasSubstr("No RDMA device is in hwloc's document"));
  EXPECT_THAT(text, Not(HasSubstr("/sys/class/infiniband")));
}

TEST_F(TopologyReport, names_a_link_below_its_best) {
  synthetic::Machine made = synthetic::dgx();
  made.tree.file(made.folder_of("0000:bb:00.0") + "/current_link_width", "8");
  const std::string text = topology_text(read(made), "");
  EXPECT_THAT(text, HasSubstr("narrowest link 0000:bb:00.0 32.0 GT/s x8, at most 32.0 GT/s x16"));
}

TEST_F(TopologyReport, says_which_best_port_is_down) {
  synthetic::Machine made = synthetic::dgx();
  made.tree.file(made.tree.target("sys/class/infiniband/mlx5_1") + "/ports/1/state", "1: DOWN");
  EXPECT_THAT(topology_text(read(made), ""), HasSubstr("mlx5_1 port 1 (DOWN)"));
}

TEST_F(TopologyReport, promises_no_rate_of_a_nic_of_which_none_is_known) {
  synthetic::Machine made = synthetic::plain();
  made.add_gpu({"pci0000:00", "0000:00:05.0"}, 0);
  made.add_function({.way = {"pci0000:00", "0000:00:03.0"},
                     .config = {.vendor = 0x1af4, .device = 0x1041, .class_code = 0x020000},
                     .driver = "virtio-pci",
                     .link_speed = "Unknown"});
  const topology::Machine machine = read(made);
  EXPECT_THAT(topology_text(machine, ""), HasSubstr("GPU0  NIC0 (no RDMA device)  PHB  unknown  cores"));
  EXPECT_TRUE(topology_json(machine, "").at("best_pairs").at(0).at("bytes_per_second").is_null());
}

TEST_F(TopologyReport, keeps_to_the_width_of_the_terminal) {
  synthetic::Machine made = synthetic::large();
  made.train_link("0000:bb:00.0", "16.0 GT/s PCIe", 8);
  topology::Machine machine = read(made);
  machine.gpus[0].pci.cores =
      "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,54";
  for (const std::size_t width : {80, 100, 160}) {
    std::istringstream lines(topology_text(machine, "node-a", width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
  }
}

TEST_F(TopologyReport, shows_the_pci_id_of_a_device_without_a_name) {
  synthetic::Machine made = synthetic::plain();
  made.add_function({.way = {"pci0000:00", "0000:00:03.0"},
                     .config = {.vendor = 0x1af4, .device = 0xfffe, .class_code = 0x020000},
                     .driver = "virtio-pci"});
  EXPECT_THAT(topology_text(read(made), ""), HasSubstr("NIC0  0000:00:03.0  PCI ID 1af4:fffe  virtio-pci"));
}

TEST_F(TopologyReport, shows_control_characters_of_a_recorded_machine_as_text) {
  synthetic::Machine made = synthetic::dgx();
  made.tree.file(made.tree.target("sys/class/infiniband/mlx5_1") + "/ports/1/state", "4: \x1b[2J");
  EXPECT_THAT(topology_text(read(made), "\x1b[31m"), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gdrbench::report
