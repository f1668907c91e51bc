#include "doctor/probes/registration.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>

#include "doctor/facts/child_process.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "verbs/check.hpp"
#include "verbs/device.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

// The first name of an errno value that is followed by its description.
int errno_in(const std::string& text) {
  constexpr int max_errno = 133;
  std::size_t first = std::string::npos;
  int found = 0;
  for (int value = 1; value <= max_errno; ++value) {
    const std::string name = errno_name(value);
    const std::size_t at = text.find(name + " (");
    if (at == std::string::npos || at >= first) continue;
    if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_'))
      continue;
    first = at;
    found = value;
  }
  return found;
}

constexpr std::uint64_t probe_bytes = 64 << 10;
constexpr int probe_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

const char* probe_name(Registration way) {
  switch (way) {
    case Registration::dmabuf:
      return "register cuda dmabuf";
    case Registration::peermem:
      return "register cuda peermem";
    case Registration::host:
    case Registration::none:
    case Registration::ipc:
      break;
  }
  return "register host";
}

// Kept by the child from step to step: a GPU's first use takes a second.
using Buffers = std::map<int, std::unique_ptr<Buffer>>;

const Buffer& buffer_for(Buffers& buffers, Registration way, int gpu) {
  std::unique_ptr<Buffer>& buffer = buffers[way == Registration::host ? -1 : gpu];
  const MemoryKind kind = way == Registration::host ? MemoryKind::host : MemoryKind::cuda;
  if (!buffer)
    buffer = std::make_unique<Buffer>(BufferOptions{.kind = kind, .length = probe_bytes, .gpu = gpu});
  return *buffer;
}

ibv_mr* register_memory(ibv_pd* domain, const MemoryView& view, Registration way) {
  if (way != Registration::dmabuf) return ibv_reg_mr(domain, view.address, view.length, probe_access);
  return ibv_reg_dmabuf_mr(domain, view.dmabuf_offset, view.length,
                           reinterpret_cast<std::uintptr_t>(view.address), view.dmabuf_fd, probe_access);
}

void register_on(ibv_device& device, const Buffer& buffer, Registration way) {
  const std::string tried = fmt::format("{} on {}", probe_name(way), device.name);
  const verbs::Context context = verbs::own<verbs::CloseDevice>(
      verbs::check_pointer(ibv_open_device(&device), verbs::Step::open, tried));
  ibv_pd* const domain = verbs::check_pointer(ibv_alloc_pd(context.get()), verbs::Step::create, tried);
  ibv_mr* const region = register_memory(domain, buffer.view(), way);
  const int errno_value = errno;
  if (region != nullptr) ibv_dereg_mr(region);
  ibv_dealloc_pd(domain);
  if (region == nullptr)
    verbs::throw_system_error(
        way == Registration::host ? verbs::Step::register_host_memory : verbs::Step::register_gpu_memory,
        errno_value, tried);
}

void try_registration(const std::string& name, const Buffer& buffer, Registration way) {
  if (way == Registration::dmabuf && buffer.view().dmabuf_fd < 0)
    throw Unavailable(buffer.no_dmabuf_reason());
  const verbs::DeviceList list;
  for (ibv_device* device : list.devices())
    if (name == device->name) return register_on(*device, buffer, way);
  throw Unavailable(fmt::format("RDMA device {} disappeared", name));
}

}  // namespace

void set_error(ProbeResult& result, const std::string& text) {
  result.text = text;
  result.errno_value = errno_in(text);
  const std::size_t name = text.find("IBV_WC_");
  const std::size_t number = name == std::string::npos ? name : text.find(" (", name);
  if (number == std::string::npos) return;
  result.status = std::atoi(text.c_str() + number + 2);
  const std::string vendor = "vendor error ";
  if (const std::size_t at = text.find(vendor, number); at != std::string::npos)
    result.vendor_error = static_cast<int>(std::strtol(text.c_str() + at + vendor.size(), nullptr, 0));
}

std::vector<ProbeResult> probe_registrations(const Answers& answers, std::chrono::milliseconds timeout) {
  std::vector<ProbeResult> probes;
  std::vector<std::function<json()>> steps;
  const auto buffers = std::make_shared<Buffers>();
  const auto plan = [&](const std::string& device, Registration way, const GpuAnswer& gpu) {
    probes.push_back(
        {.what = probe_name(way), .device = device, .gpu = gpu.pci_address, .outcome = "", .text = ""});
    steps.emplace_back([=, index = gpu.index]() -> json {
      try_registration(device, buffer_for(*buffers, way, index), way);
      return nullptr;
    });
  };
  for (const RdmaAnswer& device : answers.rdma) {
    if (device.open_errno != 0) continue;
    plan(device.device, Registration::host, {});
    for (const GpuAnswer& gpu : answers.gpus)
      for (const Registration way : {Registration::dmabuf, Registration::peermem})
        plan(device.device, way, gpu);
  }
  const std::vector<StepResult> results = run_steps(steps, timeout);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    probes[i].outcome = outcome(results[i].end);
    set_error(probes[i], results[i].text);
  }
  return probes;
}

}  // namespace gdrbench::doctor
