#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "verbs/device.hpp"

namespace gdrbench::verbs {

/// 256 … 4096 bytes.
std::uint32_t mtu_bytes(ibv_mtu mtu);
/// Throws UsageError when no path MTU has so many bytes.
ibv_mtu mtu_code(std::uint32_t bytes);

/// The path MTU of a connection, bytes: the smaller of both active MTUs, or the one asked for (0: none).
/// Throws UsageError when that is no path MTU or larger than either active one.
std::uint32_t choose_path_mtu(std::uint32_t own_active, std::uint32_t remote_active, std::uint32_t asked);

/// Active speed × width of a port as the kernel rates them, bytes per second; 0 when a code is unknown.
std::uint64_t nominal_link_rate(std::uint8_t speed_code, std::uint8_t width_code);

/// Whether the kernel, our user-space library, or a NIC moves the bytes of the device.
FabricKind fabric_kind(const ibv_device& device, const ibv_port_attr& port);

DeviceInfo describe_port(const ibv_device& device, std::uint8_t number, const ibv_port_attr& port);

/// What sysfs says about RDMA devices and libibverbs does not. `root` stands in for "/" in the tests.

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
