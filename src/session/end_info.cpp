#include "gdrbench/end_info.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gdrbench/memory.hpp"
#include "gdrbench/version.hpp"
#include "topology/pci_path.hpp"
#include "verbs/device.hpp"

namespace gdrbench {
namespace {

// ARM kernels give no model name; the result then says so by an empty text.
std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name") || line.starts_with("Model"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "";
}

// Those that this process may use, which in a container are fewer than the machine has.
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more cores than a cpu_set_t holds
}

std::uint64_t memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

int numa_nodes() {
  std::error_code absent;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", absent)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos) ++count;
  }
  return count == 0 ? 1 : count;
}

// A broken driver must not keep the TCP paths from being measured: its error is part of the description.
CudaInfo describe_cuda() {
  GpuSummary gpu;
  try {
    gpu = gpu_summary();
  } catch (const std::exception& fault) {
    gpu.unavailable = fault.what();
  }
  return {.backend = gpu.backend,
          .unavailable = gpu.unavailable,
          .count = gpu.count,
          .name = gpu.name,
          .driver = gpu.driver,
          .uuid = gpu.uuid,
          .pci_address = gpu.pci_address,
          .gpu_direct_rdma = gpu.gpu_direct_rdma,
          .dmabuf = gpu.dmabuf};
}

std::vector<GpuInfo> describe_gpus() {
  std::vector<GpuInfo> gpus;
  try {
    const int count = gpu_summary().count;
    for (int index = 0; index < count; ++index) {
      const GpuSummary gpu = gpu_summary(index);
      gpus.push_back({.index = index,
                      .name = gpu.name,
                      .uuid = gpu.uuid,
                      .pci_address = gpu.pci_address,
                      .numa_node = topology::numa_node(gpu.pci_address)});
    }
  } catch (const std::exception&) {  // describe_cuda() has the reason
  }
  return gpus;
}

// With where the device sits; distances are told by this end, the only one that can see its buses.
RdmaDeviceInfo describe_device(const verbs::DeviceInfo& device, const std::vector<GpuInfo>& gpus) {
  const std::string address = topology::rdma_pci_address(device.name);
  RdmaDeviceInfo info{.name = device.name,
                      .port = device.port,
                      .fabric = device.fabric,
                      .link_layer = device.link_layer,
                      .active_mtu = device.active_mtu,
                      .link_bytes_per_second = static_cast<double>(device.link_bytes_per_second),
                      .unusable = device.unusable,
                      .pci_address = address,
                      .numa_node = topology::numa_node(address)};
  for (const GpuInfo& gpu : gpus)
    info.gpu_distances.push_back(topology::distance_between(gpu.pci_address, address));
  return info;
}

RdmaInfo describe_rdma(const std::vector<GpuInfo>& gpus) {
  RdmaInfo rdma;
  try {
    for (const verbs::DeviceInfo& device : verbs::list_devices())
      rdma.devices.push_back(describe_device(device, gpus));
    if (rdma.devices.empty()) rdma.unavailable = verbs::no_device_reason();
  } catch (const std::exception& fault) {
    rdma.unavailable = fault.what();
  }
  return rdma;
}

}  // namespace

EndInfo describe_this_end() {
  utsname names{};
  uname(&names);
  std::vector<GpuInfo> gpus = describe_gpus();
  RdmaInfo rdma = describe_rdma(gpus);
  return {.version = version,
          .commit = commit,
          .host = names.nodename,
          .kernel = std::string(names.sysname) + " " + names.release,
          .cpu = {.model = cpu_model(), .cores = usable_cores()},
          .memory_bytes = memory_bytes(),
          .numa_nodes = numa_nodes(),
          .cuda = describe_cuda(),
          .gpus = std::move(gpus),
          .rdma = std::move(rdma)};
}

}  // namespace gdrbench
