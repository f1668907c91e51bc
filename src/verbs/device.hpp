#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"
#include "verbs/check.hpp"
#include "verbs/gid.hpp"

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

class CompletionQueue;
struct CompletionQueueAttributes;
class ProtectionDomain;

struct FreeDeviceList {
  void operator()(ibv_device** list) const noexcept { ibv_free_device_list(list); }
};
/// The devices libibverbs offers; empty when there are none. Entries are valid while the list lives.
class DeviceList {
 public:
  DeviceList();
  std::span<ibv_device*> devices() const { return {list_.get(), count_}; }

 private:
  std::unique_ptr<ibv_device*[], FreeDeviceList> list_;
  std::size_t count_ = 0;
};

struct CloseDevice {
  static constexpr const char* name = "ibv_close_device";
  static int destroy(ibv_context* context) { return ibv_close_device(context); }
};
using Context = Handle<ibv_context, CloseDevice>;

/// An open RDMA device and the one port of it that is used. Factory of everything that lives on it.
class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Opens the device of that name, or the first usable one when it is empty. Throws Unavailable with a
  /// reason when the device is missing, may not be opened, or its port cannot carry RC queue pairs.
  static std::shared_ptr<const Device> open(const std::string& name, std::uint8_t port);

  const std::string& name() const { return info_.name; }
  const DeviceInfo& info() const { return info_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  const ibv_port_attr& port() const { return port_; }
  ibv_context* context() const { return context_.get(); }

  /// The filled slots of the port's GID table, in table order.
  std::vector<GidEntry> gids() const;
  /// The slot asked for, or the one chosen by choose_gid. Throws Unavailable when there is none.
  GidEntry select_gid(std::optional<int> asked) const;

  std::shared_ptr<const ProtectionDomain> allocate_protection_domain() const;
  std::shared_ptr<CompletionQueue> create_completion_queue(const CompletionQueueAttributes& attributes) const;

 private:
  Device(ibv_device& device, std::uint8_t port);

  Context context_;
  ibv_device_attr attributes_{};
  ibv_port_attr port_{};
  DeviceInfo info_;
};

}  // namespace gdrbench::verbs
