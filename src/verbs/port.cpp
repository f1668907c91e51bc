#include "verbs/port.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

const char* state_name(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "PORT_DOWN";
    case IBV_PORT_INIT:
      return "PORT_INIT";
    case IBV_PORT_ARMED:
      return "PORT_ARMED";
    case IBV_PORT_ACTIVE:
      return "PORT_ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "PORT_ACTIVE_DEFER";
    default:
      return "PORT_NOP";
  }
}

// Why queue pairs of type RC cannot be connected through this port, "" if they can.
std::string unusable_reason(const ibv_device& device, std::uint8_t number, const ibv_port_attr& port) {
  if (device.transport_type == IBV_TRANSPORT_IWARP)
    return fmt::format("{} is an iWARP device: no write with immediate and no connection by GID",
                       device.name);
  if (device.transport_type != IBV_TRANSPORT_IB)
    return fmt::format("{} has no InfiniBand or RoCE transport (node type {})", device.name,
                       ibv_node_type_str(device.node_type));
  if (port.state != IBV_PORT_ACTIVE)
    return fmt::format("port {} of {} is {}, not PORT_ACTIVE: check cable, switch and 'ip link'{}{}", number,
                       device.name, state_name(port.state),
                       port.link_layer == IBV_LINK_LAYER_INFINIBAND ? ", and that a subnet manager runs" : "",
                       confirm_with("ports"));
  return "";
}

std::string link_layer_name(const ibv_port_attr& port) {
  // Devices older than RoCE leave it unspecified.
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

}  // namespace

std::uint32_t mtu_bytes(ibv_mtu mtu) {
  return 128U << static_cast<unsigned>(mtu);
}

ibv_mtu mtu_code(std::uint32_t bytes) {
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
    if (mtu_bytes(mtu) == bytes) return mtu;
  throw UsageError(fmt::format("path MTU {} is none of 256, 512, 1024, 2048, 4096 bytes", bytes));
}

std::uint32_t choose_path_mtu(std::uint32_t own_active, std::uint32_t remote_active, std::uint32_t asked) {
  const std::uint32_t smaller = std::min(own_active, remote_active);
  if (asked == 0) return smaller;
  mtu_code(asked);
  if (asked > smaller)
    throw UsageError(
        fmt::format("path MTU {} is larger than the active MTU of this end ({}) or of the remote end ({})",
                    asked, own_active, remote_active));
  return asked;
}

std::uint64_t nominal_link_rate(std::uint8_t speed_code, std::uint8_t width_code) {
  // Codes of PortInfo.LinkSpeedActive and LinkWidthActive (IBTA 14.2.5.6); megabits per second and lane as
  // the kernel's `rate` gives them.
  constexpr std::pair<std::uint8_t, std::uint64_t> lane_megabits[] = {
      {1, 2'500},   {2, 5'000},   {4, 10'000},  {8, 10'000},
      {16, 14'000}, {32, 25'000}, {64, 50'000}, {128, 100'000}};
  constexpr std::pair<std::uint8_t, std::uint64_t> lanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  for (const auto& [speed, megabits] : lane_megabits)
    for (const auto& [width, count] : lanes)
      if (speed == speed_code && width == width_code) return megabits * 1'000'000 / 8 * count;
  return 0;
}

FabricKind fabric_kind(const ibv_device& device, const ibv_port_attr& port) {
  const std::string_view name = device.name;
  if (name.starts_with("softverbs")) return FabricKind::softverbs;
  const bool is_rxe = device.node_type == IBV_NODE_CA && port.link_layer == IBV_LINK_LAYER_ETHERNET;
  return is_rxe && is_emulated(device.name) ? FabricKind::soft_roce : FabricKind::hardware;
}

DeviceInfo describe_port(const ibv_device& device, std::uint8_t number, const ibv_port_attr& port) {
  return {
      .name = device.name,
      .port = number,
      .fabric = fabric_kind(device, port),
      .link_layer = link_layer_name(port),
      .active_mtu = mtu_bytes(port.active_mtu),
      // The kernel clips speeds above NDR in what it tells libibverbs, not in sysfs.
      .link_bytes_per_second =
          link_rate(device.name, number).value_or(nominal_link_rate(port.active_speed, port.active_width)),
      .unusable = unusable_reason(device, number, port)};
}

