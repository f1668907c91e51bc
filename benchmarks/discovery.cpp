#include "benchmarks/discovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "benchmarks/device_choice.hpp"
#include "benchmarks/plan.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

void choose_memory(Discovery& found, const EndInfo& here, const EndInfo& there,
                   const MeasureOptions& options) {
  if (options.memory) {
    found.memory = *options.memory;
    return;
  }
  found.memory = MemoryKind::cuda;
  for (const EndInfo* end : {&here, &there}) {
    if (end->has_gpu()) continue;
    found.memory = MemoryKind::host;
    found.memory_note = fmt::format("host memory stands in for GPU memory: {} has none ({})", end->host,
                                    end->cuda.unavailable);
    return;
  }
}

// The devices of an end that may be used.
std::vector<RdmaDeviceInfo> usable_devices(const EndInfo& end, const MeasureOptions& options,
                                           const std::string& name) {
  std::vector<RdmaDeviceInfo> devices;
  for (const RdmaDeviceInfo& device : end.rdma.devices) {
    const bool wanted =
        name.empty() ? !options.fabric || *options.fabric == device.fabric : device.name == name;
    if (wanted && device.unusable.empty()) devices.push_back(device);
  }
  return devices;
}

// "mlx5_0 (hardware), rxe0 (soft-roce)", or why there is none.
std::string devices_of(const EndInfo& end) {
  std::string seen;
  for (const RdmaDeviceInfo& device : end.rdma.devices)
    seen += fmt::format("{}{} ({}{}{})", seen.empty() ? "" : ", ", device.name, to_string(device.fabric),
                        device.unusable.empty() ? "" : ": ", device.unusable);
  if (const std::string& why = end.rdma.unavailable; !why.empty()) seen += (seen.empty() ? "" : "; ") + why;
  return seen;
}

std::string why_no_device(const EndInfo& end, const MeasureOptions& options, const std::string& name) {
  if (end.rdma.devices.empty()) return fmt::format("on {}: {}", end.host, devices_of(end));
  std::string wanted = "no usable RDMA device";
  if (!name.empty()) {
    wanted = fmt::format("no usable RDMA device named '{}'", name);
  } else if (options.fabric) {
    wanted = fmt::format("no usable RDMA device of fabric {}", to_string(*options.fabric));
  }
  return fmt::format("on {}: {}; there: {}", end.host, wanted, devices_of(end));
}

bool has_softverbs(const std::vector<RdmaDeviceInfo>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const RdmaDeviceInfo& device) { return device.fabric == FabricKind::softverbs; });
}

// Where one end runs on softverbs and the other does not, the software NIC can join them if both load it.
std::string why_no_pair(const EndInfo& here, const EndInfo& there, bool softverbs_joins) {
  return fmt::format(
      "no pair of devices has the same fabric and link layer: initiator {} has {}; responder {} "
      "has {}; {}",
      here.host, devices_of(here), there.host, devices_of(there),
      softverbs_joins ? "start both with --fabric softverbs (there: gdrbench serve --fabric softverbs)"
                      : "name them by --device and --remote-device");
}

// Picks a device on each end; the reason why not, if there is no pair.
std::string find_devices(Discovery& found, const EndInfo& here, const EndInfo& there,
                         const MeasureOptions& options) {
  const std::vector<RdmaDeviceInfo> ours = usable_devices(here, options, options.device);
  if (ours.empty()) return why_no_device(here, options, options.device);
  const std::vector<RdmaDeviceInfo> theirs = usable_devices(there, options, options.remote_device);
  const bool softverbs_joins = has_softverbs(ours) != has_softverbs(theirs);
  if (theirs.empty() && !(softverbs_joins && options.remote_device.empty()))
    return why_no_device(there, options, options.remote_device);
  const bool gpu_memory = found.memory != MemoryKind::host;
  const auto pair =
      choose_devices(candidates(here, ours, options.gpu, gpu_memory),
                     candidates(there, theirs, options.remote_gpu, gpu_memory), options.loopback);
  if (!pair) return why_no_pair(here, there, softverbs_joins);
  found.device = pair->here.name;
  found.remote_device = pair->there.name;
  found.device_note = describe_choice(pair->here, ours.size());
  const RdmaDeviceInfo& own = *std::find_if(
      ours.begin(), ours.end(), [&](const RdmaDeviceInfo& device) { return device.name == found.device; });
  found.fabric = {.kind = pair->here.fabric,
                  .device = found.device,
                  .link_layer = pair->here.link_layer,
                  .active_mtu = own.active_mtu,
                  .gid_index = std::nullopt,
                  .link_bytes_per_second = pair->here.bytes_per_second};
  return "";
}

