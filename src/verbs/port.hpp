#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "verbs/device_list.hpp"

namespace gdrbench::verbs {

/// 256 … 4096 bytes.
std::uint32_t mtu_bytes(ibv_mtu mtu);
/// Throws UsageError when no path MTU has so many bytes.
ibv_mtu mtu_code(std::uint32_t bytes);

/// The path MTU of a connection, bytes: the smaller of both active MTUs, or the one asked for (0: none).
/// Throws UsageError when that is no path MTU or larger than either active one.
std::uint32_t choose_path_mtu(std::uint32_t own_active, std::uint32_t peer_active, std::uint32_t asked);

/// Active speed × width of a port as the kernel rates them, bytes per second; 0 when a code is unknown.
std::uint64_t nominal_link_rate(std::uint8_t speed_code, std::uint8_t width_code);

/// Whether the kernel, our user-space library, or a NIC moves the bytes of the device.
FabricKind fabric_kind(const ibv_device& device, const ibv_port_attr& port);

DeviceInfo describe_port(const ibv_device& device, std::uint8_t number, const ibv_port_attr& port);

}  // namespace gdrbench::verbs
