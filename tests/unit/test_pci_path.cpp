#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "topology/pci_path.hpp"

namespace gdrbench::topology {
namespace {

namespace fs = std::filesystem;

// The PCI part of a machine's sysfs, made in a folder of its own.
class PciPath : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("gdrbench-pci-" + std::to_string(getpid()));
    fs::create_directories(root_ / "sys/bus/pci/devices");
    fs::create_directories(root_ / "sys/class/infiniband");
  }
  void TearDown() override { fs::remove_all(root_); }

  // `way` from the host bridge on: "pci0000:b7/0000:b7:01.0/0000:bc:00.0". Returns the last part.
  std::string add(const std::string& way, int numa_node) {
    const fs::path folder = root_ / "sys/devices" / way;
    fs::create_directories(folder);
    std::ofstream(folder / "numa_node") << numa_node << '\n';
    const std::string address = folder.filename();
    fs::create_symlink(folder, root_ / "sys/bus/pci/devices" / address);
    return address;
  }
  void add_rdma(const std::string& name, const fs::path& device) {
    fs::create_directories(root_ / "sys/class/infiniband" / name);
    fs::create_symlink(device, root_ / "sys/class/infiniband" / name / "device");
  }
  PciDistance distance(const std::string& a, const std::string& b) const {
    EXPECT_EQ(distance_between(a, b, root_), distance_between(b, a, root_)) << "depends on the order";
    return distance_between(a, b, root_);
  }

  fs::path root_;
  static constexpr const char* nic_way = "pci0000:b7/0000:b7:01.0/0000:b8:00.0/0000:b9:02.0/0000:bc:00.0";
};

TEST_F(PciPath, is_pix_below_one_switch) {
  const std::string nic = add(nic_way, 1);
  EXPECT_EQ(distance(nic, add("pci0000:b7/0000:b7:01.0/0000:b8:00.0/0000:b9:01.0/0000:bb:00.0", 1)),
            PciDistance::pix);
}

TEST_F(PciPath, is_pix_between_functions_of_one_card) {
  const std::string nic = add(nic_way, 1);
  EXPECT_EQ(distance(nic, add("pci0000:b7/0000:b7:01.0/0000:b8:00.0/0000:b9:02.0/0000:bc:00.1", 1)),
            PciDistance::pix);
  EXPECT_EQ(distance(nic, nic), PciDistance::pix);
}

TEST_F(PciPath, is_pxb_with_a_switch_below_the_shared_one) {
  const std::string nic = add(nic_way, 1);
  EXPECT_EQ(distance(nic, add("pci0000:b7/0000:b7:01.0/0000:b8:00.0/0000:b9:03.0/0000:c0:00.0/0000:c1:00.0/"
                              "0000:c2:00.0",
                              1)),
            PciDistance::pxb);
}

TEST_F(PciPath, is_phb_below_another_port_of_the_host_bridge) {
  const std::string nic = add(nic_way, 1);
  EXPECT_EQ(distance(nic, add("pci0000:b7/0000:b7:03.0/0000:d0:00.0", 1)), PciDistance::phb);
}

TEST_F(PciPath, is_node_below_another_host_bridge_of_the_numa_node) {
  const std::string nic = add(nic_way, 1);
  EXPECT_EQ(distance(nic, add("pci0000:e0/0000:e0:01.0/0000:e1:00.0", 1)), PciDistance::node);
}

TEST_F(PciPath, is_sys_in_another_numa_node) {
  const std::string nic = add(nic_way, 1);
  EXPECT_EQ(distance(nic, add("pci0000:10/0000:10:01.0/0000:11:00.0", 0)), PciDistance::sys);
}

TEST_F(PciPath, is_unknown_where_the_kernel_tells_no_numa_node) {
  const std::string nic = add(nic_way, -1);
  EXPECT_EQ(distance(nic, add("pci0000:10/0000:10:01.0/0000:11:00.0", -1)), PciDistance::unknown);
  EXPECT_EQ(distance(nic, add("pci0000:20/0000:20:01.0/0000:21:00.0", 0)), PciDistance::unknown);
  EXPECT_EQ(numa_node(nic, root_), -1);
}