// Builds and connects the smallest case of the path on both ends. The reason why not, if it cannot be had.
std::string try_path(Session& session, Path path, Discovery& found, const MeasureOptions& options) {
  Discovery only = found;
  only.paths = {path};
  std::string reason;
  for (const CasePoint& point : plan_cases(options, only)) {
    Case c = point.front();
    c.size_bytes = std::min<std::uint64_t>(c.size_bytes, 4096);
    c.footprint_bytes = c.size_bytes;
    try {
      const auto opened = session.open(c, responder_case(c, options, found));
      if (const auto& verbs = opened->proofs().front().verbs) found.fabric.gid_index = verbs->gid_index;
      return "";
    } catch (const Unavailable& unavailable) {
      reason = unavailable.what();
    }
  }
  return reason;
}

// A GPU that was asked for by number and is not there.
void require_gpu(const char* flag, std::optional<int> asked, const EndInfo& end) {
  if (!asked) return;
  if (*asked < 0) throw UsageError(fmt::format("{} {}: GPUs are numbered from 0", flag, *asked));
  if (!end.has_gpu())
    throw Unavailable(
        fmt::format("{} {}: {} has no usable GPU: {}", flag, *asked, end.host, end.cuda.unavailable));
  if (const int count = end.cuda.count; *asked >= count)
    throw Unavailable(
        fmt::format("{} {}: {} has {} of them, numbered from 0", flag, *asked, end.host, count));
}

