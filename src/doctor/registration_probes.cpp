#include "doctor/registration_probes.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "doctor/probe_error.hpp"
#include "doctor/steps.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "verbs/check.hpp"
#include "verbs/device.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

constexpr std::uint64_t length = 64 << 10;
constexpr int access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

enum class How { host, dmabuf, peermem };

const char* name_of(How how) {
  switch (how) {
    case How::dmabuf:
      return "register cuda dmabuf";
    case How::peermem:
      return "register cuda peermem";
    case How::host:
      break;
  }
  return "register host";
}

// Kept by the child from step to step: a GPU's first use takes a second.
using Buffers = std::map<int, std::unique_ptr<Buffer>>;

const Buffer& buffer_for(Buffers& buffers, How how, int gpu) {
  std::unique_ptr<Buffer>& buffer = buffers[how == How::host ? -1 : gpu];
  const MemoryKind kind = how == How::host ? MemoryKind::host : MemoryKind::cuda;
  if (!buffer) buffer = std::make_unique<Buffer>(BufferOptions{.kind = kind, .length = length, .gpu = gpu});
  return *buffer;
}

ibv_mr* register_memory(ibv_pd* domain, const MemoryView& view, How how) {
  if (how != How::dmabuf) return ibv_reg_mr(domain, view.address, view.length, access_flags);
  return ibv_reg_dmabuf_mr(domain, view.dmabuf_offset, view.length,
                           reinterpret_cast<std::uintptr_t>(view.address), view.dmabuf_fd, access_flags);
}

void register_on(ibv_device& device, const Buffer& buffer, How how) {
  const std::string tried = fmt::format("{} on {}", name_of(how), device.name);
  const verbs::Context context = verbs::own<verbs::CloseDevice>(
      verbs::check_pointer(ibv_open_device(&device), verbs::Step::open, tried));
  ibv_pd* const domain = verbs::check_pointer(ibv_alloc_pd(context.get()), verbs::Step::create, tried);
  ibv_mr* const region = register_memory(domain, buffer.view(), how);
  const int errno_value = errno;
  if (region != nullptr) ibv_dereg_mr(region);
  ibv_dealloc_pd(domain);
  if (region == nullptr)
    verbs::throw_system_error(
        how == How::host ? verbs::Step::register_host_memory : verbs::Step::register_gpu_memory, errno_value,
        tried);
}

void attempt(const std::string& name, const Buffer& buffer, How how) {
  if (how == How::dmabuf && buffer.view().dmabuf_fd < 0) throw Unavailable(buffer.no_dmabuf_reason());
  const verbs::DeviceList list;
  for (ibv_device* device : list.devices())
    if (name == device->name) return register_on(*device, buffer, how);
  throw Unavailable(fmt::format("RDMA device {} is gone", name));
}

}  // namespace

std::vector<ProbeAnswer> probe_registrations(const Answers& answers, std::chrono::milliseconds patience) {
  std::vector<ProbeAnswer> probes;
  std::vector<std::function<json()>> steps;
  const auto buffers = std::make_shared<Buffers>();
  const auto plan = [&](const std::string& device, How how, const GpuAnswer& gpu) {
    probes.push_back(
        {.what = name_of(how), .device = device, .gpu = gpu.pci_address, .outcome = "", .text = ""});
    steps.emplace_back([=, index = gpu.index]() -> json {
      attempt(device, buffer_for(*buffers, how, index), how);
      return nullptr;
    });
  };
  for (const RdmaAnswer& device : answers.rdma) {
    if (device.open_errno != 0) continue;
    plan(device.device, How::host, {});
    for (const GpuAnswer& gpu : answers.gpus)
      for (const How how : {How::dmabuf, How::peermem}) plan(device.device, how, gpu);
  }
  const std::vector<StepResult> results = run_steps(steps, patience);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    probes[i].outcome = outcome(results[i].end);
    set_error(probes[i], results[i].text);
  }
  return probes;
}

}  // namespace gdrbench::doctor
