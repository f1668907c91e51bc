#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "machines/healthy.hpp"
#include "topology/machine.hpp"

namespace gdrbench::topology {
namespace {

using testing::ElementsAre;

class MadeMachine : public testing::Test {
 protected:
  ~MadeMachine() override { std::filesystem::remove_all(folder_); }
  Machine read(const machines::Machine& made) {
    made.write(folder_);
    return read_machine(Root(folder_));
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("gdrbench-machine-" + std::to_string(getpid()));
};

TEST_F(MadeMachine, shows_its_devices_where_they_are) {
  const Machine machine = read(machines::dgx());
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
}

}  // namespace
}  // namespace gdrbench::topology
