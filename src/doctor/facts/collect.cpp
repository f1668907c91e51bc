#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <sstream>

#include "cuda/device.hpp"
#include "doctor/facts/child_process.hpp"
#include "doctor/facts/facts.hpp"
#include "doctor/facts/kernel.hpp"
#include "gdrbench/error.hpp"
#include "topology/root.hpp"
#include "verbs/device.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/port.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;
using DriverCall = std::function<json()>;

// What follows may crash or hang in a driver: it runs in a child process.

GpuAnswer query_gpu(int index) {
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

// "PORT_ACTIVE" → "ACTIVE".
std::string state_name(ibv_port_state state) {
  const std::string name = ibv_port_state_str(state);
  constexpr std::string_view prefix = "PORT_";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

void query_ports(RdmaAnswer& answer, ibv_device& device, ibv_context& context) {
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
                            .max_mtu = static_cast<int>(verbs::mtu_bytes(port.max_mtu))});
  }
}

void query_dmabuf(RdmaAnswer& answer, ibv_context& context) {
  ibv_pd* const domain = ibv_alloc_pd(&context);
  if (domain == nullptr) return;
  answer.dmabuf_probe = verbs::probe_dmabuf(*domain);
  ibv_dealloc_pd(domain);
}

// The GPUs, or why there are none.
Answers query_cuda() {
  Answers answers;
  answers.cuda_unavailable = cuda::unavailable_reason();
  for (int index = 0; index < cuda::device_count(); ++index) try {
      answers.gpus.push_back(query_gpu(index));
    } catch (const Error& fault) {
      answers.probes.push_back({.what = "ask cuda",
                                .device = "",
                                .gpu = std::to_string(index),
                                .outcome = "failed",
                                .text = fault.what()});
    }
  return answers;
}

std::vector<std::string> list_verbs_devices() {
  const verbs::DeviceList list;
  std::vector<std::string> names;
  for (const ibv_device* device : list.devices()) names.emplace_back(device->name);
  return names;
}

RdmaAnswer query_verbs(const std::string& name) {
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
    query_ports(answer, *device, *context);
    query_dmabuf(answer, *context);
    return answer;
  }
  throw Error(fmt::format("RDMA device {} disappeared after it was listed", name));
}

// From here on in this process.

ProbeResult no_answer(const char* what, const std::string& device, const StepResult& result) {
  return {.what = what,
          .device = device,
          .gpu = "",
          .outcome = std::string(outcome(result.end)),
          .text = result.text};
}

void collect_cuda(Answers& answers, const CollectOptions& options) {
  const DriverCall steps[] = {[] { return to_json(query_cuda()); }};
  const StepResult result = run_steps(steps, options.timeout).front();
  if (result.end != ChildEnd::finished) {
    answers.cuda_unavailable = fmt::format("CUDA does not respond: {}", result.text);
    answers.probes.push_back(no_answer("ask cuda", "", result));
    return;
  }
  Answers found = answers_from_json(result.answer);
  answers.cuda_unavailable = std::move(found.cuda_unavailable);
  answers.gpus = std::move(found.gpus);
  answers.probes.insert(answers.probes.end(), found.probes.begin(), found.probes.end());
}

void collect_verbs(Answers& answers, const CollectOptions& options) {
  const DriverCall list[] = {[] { return json(list_verbs_devices()); }};
  const StepResult listed = run_steps(list, options.timeout).front();
  if (listed.end != ChildEnd::finished || !listed.answer.is_array()) {
    answers.probes.push_back(no_answer("ask verbs", "", listed));
    return;
  }
  answers.verbs_queried = true;
  std::vector<std::string> devices;
  for (const json& name : listed.answer)
    if (name.is_string()) devices.push_back(name.get<std::string>());
  std::vector<DriverCall> steps;
  steps.reserve(devices.size());
  for (const std::string& device : devices)
    steps.emplace_back([device] {
      Answers one;
      one.rdma.push_back(query_verbs(device));
      return to_json(one);
    });
  const std::vector<StepResult> results = run_steps(steps, options.timeout);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Answers one = answers_from_json(results[i].answer);
    if (!one.rdma.empty()) {
      answers.rdma.push_back(one.rdma.front());
      continue;
    }
    // Listed all the same: no provider is missing.
    answers.rdma.push_back(
        {.device = devices[i], .fabric = "", .open_errno = {}, .dmabuf_probe = {}, .ports = {}});
    answers.probes.push_back(no_answer("ask verbs", devices[i], results[i]));
  }
}

// Root in a container may lack CAP_SYS_ADMIN, without which the kernel gives only the first 64
// bytes of PCI configuration space.
std::optional<bool> is_privileged() {
  constexpr int cap_sys_admin = 21;
  std::istringstream status(topology::Root().read("proc/self/status").text);
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) {
      const std::uint64_t capabilities = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 16);
      return (capabilities >> cap_sys_admin & 1) != 0;
    }
  return std::nullopt;
}

}  // namespace

Answers collect_answers(const CollectOptions& options) {
  Answers answers;
  collect_cuda(answers, options);
  collect_verbs(answers, options);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    answers.memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? ~std::uint64_t{0} : limit.rlim_cur;
  answers.privileged = is_privileged();
  answers.kernel_log = read_kernel_log();
  return answers;
}

}  // namespace gdrbench::doctor
