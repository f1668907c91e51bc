#include "verbs/device_list.hpp"

#include <fmt/format.h>

#include "verbs/check.hpp"
#include "verbs/device.hpp"
#include "verbs/port.hpp"
#include "verbs/sysfs.hpp"

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

}  // namespace gdrbench::verbs
