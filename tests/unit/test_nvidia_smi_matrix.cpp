#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/nvidia_smi_matrix.hpp"

namespace gdrbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST(NvidiaSmiMatrix, is_read_from_underlined_columns_and_the_legend) {
  const NvidiaSmiMatrix matrix = parse_nvidia_smi_matrix(
      "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV18\tPIX\tSYS\t0-3\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tSYS\tPXB\t4-7\t1\t\tN/A\n"
      "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\n"
      "NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t\n\n"
      "Legend:\n\n  X    = Self\n  SYS  = something\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n");
  EXPECT_THAT(matrix.cells, SizeIs(16));
  EXPECT_EQ(matrix.cells.at({"GPU0", "GPU1"}), "NV18");
  EXPECT_EQ(matrix.cells.at({"GPU1", "NIC1"}), "PXB");
  EXPECT_EQ(matrix.cells.at({"NIC0", "GPU0"}), "PIX");
  EXPECT_THAT(matrix.devices, ElementsAre(Pair("NIC0", "mlx5_0"), Pair("NIC1", "mlx5_bond_1")));
}

TEST(NvidiaSmiMatrix, of_older_drivers_has_the_names_of_devices) {
  const NvidiaSmiMatrix matrix = parse_nvidia_smi_matrix(
      "        GPU0    mlx5_0  CPU Affinity\nGPU0     X      PHB     0-7\nmlx5_0  PHB      X\n");
  EXPECT_EQ(matrix.cells.at({"GPU0", "mlx5_0"}), "PHB");
  EXPECT_EQ(matrix.devices.at("mlx5_0"), "mlx5_0");
}

TEST(NvidiaSmiMatrix, is_empty_where_there_is_none) {
  EXPECT_THAT(parse_nvidia_smi_matrix("").cells, IsEmpty());
  EXPECT_THAT(parse_nvidia_smi_matrix("NVIDIA-SMI has failed\n").cells, IsEmpty());
}

}  // namespace
}  // namespace gdrbench