TEST_F(PciPath, has_the_only_numa_node_where_there_is_one) {
  const std::string nic = add(nic_way, -1);
  const std::filesystem::path nodes = root_ / "sys/devices/system/node";
  std::filesystem::create_directories(nodes / "node0");
  std::filesystem::create_directories(nodes / "power");
  EXPECT_EQ(numa_node(nic, root_), 0);
  EXPECT_EQ(numa_node("0000:ff:00.0", root_), -1) << "no such function";
  std::filesystem::create_directories(nodes / "node1");
  EXPECT_EQ(numa_node(nic, root_), -1);
}

TEST_F(PciPath, is_unknown_for_what_is_no_function_of_this_machine) {
  const std::string nic = add(nic_way, 1);
  for (const char* other : {"", "0000:ff:00.0", "../../devices", "bb:00.0"})
    EXPECT_EQ(distance(nic, other), PciDistance::unknown) << other;
  EXPECT_EQ(numa_node("..", root_), -1);
}

TEST_F(PciPath, names_the_function_of_an_rdma_device_and_none_of_software) {
  const std::string nic = add(nic_way, 1);
  add_rdma("mlx5_0", root_ / "sys/devices" / nic_way);
  EXPECT_EQ(rdma_pci_address("mlx5_0", root_), nic);
  add_rdma("rxe_old", root_ / "sys/devices" / nic_way);  // old kernels hang it below the network card
  std::ofstream(root_ / "sys/class/infiniband/rxe_old/parent") << "eth0\n";
  EXPECT_EQ(rdma_pci_address("rxe_old", root_), "");
  fs::create_directories(root_ / "sys/class/infiniband/rxe0");
  EXPECT_EQ(rdma_pci_address("rxe0", root_), "");
  EXPECT_EQ(rdma_pci_address("softverbs0", root_), "");
  EXPECT_EQ(rdma_pci_address("", root_), "");
}

TEST_F(PciPath, begins_at_the_host_bridge_whatever_other_folders_are_called) {
  for (const char* name : {"pci", "pci_slots", "pci0000", "pciconf0:17", "pci0000:00"}) {
    const fs::path outer = root_ / name;
    const fs::path folder = outer / "sys/devices" / "pcie-controller" / nic_way;
    fs::create_directories(folder);
    fs::create_directories(outer / "sys/bus/pci/devices");
    fs::create_symlink("../../../devices/pcie-controller/" + std::string(nic_way),
                       outer / "sys/bus/pci/devices/0000:bc:00.0");
    EXPECT_EQ(pci_way("0000:bc:00.0", outer),
              (std::vector<std::string>{"pci0000:b7", "0000:b7:01.0", "0000:b8:00.0", "0000:b9:02.0",
                                        "0000:bc:00.0"}))
        << name;
  }
}

TEST_F(PciPath, is_unknown_where_a_link_leads_out_of_the_root) {
  const fs::path outside = root_.string() + "-outside";
  fs::create_directories(outside / nic_way);
  fs::create_symlink(outside / nic_way, root_ / "sys/bus/pci/devices/0000:bc:00.0");
  EXPECT_TRUE(pci_way("0000:bc:00.0", root_).empty());
  fs::remove_all(outside);
}

// Intel's VMD puts a host bridge of its own below a function.
TEST_F(PciPath, passes_a_host_bridge_below_a_function) {
  const std::string near = add("pci0000:17/0000:17:00.5/pci10000:00/10000:00:02.0/10000:01:00.0", 0);
  const std::string far = add("pci0000:17/0000:17:01.0/0000:18:00.0", 0);
  EXPECT_EQ(pci_way(near, root_).size(), 5U);
  EXPECT_EQ(distance(near, far), PciDistance::phb);
}

TEST(PciDistanceName, reads_what_it_writes) {
  for (const PciDistance distance : {PciDistance::pix, PciDistance::pxb, PciDistance::phb, PciDistance::node,
                                     PciDistance::sys, PciDistance::unknown})
    EXPECT_EQ(pci_distance(to_string(distance)), distance);
  EXPECT_EQ(pci_distance("pix"), PciDistance::unknown);
}

}  // namespace
}  // namespace gdrbench::topology
