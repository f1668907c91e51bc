#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What sysfs says about RDMA devices and libibverbs does not. `root` stands in for "/" in the tests.
namespace gdrbench::verbs {

/// Whether the kernel emulates the device (rdma_rxe, siw): it has no parent in hardware, or names its netdev
/// in rdma_rxe's `parent` attribute (older kernels hang rxe below the netdev's PCI device).
bool is_emulated(const std::string& device, const std::filesystem::path& root = "/");

/// Data rate of the port from its `rate` ("100 Gb/sec (4X EDR)"), bytes per second.
std::optional<std::uint64_t> link_rate(const std::string& device, int port,
                                       const std::filesystem::path& root = "/");

/// Payload and headers transmitted by the port since it came up, bytes: port_xmit_data counts 4-byte words
/// (IBTA 16.1.3.5). Absent for emulated devices.
std::optional<std::uint64_t> transmitted_bytes(const std::string& device, int port,
                                               const std::filesystem::path& root = "/");

/// Names of the network devices on the same function, "ib0".
std::vector<std::string> netdevs(const std::string& device, const std::filesystem::path& root = "/");

/// The RDMA devices that the kernel shows to this process, "mlx5_0".
std::vector<std::string> kernel_devices(const std::filesystem::path& root = "/");

/// What programs open to use a device.
struct DeviceNode {
  std::string device;  ///< "mlx5_0"; empty where the kernel does not tell
  std::string path;    ///< "dev/infiniband/uverbs0"
  bool exists = false;
};
/// Those that the kernel has made; in a container not all need to be mapped.
std::vector<DeviceNode> device_nodes(const std::filesystem::path& root = "/");

/// Why libibverbs offers no device, from the nearest cause on.
std::string absence_reason(const std::filesystem::path& root);

}  // namespace gdrbench::verbs