namespace {

namespace fs = std::filesystem;

fs::path device_folder(const std::string& device, const fs::path& root) {
  return root / "sys/class/infiniband" / device;
}

fs::path port_folder(const std::string& device, int port, const fs::path& root) {
  return device_folder(device, root) / "ports" / std::to_string(port);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault))
    names.push_back(entry->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The word or number that a file begins with. A recorded tree may hold pipes, which would be waited for.
template <class Value>
std::optional<Value> read_value(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  Value value{};
  std::ifstream stream(file);
  if (!(stream >> value)) return std::nullopt;
  return value;
}

}  // namespace

bool is_emulated(const std::string& device, const fs::path& root) {
  std::error_code error;
  const fs::path folder = device_folder(device, root);
  if (fs::exists(folder / "parent", error)) return true;
  const fs::path resolved = fs::canonical(folder, error);
  return !error && resolved.string().find("/devices/virtual/") != std::string::npos;
}

std::optional<std::uint64_t> link_rate(const std::string& device, int port, const fs::path& root) {
  const auto gigabits = read_value<double>(port_folder(device, port, root) / "rate");
  if (!gigabits) return std::nullopt;
  return static_cast<std::uint64_t>(*gigabits * 1e9 / 8);
}

std::optional<std::uint64_t> transmitted_bytes(const std::string& device, int port, const fs::path& root) {
  const auto words = read_value<std::uint64_t>(port_folder(device, port, root) / "counters/port_xmit_data");
  if (!words) return std::nullopt;
  return *words * 4;
}

std::vector<std::string> netdevs(const std::string& device, const fs::path& root) {
  return names_in(device_folder(device, root) / "device/net");
}

std::vector<std::string> kernel_devices(const fs::path& root) {
  return names_in(root / "sys/class/infiniband");
}

std::vector<DeviceNode> device_nodes(const fs::path& root) {
  std::vector<DeviceNode> nodes;
  const fs::path folder = root / "sys/class/infiniband_verbs";
  std::error_code ignored;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with("uverbs")) continue;
    nodes.push_back({.device = read_value<std::string>(folder / name / "ibdev").value_or(""),
                     .path = "dev/infiniband/" + name,
                     .exists = fs::exists(root / "dev/infiniband" / name, ignored)});
  }
  return nodes;
}

std::string absence_reason(const fs::path& root) {
  const std::string confirm = confirm_with("rdma_devices");
  std::error_code ignored;
  if (!fs::exists(root / "sys/class/infiniband", ignored))
    return "no RDMA device: no RDMA driver is loaded (/sys/class/infiniband does not exist)" + confirm;
  const std::vector<std::string> devices = kernel_devices(root);
  if (devices.empty()) {
    const std::string empty = "no RDMA device: /sys/class/infiniband is empty";
    const auto mode = read_value<std::string>(root / "sys/module/ib_core/parameters/netns_mode");
    if (mode == "N")
      return empty +
             ": each network namespace has RDMA devices of its own (see 'rdma system show'), and this "
             "one none" +
             confirm_with("netns");
    return empty + ": no NIC here does RDMA, or its RDMA driver is not loaded" + confirm;
  }

  const std::vector<DeviceNode> nodes = device_nodes(root);
  if (nodes.empty())
    return fmt::format("no usable RDMA device: the kernel has {} but no user access to it: load ib_uverbs{}",
                       fmt::join(devices, ", "), confirm);
  std::vector<std::string> missing;
  for (const DeviceNode& node : nodes)
    if (!node.exists) missing.push_back("/" + node.path);
  if (!missing.empty())
    return fmt::format(
        "no usable RDMA device: the kernel has {} but {} does not exist: map /dev/infiniband into the "
        "container{}",
        fmt::join(devices, ", "), fmt::join(missing, ", "), confirm);
  return fmt::format(
      "no usable RDMA device: the kernel has {} but libibverbs has no provider for it: install "
      "ibverbs-providers (rdma-core), or the vendor's provider in the container{}",
      fmt::join(devices, ", "), confirm);
}

}  // namespace gdrbench::verbs
