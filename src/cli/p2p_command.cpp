#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <optional>

#include "benchmarks/campaign.hpp"
#include "benchmarks/p2p_copies.hpp"
#include "benchmarks/plan.hpp"
#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/fabric.hpp"
#include "cli/loopback.hpp"
#include "cli/results.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/session.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::cli {
namespace {

struct P2pFlags : LocalFlags {
  std::optional<int> remote_gpu;
};

// One operation each: the latency of a write into GPU memory cannot be seen by a CPU, that of a read can.
benchmarks::MeasureOptions options_of(const P2pFlags& flags, Suite suite) {
  benchmarks::MeasureOptions options;
  options.suites = {suite};
  options.paths = {Path::p2p, Path::gdr, Path::rdma, Path::tcp};
  options.ops = {suite == Suite::latency ? Op::read : Op::write};
  if (flags.sizes) options.sizes = parse_sizes(*flags.sizes);
  options.memory = MemoryKind::cuda;
  options.fabric = read_fabric(flags.fabric);
  options.gpu = flags.gpu;
  options.loopback = true;
  options.time_budget_s = flags.time_budget_s;
  return options;
}

int default_remote_gpu(int gpu, int count) {
  return count > 1 ? (gpu + 1) % count : gpu;
}

std::string note_of(const ResultDocument& document, int gpu, int remote_gpu, int count) {
  std::string note;
  if (gpu == remote_gpu)
    note = count == 1 ? "one GPU: device-local copies stand in for GPU to GPU"
                      : "both ends on one GPU: device-local copies stand in for GPU to GPU";
  if (is_functional(document.fabric.kind))
    note += fmt::format("{}{} is a NIC in software: gdr and rdma show that they work, not how fast a NIC is",
                        note.empty() ? "" : "; ", to_string(document.fabric.kind));
  return note;
}

int p2p(const P2pFlags& flags, const Invocation& invocation) {
  benchmarks::MeasureOptions latency = options_of(flags, Suite::latency);
  benchmarks::MeasureOptions bandwidth = options_of(flags, Suite::bandwidth);
  provide_fabric({.fabric = latency.fabric, .devices = {}}, invocation.argv);
  std::vector<std::string> benchmark_flags = invocation.benchmark_flags;
  const ResultFiles files{
      .out = flags.out, .benchmark_out = take_benchmark_out(benchmark_flags), .samples = ""};
  check_writable(files);

  const LoopbackResponder responder;  // before anything touches a GPU or an RDMA device
  const GpuSummary summary = gpu_summary(flags.gpu);
  if (!summary.unavailable.empty())
    throw Unavailable(
        fmt::format("gdrbench p2p measures between the GPUs of this node: {}", summary.unavailable));
  const int remote_gpu = flags.remote_gpu.value_or(default_remote_gpu(flags.gpu, summary.count));
  latency.remote_gpu = bandwidth.remote_gpu = remote_gpu;

  ConnectOptions connect;
  connect.port = responder.port();
  connect.key = responder.key();
  Session session(connect);
  ResultDocument document;
  document.command = invocation.text;
  document.ranks = {describe_this_end(), session.remote()};
  const benchmarks::Discovery found = benchmarks::discover(session, document.ranks.front(), latency);
  document.fabric = found.fabric;
  document.skipped = found.skipped;
  const std::vector<benchmarks::PlacedPair> pair = {{&session, found}};
  std::vector<benchmarks::Point> points = benchmarks::plan_points(latency, pair);
  const auto add = [&](std::vector<benchmarks::Point> more) {
    std::move(more.begin(), more.end(), std::back_inserter(points));
  };
  add(benchmarks::plan_points(bandwidth, pair));
  add(benchmarks::local_points(
      benchmarks::p2p_copy_cases({.gpu = flags.gpu, .remote_gpu = remote_gpu, .sizes = latency.sizes})));
  std::exception_ptr failure;
  {
    const ProgressLine progress;
    failure = benchmarks::run_campaign(std::move(points),
                                       {.benchmark_flags = benchmark_flags,
                                        .time_budget_s = flags.time_budget_s,
                                        .progress = std::ref(progress)},
                                       document);
  }
  if (!failure && wants_list(benchmark_flags)) return end_list();
  if (!failure && document.cases.empty() && !document.skipped.empty())
    failure = std::make_exception_ptr(Unavailable("no case could run: " + document.skipped.front().reason));
  if (!failure && document.cases.empty() && document.local.empty() && !document.complete)
    failure = nothing_measured(document);
  const auto table = [&](const std::string& kept) {
    const TableOptions shown{.title = fmt::format("gdrbench p2p, GPU {} to GPU {}", flags.gpu, remote_gpu),
                             .remote = "",
                             .result_file = kept,
                             .note = note_of(document, flags.gpu, remote_gpu, summary.count)};
    return comparison_table(document, shown) + local_blocks(document);
  };
  hand_over(document, files, table, failure);
  return static_cast<int>(ExitStatus::done);
}

}  // namespace

void add_p2p(CLI::App& app, Action& chosen, const Invocation& invocation) {
  auto flags = std::make_shared<P2pFlags>();
  CLI::App* command = app.add_subcommand(
      "p2p", "GPU to GPU within this node: straight (NVLink, PCIe), through the NIC, and through TCP");
  add_local_flags(*command, *flags, "GPU of the initiator", "Message sizes: 8,4k,1M or 8:64M:x2");
  command->add_option("--remote-gpu", flags->remote_gpu, "GPU of the responder (default: the next one)");
  command->callback([=, &chosen] { chosen = [=] { return p2p(*flags, invocation); }; });
}

}  // namespace gdrbench::cli
