#include "benchmarks/transfer_probes.hpp"

#include "benchmarks/discovery.hpp"
#include "benchmarks/plan.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

constexpr std::uint64_t size_bytes = 4096;
constexpr std::uint64_t messages = 4;

std::string gpu_address(const EndInfo& end, int index) {
  for (const GpuInfo& gpu : end.gpus)
    if (gpu.index == index) return gpu.pci_address;
  return "";
}

}  // namespace

std::vector<TransferProbe> transfer_probes() {
  std::vector<TransferProbe> probes;
  for (const PathSpec& path : all_paths) {
    if (!path.by_default) continue;
    for (const Op op : {Op::write, Op::read})
      for (const Direction direction : {Direction::forward, Direction::reverse})
        probes.push_back({path.path, op, direction});
  }
  return probes;
}

TransferOutcome run_transfer(Session& session, const EndInfo& this_end, const TransferProbe& probe,
                             const MeasureOptions& given) {
  MeasureOptions options = given;
  options.suites = {Suite::bandwidth};
  options.paths = {probe.path};
  options.ops = {probe.op};
  options.directions = {probe.direction};
  options.sizes = {size_bytes};
  options.depth = 1;
  options.footprint_bytes = size_bytes;
  const Discovery found = discover(session, this_end, options);
  const Case c = plan_cases(options, found).front().front();
  const auto opened = session.open(c, responder_case(c, options, found));
  opened->run({.iterations = messages, .warmup = 0, .seed = 1});
  return {.device = uses_verbs(probe.path) ? found.device : "",
          .gpu = found.memory == MemoryKind::host ? "" : gpu_address(this_end, found.gpu)};
}

}  // namespace gdrbench::benchmarks
