#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gdrbench/error.hpp"
#include "verbs/check.hpp"
#include "verbs/port.hpp"

namespace gdrbench::verbs {
namespace {

namespace fs = std::filesystem;

TEST(PathMtu, IsTheSmallerOfBothActiveMtus) {
  EXPECT_EQ(choose_path_mtu(4096, 1024, 0), 1024U);
  EXPECT_EQ(choose_path_mtu(1024, 4096, 0), 1024U);
}

TEST(PathMtu, IsTheOneAskedForWhenBothEndsCarryIt) {
  EXPECT_EQ(choose_path_mtu(4096, 2048, 1024), 1024U);
  EXPECT_EQ(choose_path_mtu(4096, 4096, 4096), 4096U);
}

TEST(PathMtu, RefusesMoreThanEitherEndCarries) {
  EXPECT_THROW(choose_path_mtu(4096, 1024, 2048), UsageError);
  EXPECT_THROW(choose_path_mtu(1024, 4096, 2048), UsageError);
}

TEST(PathMtu, RefusesWhatIsNoPathMtu) {
  EXPECT_THROW(choose_path_mtu(4096, 4096, 1500), UsageError);
  EXPECT_THROW(mtu_code(128), UsageError);
  EXPECT_EQ(mtu_code(4096), IBV_MTU_4096);
  EXPECT_EQ(mtu_bytes(IBV_MTU_256), 256U);
}

TEST(NominalLinkRate, IsSpeedTimesWidth) {
  EXPECT_EQ(nominal_link_rate(32, 2), 12'500'000'000U);   // EDR 4X, 100 Gb/s
  EXPECT_EQ(nominal_link_rate(128, 2), 50'000'000'000U);  // NDR 4X, 400 Gb/s
  EXPECT_EQ(nominal_link_rate(64, 16), 12'500'000'000U);  // HDR 2X
  EXPECT_EQ(nominal_link_rate(0, 2), 0U);
}

class DescribePort : public testing::Test {
 protected:
  DescribePort() {
    std::strcpy(device_.name, "mlx5_0");
    device_.node_type = IBV_NODE_CA;
    device_.transport_type = IBV_TRANSPORT_IB;
    port_.state = IBV_PORT_ACTIVE;
    port_.active_mtu = IBV_MTU_1024;
    port_.link_layer = IBV_LINK_LAYER_ETHERNET;
  }
  std::string unusable() const { return describe_port(device_, 1, port_).unusable; }

  ibv_device device_{};
  ibv_port_attr port_{};
};

TEST_F(DescribePort, ActiveRocePortIsUsable) {
  EXPECT_EQ(unusable(), "");
  EXPECT_EQ(describe_port(device_, 1, port_).link_layer, "Ethernet");
  EXPECT_EQ(describe_port(device_, 1, port_).active_mtu, 1024U);
}

TEST_F(DescribePort, DownPortIsUnusableAndNamesItsState) {
  port_.state = IBV_PORT_DOWN;
  EXPECT_NE(unusable().find("PORT_DOWN"), std::string::npos) << unusable();
}

TEST_F(DescribePort, IwarpIsUnusable) {
  device_.node_type = IBV_NODE_RNIC;
  device_.transport_type = IBV_TRANSPORT_IWARP;
  EXPECT_NE(unusable().find("write with immediate"), std::string::npos) << unusable();
}

TEST_F(DescribePort, SoftverbsIsToldByItsName) {
  EXPECT_EQ(describe_port(device_, 1, port_).fabric, FabricKind::hardware);
  std::strcpy(device_.name, "softverbs0");
  EXPECT_EQ(describe_port(device_, 1, port_).fabric, FabricKind::softverbs);
}

/// A root with a sysfs of its own.
class Sysfs : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / ("gdrbench-sysfs-" + std::string(6, 'X'))).string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text = "") {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void add_device(const std::string& name, const std::string& under) {
    fs::create_directories(root_ / "sys/devices" / under / "infiniband" / name);
    fs::create_directories(root_ / "sys/class/infiniband");
    fs::create_directory_symlink("../../devices/" + under + "/infiniband/" + name,
                                 root_ / "sys/class/infiniband" / name);
  }

  fs::path root_;
};

TEST_F(Sysfs, DeviceWithoutHardwareIsEmulated) {
  add_device("rxe0", "virtual");
  EXPECT_TRUE(is_emulated("rxe0", root_));
}

TEST_F(Sysfs, DeviceOnPciIsNotEmulated) {
  add_device("mlx5_0", "pci0000:b7/0000:b7:01.0");
  EXPECT_FALSE(is_emulated("mlx5_0", root_));
  EXPECT_FALSE(is_emulated("absent", root_));
}

TEST_F(Sysfs, RxeOfAnOldKernelBelowItsNetdevsPciDeviceIsEmulated) {
  add_device("rxe0", "pci0000:b7/0000:b7:01.0");
  write("sys/class/infiniband/rxe0/parent", "eth0\n");
  EXPECT_TRUE(is_emulated("rxe0", root_));
}

TEST_F(Sysfs, ReadsRateAndTransmittedBytes) {
  add_device("mlx5_0", "pci0000:b7/0000:b7:01.0");
  EXPECT_EQ(link_rate("mlx5_0", 1, root_), std::nullopt);
  EXPECT_EQ(transmitted_bytes("mlx5_0", 1, root_), std::nullopt);
  write("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
  write("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "250\n");
  EXPECT_EQ(link_rate("mlx5_0", 1, root_), 12'500'000'000U);
  EXPECT_EQ(transmitted_bytes("mlx5_0", 1, root_), 1000U);
}

TEST_F(Sysfs, TellsWhyThereIsNoDevice) {
  const auto reason_has = [this](const char* part) {
    return absence_reason(root_).find(part) != std::string::npos;
  };
  EXPECT_TRUE(reason_has("no RDMA driver is loaded")) << absence_reason(root_);
  fs::create_directories(root_ / "sys/class/infiniband");
  const std::string netns_mode = "sys/module/ib_core/parameters/netns_mode";
  for (const bool exclusive : {false, true}) {
    write(netns_mode, exclusive ? "N\n" : "Y\n");
    EXPECT_TRUE(reason_has("is empty")) << absence_reason(root_);
    EXPECT_EQ(reason_has("namespace"), exclusive) << absence_reason(root_);
    EXPECT_EQ(reason_has("--check netns"), exclusive) << absence_reason(root_);
  }
  add_device("mlx5_0", "pci0000:b7/0000:b7:01.0");
  EXPECT_TRUE(reason_has("ib_uverbs")) << absence_reason(root_);
  write("sys/class/infiniband_verbs/abi_version", "6\n");
  write("sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
  EXPECT_TRUE(reason_has("/dev/infiniband/uverbs3 does not exist")) << absence_reason(root_);
  write("dev/infiniband/uverbs3");
  EXPECT_TRUE(reason_has("provider")) << absence_reason(root_);
}

}  // namespace
}  // namespace gdrbench::verbs
