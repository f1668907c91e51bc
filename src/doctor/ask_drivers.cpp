#include "doctor/ask_drivers.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "cuda/backend.hpp"
#include "cuda/device.hpp"
#include "gdrbench/error.hpp"
#include "verbs/device.hpp"
#include "verbs/gpu_registration.hpp"
#include "verbs/port.hpp"

namespace gdrbench::doctor {
namespace {

GpuAnswer ask_gpu(int index) {
  GpuAnswer gpu;
  gpu.index = index;
  const cuda::DeviceInfo info = cuda::device_info(index);
  gpu.pci_address = info.pci_address;
  gpu.name = info.name;
  gpu.gpu_direct_rdma = info.gpu_direct_rdma;
  gpu.dmabuf = info.dmabuf;
  gpu.vmm_rdma = info.vmm_rdma;
  gpu.writes_ordering = info.writes_ordering;
  return gpu;
}

// "ACTIVE" of "PORT_ACTIVE".
std::string state_name(ibv_port_state state) {
  const std::string name = ibv_port_state_str(state);
  constexpr std::string_view prefix = "PORT_";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

void ask_ports(RdmaAnswer& answer, ibv_device& device, ibv_context& context) {
  ibv_device_attr attributes{};
  if (ibv_query_device(&context, &attributes) != 0) return;
  for (std::uint8_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (ibv_query_port(&context, number, &port) != 0) continue;
    const verbs::DeviceInfo info = verbs::describe_port(device, number, port);
    answer.fabric = to_string(info.fabric);
    answer.ports.push_back({.number = number,
                            .state = state_name(port.state),
                            .link_layer = info.link_layer,
                            .active_mtu = static_cast<int>(info.active_mtu),
                            .most_mtu = static_cast<int>(verbs::mtu_bytes(port.max_mtu))});
  }
}

void ask_dmabuf(RdmaAnswer& answer, ibv_context& context) {
  ibv_pd* const domain = ibv_alloc_pd(&context);
  if (domain == nullptr) return;
  answer.dmabuf_probe = verbs::probe_dmabuf(*domain);
  ibv_dealloc_pd(domain);
}

}  // namespace

Answers ask_cuda() {
  Answers answers;
  answers.cuda_unavailable = cuda::unavailable_reason();
  for (int index = 0; index < cuda::device_count(); ++index) try {
      answers.gpus.push_back(ask_gpu(index));
    } catch (const Error& fault) {
      answers.probes.push_back({.what = "ask cuda",
                                .device = "",
                                .gpu = std::to_string(index),
                                .outcome = "failed",
                                .text = fault.what()});
    }
  return answers;
}

std::vector<std::string> ask_verbs_devices() {
  const verbs::DeviceList list;
  std::vector<std::string> names;
  for (const ibv_device* device : list.devices()) names.emplace_back(device->name);
  return names;
}

RdmaAnswer ask_verbs(const std::string& name) {
  const verbs::DeviceList list;
  for (ibv_device* device : list.devices()) {
    if (name != device->name) continue;
    RdmaAnswer answer{.device = name, .fabric = "hardware", .open_errno = 0, .dmabuf_probe = {}, .ports = {}};
    errno = 0;
    const verbs::Context context = verbs::own<verbs::CloseDevice>(ibv_open_device(device));
    if (!context) {
      answer.open_errno = errno != 0 ? errno : EIO;
      return answer;
    }
    ask_ports(answer, *device, *context);
    ask_dmabuf(answer, *context);
    return answer;
  }
  throw Error(fmt::format("RDMA device {} was listed, and then it was not", name));
}

}  // namespace gdrbench::doctor
