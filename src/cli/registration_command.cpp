#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "benchmarks/campaign.hpp"
#include "benchmarks/device_choice.hpp"
#include "benchmarks/registration.hpp"
#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/fabric.hpp"
#include "cli/results.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"
#include "gdrbench/size.hpp"
#include "verbs/device.hpp"

namespace gdrbench::cli {
namespace {

struct RegistrationFlags : LocalFlags {
  std::string device;
};

// The device that is asked for, or the best that can be used; null without one.
const RdmaDeviceInfo* choose(const EndInfo& end, const RegistrationFlags& flags,
                             const std::optional<FabricKind>& fabric) {
  std::vector<RdmaDeviceInfo> usable;
  for (const RdmaDeviceInfo& device : end.rdma.devices) {
    const bool wanted =
        flags.device.empty() ? !fabric || *fabric == device.fabric : device.name == flags.device;
    if (wanted && device.unusable.empty()) usable.push_back(device);
  }
  const auto near = benchmarks::candidates(end, usable, flags.gpu, true);
  const auto pair = benchmarks::choose_devices(near, near, true);
  const auto& devices = end.rdma.devices;
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const RdmaDeviceInfo& device) {
    return pair && device.name == pair->here.name && device.unusable.empty();
  });
  return found == devices.end() ? nullptr : &*found;
}

// Why nothing was measured though nothing failed: host memory at least can be registered with any device.
std::exception_ptr why_nothing(const ResultDocument& document, const std::string& no_device) {
  if (no_device.empty())
    return std::make_exception_ptr(UsageError(
        "no case was measured: does --benchmark_filter match one, and is --benchmark_repetitions above 0?"));
  return std::make_exception_ptr(
      Unavailable("nothing can be registered here: " + document.local_skipped.front().reason));
}

int registration(const RegistrationFlags& flags, const Invocation& invocation) {
  const std::optional<FabricKind> fabric = read_fabric(flags.fabric);
  benchmarks::RegistrationOptions options{.sizes = {}, .device = "", .no_device = "", .gpu = flags.gpu};
  if (flags.sizes) options.sizes = parse_sizes(*flags.sizes);
  const std::string no_softverbs =
      provide_fabric({.fabric = fabric, .devices = {flags.device}}, invocation.argv);
  std::vector<std::string> benchmark_flags = invocation.benchmark_flags;
  const ResultFiles files{
      .out = flags.out, .benchmark_out = take_benchmark_out(benchmark_flags), .samples = ""};
  check_writable(files);

  ResultDocument document;
  document.command = invocation.text;
  document.ranks = {describe_this_end()};
  const EndInfo& end = document.ranks.front();
  if (const RdmaDeviceInfo* device = choose(end, flags, fabric)) {
    options.device = device->name;
    document.fabric = {.kind = device->fabric,
                       .device = device->name,
                       .link_layer = device->link_layer,
                       .active_mtu = device->active_mtu,
                       .gid_index = std::nullopt,
                       .link_bytes_per_second = static_cast<double>(device->link_bytes_per_second)};
  } else {
    const std::string wanted = !flags.device.empty() ? fmt::format(" named '{}'", flags.device)
                               : fabric              ? fmt::format(" of fabric {}", to_string(*fabric))
                                                     : "";
    options.no_device =
        fmt::format("no usable RDMA device{}; there: {}", wanted, offered_devices(no_softverbs));
  }

  document.complete = true;
  std::exception_ptr failure;
  {
    const ProgressLine progress;
    failure = benchmarks::run_campaign(benchmarks::local_points(benchmarks::registration_cases(options)),
                                       {.benchmark_flags = benchmark_flags,
                                        .time_budget_s = flags.time_budget_s,
                                        .progress = std::ref(progress)},
                                       document);
  }
  if (!failure && wants_list(benchmark_flags)) return end_list();
  document.local_crossovers = benchmarks::registration_crossovers(document.local);
  if (document.local.empty() && !failure)
    failure = document.complete ? why_nothing(document, options.no_device) : nothing_measured(document);
  const bool functional = is_functional(document.fabric.kind);
  const std::string note = functional
                               ? fmt::format("{} is a NIC in software: its times say nothing of a NIC's",
                                             to_string(document.fabric.kind))
                               : "";
  const auto table = [&](const std::string& kept) {
    return local_table(document,
                       {.title = "gdrbench registration", .remote = "", .result_file = kept, .note = note});
  };
  hand_over(document, files, table, failure);
  return static_cast<int>(ExitStatus::done);
}

}  // namespace

void add_registration(CLI::App& app, Action& chosen, const Invocation& invocation) {
  auto flags = std::make_shared<RegistrationFlags>();
  CLI::App* command = app.add_subcommand(
      "registration", "Time to register memory with the RDMA device, against the copy that it saves");
  add_local_flags(*command, *flags, "GPU whose memory is registered",
                  "Sizes: 4k,1M or 4k:1G:x4 (the default)");
  command->add_option("--device", flags->device,
                      "RDMA device (default: hardware first, nearest to the GPU, fastest)");
  command->callback([=, &chosen] { chosen = [=] { return registration(*flags, invocation); }; });
}

}  // namespace gdrbench::cli