// Every GPU with its nearest device; of devices equally near, those that fewer GPUs have, so that two GPUs
// below one switch with two NICs do not share one. Without a GPU, every device, which host memory then stands
// beside.
std::vector<PairOption> nearest_pairs(const EndInfo& end, const MeasureOptions& options) {
  const std::vector<RdmaDeviceInfo> devices = usable_devices(end, options, "");
  std::vector<PairOption> pairs;
  if (end.gpus.empty())
    for (const RdmaDeviceInfo& device : devices) pairs.push_back({.device = device.name, .gpu = 0});
  std::map<std::string, int> taken;
  for (const GpuInfo& gpu : end.gpus) {
    const auto cost = [&](const RdmaDeviceInfo& device) {
      const auto index = static_cast<std::size_t>(gpu.index);
      const PciDistance distance =
          index < device.gpu_distances.size() ? device.gpu_distances[index] : PciDistance::unknown;
      return std::make_tuple(device.fabric, distance, taken[device.name]);
    };
    const auto nearest = std::min_element(devices.begin(), devices.end(),
                                          [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
    if (nearest == devices.end()) break;
    ++taken[nearest->name];
    pairs.push_back({.device = nearest->name, .gpu = gpu.index});
  }
  if (pairs.empty()) throw Unavailable("--pairs auto: " + why_no_device(end, options, ""));
  return pairs;
}

void require_pair(const char* flag, const PairOption& pair, const EndInfo& end,
                  const MeasureOptions& options) {
  if (usable_devices(end, options, pair.device).empty())
    throw Unavailable(fmt::format("{}: {}", flag, why_no_device(end, options, pair.device)));
  // Without any GPU, host memory stands in.
  if (end.has_gpu() && pair.gpu >= end.cuda.count)
    throw Unavailable(fmt::format("{} {}:gpu{}: {} has {} GPUs, numbered from 0", flag, pair.device, pair.gpu,
                                  end.host, end.cuda.count));
}

}  // namespace

Discovery discover(Session& session, const EndInfo& this_end, const MeasureOptions& options) {
  require_gpu("--gpu", options.gpu, this_end);
  require_gpu("--remote-gpu", options.remote_gpu, session.remote());
  Discovery found;
  choose_memory(found, this_end, session.remote(), options);
  const std::string no_device = find_devices(found, this_end, session.remote(), options);
  const GpuChoice gpus = choose_gpus({.here = gpu_distances(this_end, found.device),
                                      .there = gpu_distances(session.remote(), found.remote_device),
                                      .asked = options.gpu,
                                      .remote_asked = options.remote_gpu,
                                      .one_node = options.loopback});
  found.gpu = gpus.gpu;
  found.remote_gpu = gpus.remote_gpu;
  const std::string ours = gpu_uuid(this_end, found.gpu);
  found.shares_gpu = !ours.empty() && ours == gpu_uuid(session.remote(), found.remote_gpu);
  for (const Path path : options.paths) {
    const std::string reason =
        uses_verbs(path) && !no_device.empty() ? no_device : try_path(session, path, found, options);
    if (reason.empty()) {
      found.paths.push_back(path);
    } else {
      found.skipped.push_back({path, reason});
    }
  }
  // Without a verbs path, nothing was measured on a fabric.
  if (std::none_of(found.paths.begin(), found.paths.end(), uses_verbs)) found.fabric = {};
  if (std::all_of(found.paths.begin(), found.paths.end(), is_baseline)) found.memory_note.clear();
  for (const Path path : options.required)
    for (const SkippedPath& skipped : found.skipped)
      if (skipped.path == path)
        throw Unavailable(
            fmt::format("--require {}: this path cannot run: {}", to_string(path), skipped.reason));
  const bool wants_load =
      std::any_of(options.loads.begin(), options.loads.end(), [](Load load) { return load != Load::none; });
  if (wants_load && std::any_of(options.suites.begin(), options.suites.end(),
                                [](Suite suite) { return spec(suite).has_load; }))
    for (const Path path : found.paths)
      if (const std::string reason = no_load_reason(path, found.memory); !reason.empty())
        found.load_skipped.push_back({path, reason});
  if (found.paths.empty())
    throw Unavailable("none of the paths asked for can run: " + found.skipped.front().reason);
  return found;
}

std::vector<MeasureOptions> options_by_pair(const EndInfo& here, const EndInfo& there,
                                            const MeasureOptions& options) {
  if (options.pairs.empty() && !options.all_pairs) return {options};
  const std::vector<PairOption> ours = options.all_pairs ? nearest_pairs(here, options) : options.pairs;
  std::vector<PairOption> theirs = options.remote_pairs;
  if (theirs.empty()) theirs = options.all_pairs ? nearest_pairs(there, options) : options.pairs;
  if (ours.size() != theirs.size())
    throw Unavailable(
        fmt::format("--pairs: {} has {} pairs of RDMA device and GPU, {} has {}; name them by --pairs and "
                    "--remote-pairs",
                    here.host, ours.size(), there.host, theirs.size()));
  std::vector<MeasureOptions> all;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    require_pair("--pairs", ours[i], here, options);
    require_pair(options.remote_pairs.empty() ? "--pairs, at the other end" : "--remote-pairs", theirs[i],
                 there, options);
    MeasureOptions one = options;
    one.device = ours[i].device;
    one.remote_device = theirs[i].device;
    if (here.has_gpu()) one.gpu = ours[i].gpu;
    if (there.has_gpu()) one.remote_gpu = theirs[i].gpu;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace gdrbench::benchmarks
