#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"

namespace gdrbench::verbs {

/// One port of an RDMA device that libibverbs offers on this machine.
struct DeviceInfo {
  std::string name;  ///< "mlx5_0"
  std::uint8_t port = 1;
  FabricKind fabric = FabricKind::hardware;
  std::string link_layer;                   ///< "Ethernet", "InfiniBand"
  std::uint32_t active_mtu = 0;             ///< bytes
  std::uint64_t link_bytes_per_second = 0;  ///< active speed × width, data rate as verbs reports it
  std::string unusable;                     ///< why it cannot be used (port down, iWARP …), "" if it can
};

/// All devices and ports, in libibverbs' order. Empty when there are none; never throws for an absent device.
std::vector<DeviceInfo> list_devices();

/// Why `list_devices()` is empty: no device in sysfs, device node not mapped, provider library missing …
std::string no_device_reason();

nlohmann::json to_json(const DeviceInfo& info);

}  // namespace gdrbench::verbs
