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

/// Why libibverbs offers no device.
std::string absence_reason(const std::filesystem::path& root);

}  // namespace gdrbench::verbs
