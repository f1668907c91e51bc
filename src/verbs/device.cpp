#include "verbs/device.hpp"

#include <fmt/format.h>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"
#include "verbs/check.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/port.hpp"

namespace gdrbench::verbs {
namespace {

DeviceInfo unreadable(const ibv_device& device, std::uint8_t port, const std::string& tried,
                      int errno_value) {
  DeviceInfo info;
  info.name = device.name;
  info.port = port;
  info.unusable = fmt::format("{}: {}", tried, explain(Step::open, errno_value));
  return info;
}

void append_ports(ibv_device& device, std::vector<DeviceInfo>& infos) {
  const Context context = own<CloseDevice>(ibv_open_device(&device));
  if (!context) {
    infos.push_back(unreadable(device, 1, fmt::format("open RDMA device {}", device.name), errno));
    return;
  }
  ibv_device_attr attributes{};
  if (const int returned = ibv_query_device(context.get(), &attributes); returned != 0) {
    infos.push_back(unreadable(device, 1, fmt::format("query attributes of {}", device.name), returned));
    return;
  }
  for (std::uint8_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (const int returned = ibv_query_port(context.get(), number, &port); returned != 0)
      infos.push_back(
          unreadable(device, number, fmt::format("query port {} of {}", number, device.name), returned));
    else
      infos.push_back(describe_port(device, number, port));
  }
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  const DeviceList list;
  std::vector<DeviceInfo> infos;
  for (ibv_device* const device : list.devices()) append_ports(*device, infos);
  return infos;
}

std::string no_device_reason() {
  return absence_reason("/");
}

nlohmann::json to_json(const DeviceInfo& info) {
  return {{"name", info.name},
          {"port", info.port},
          {"fabric", to_string(info.fabric)},
          {"link_layer", info.link_layer},
          {"active_mtu", info.active_mtu},
          {"link_bytes_per_second", info.link_bytes_per_second},
          {"unusable", info.unusable}};
}

namespace {

GidType gid_type(std::uint32_t code) {
  switch (code) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::roce_v1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::roce_v2;
    default:
      return GidType::infiniband;
  }
}

}  // namespace

DeviceList::DeviceList() {
  int count = 0;
  list_.reset(ibv_get_device_list(&count));
  if (list_) count_ = static_cast<std::size_t>(count);
}

Device::Device(ibv_device& device, std::uint8_t port) : context_(own<CloseDevice>(ibv_open_device(&device))) {
  if (!context_)
    throw Unavailable(fmt::format("open RDMA device {}: {}", device.name, explain(Step::open, errno)));
  check_returned(ibv_query_device(context_.get(), &attributes_), Step::open,
                 fmt::format("query attributes of {}", device.name));
  if (port == 0 || port > attributes_.phys_port_cnt)
    throw Unavailable(fmt::format("{} has no port {}: its ports are 1 to {}", device.name, port,
                                  attributes_.phys_port_cnt));
  check_returned(ibv_query_port(context_.get(), port, &port_), Step::open,
                 fmt::format("query port {} of {}", port, device.name));
  info_ = describe_port(device, port, port_);
  if (!info_.unusable.empty()) throw Unavailable(info_.unusable);
}

std::shared_ptr<const Device> Device::open(const std::string& name, std::uint8_t port) {
  const DeviceList list;
  if (list.devices().empty()) throw Unavailable(no_device_reason());
  std::string reasons;
  for (ibv_device* const device : list.devices()) {
    if (!name.empty() && name != device->name) {
      reasons += fmt::format("{}{}", reasons.empty() ? "" : ", ", device->name);
      continue;
    }
    try {
      return std::shared_ptr<const Device>(new Device(*device, port));
    } catch (const Unavailable& error) {
      if (!name.empty()) throw;
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", error.what());
    }
  }
  if (name.empty()) throw Unavailable("no usable RDMA device: " + reasons);
  throw Unavailable(fmt::format("no RDMA device {} here; there are: {}", name, reasons));
}

std::vector<GidEntry> Device::gids() const {
  std::vector<GidEntry> table;
  for (int index = 0; index < port_.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    // Empty slots read as EINVAL or ENODATA, or as zeros.
    if (ibv_query_gid_ex(context_.get(), info_.port, static_cast<std::uint32_t>(index), &entry, 0) != 0)
      continue;
    GidEntry slot{.type = gid_type(entry.gid_type), .index = index, .netdev_ifindex = entry.ndev_ifindex};
    std::copy(std::begin(entry.gid.raw), std::end(entry.gid.raw), slot.gid.begin());
    if (slot.gid != GidBytes{}) table.push_back(slot);
  }
  return table;
}

GidEntry Device::select_gid(std::optional<int> asked) const {
  const std::vector<GidEntry> table = gids();
  const std::optional<int> index = asked ? asked : choose_gid(table);
  if (!index)
    throw Unavailable(
        fmt::format("the GID table of {} port {} is empty: give its netdev an IP address and bring it up{}",
                    info_.name, info_.port, confirm_with("gids")));
  for (const GidEntry& entry : table)
    if (entry.index == *index) return entry;
  throw Unavailable(
      fmt::format("slot {} of the GID table of {} port {} is empty: leave --gid-index out to have one "
                  "chosen",
                  *index, info_.name, info_.port));
}

std::shared_ptr<const ProtectionDomain> Device::allocate_protection_domain() const {
  return std::shared_ptr<const ProtectionDomain>(new ProtectionDomain(shared_from_this()));
}

std::shared_ptr<CompletionQueue> Device::create_completion_queue(
    const CompletionQueueAttributes& attributes) const {
  return std::shared_ptr<CompletionQueue>(new CompletionQueue(shared_from_this(), attributes));
}

}  // namespace gdrbench::verbs
