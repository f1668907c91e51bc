#include "verbs/sysfs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "base/confirm.hpp"

namespace gdrbench::verbs {
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
