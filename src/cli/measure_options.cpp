#include "cli/measure_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/case_fields.hpp"
#include "cli/common_flags.hpp"
#include "cli/fabric.hpp"
#include "cli/listed_flags.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::cli {
namespace {

std::string op_list(OpSet ops) {
  std::string all;
  for (const auto& [op, name] : EnumNames<Op>::names)
    if (contains(ops, op)) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

// The named values in the order given, each once. `otherwise` when none was named.
template <class E>
std::vector<E> read_names(const std::vector<std::string>& given, std::vector<E> otherwise) {
  std::vector<E> values;
  for (const std::string& name : given) {
    const E value = from_name<E>(name);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values.empty() ? otherwise : values;
}

void check_range(const char* flag, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value < low || value > high)
    throw UsageError(fmt::format("{} {}: outside {} … {}", flag, value, low, high));
}

void check_gid_index(const char* flag, std::optional<int> index) {
  if (index && (*index < 0 || *index > max_gid_index))
    throw UsageError(fmt::format("{} {}: outside 0 … {}", flag, *index, max_gid_index));
}

}  // namespace

void add_measure_flags(CLI::App& command, MeasureFlags& flags, const std::vector<Suite>& suites) {
  const bool has_latency = std::any_of(suites.begin(), suites.end(), times_messages);
  const bool has_bandwidth = !std::all_of(suites.begin(), suites.end(), times_messages);
  OpSet ops = 0;
  bool has_events = false;
  for (const Suite suite : suites) {
    ops = static_cast<OpSet>(ops | spec(suite).ops);
    has_events |= spec(suite).has_events;
  }
  const bool has_load =
      std::any_of(suites.begin(), suites.end(), [](Suite suite) { return spec(suite).has_load; });
  auto& options = flags.options;
  auto& verbs = options.verbs;
  command.add_option("HOST", flags.host, "The node on which `gdrbench serve` runs: HOST or HOST:PORT");

  const char* ends = "Ends";
  command.add_flag("--loopback", flags.loopback, "Start a responder on this machine instead")->group(ends);
  command.add_option("--port", flags.port, "TCP port of the server (default 7471)")->group(ends);
  add_file_flag(command, "--key-file", flags.key_file, "File with the server's key (else GDRBENCH_KEY)")
      ->group(ends);

  const char* what = "What to measure";
  const auto list = [&](const char* flag, std::vector<std::string>& into, const std::string& help) {
    command.add_option(flag, into, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("LIST")
        ->group(what);
  };
  list("--paths", flags.paths, "Of " + name_list<Path>() + " (default tcp,rdma,gdr)");
  list("--require", flags.required,
       "Paths that must run; exit status 3 if one cannot, or no time was left for it");
  list("--op", flags.ops, "Of " + op_list(ops) + " (default send)");
  list("--completion", flags.completions,
       std::string("Of ") + (has_events ? name_list<CompletionMode>() : "poll") + " (default poll)");
  command
      .add_option("--sizes", flags.sizes,
                  "Message sizes: 8,4k,1M or 8:64M:x2; k, M, G and T are powers of 1024")
      ->group(what);
  if (has_bandwidth) {
    list("--direction", flags.directions, "Of " + name_list<Direction>() + " (default forward,reverse)");
    command
        .add_option("--queue-pairs", options.queue_pairs,
                    fmt::format("Queue pairs or sockets, 1 to {}", max_queue_pairs))
        ->capture_default_str()
        ->group(what);
    command
        .add_option("--tcp-threads", options.tcp_threads,
                    fmt::format("Threads that move the sockets of an end, 0 (the one that measures) to {} "
                                "(default: with several sockets as many as there are, 8 and a quarter of the "
                                "cores at most)",
                                max_tcp_threads))
        ->group(what);
    command
        .add_option("--depth", options.depth, fmt::format("Messages in flight on each, 1 to {}", max_depth))
        ->capture_default_str()
        ->group(what);
    command
        .add_option(
            "--footprint", flags.footprint,
            "Payload memory that bandwidth rotates through, of all queue pairs together (default 64M); never "
            "less than one message each, nor more than 4096")
        ->group(what);
  }
  if (has_load)
    list("--load", flags.loads,
         "GPU work beside the transfer, of " + name_list<Load>() + " (default compute,memory)");
  command
      .add_option("--memory", flags.memory,
                  "Of " + name_list<MemoryKind>() + " (default cuda where both ends have a GPU)")
      ->group(what);
  command
      .add_option(
          "--chunk", flags.chunk,
          "Largest piece that staging copies and sends at once (default: measured by auto, else 256k)")
      ->group(what);
  add_listed_flags(command, options.staging, what);
  add_time_budget(command, options.time_budget_s)->group(what);

  const char* where = "Devices";
  command.add_option("--fabric", flags.fabric, fabric_help)->capture_default_str()->group(where);
  command
      .add_option("--device", options.device,
                  "RDMA device of this end (default: hardware first, nearest to a GPU, fastest)")
      ->group(where);
  command
      .add_option("--remote-device", options.remote_device,
                  "RDMA device of the other end (default: likewise)")
      ->group(where);
  command.add_option("--gpu", options.gpu, "GPU of this end (default: nearest to its RDMA device)")
      ->group(where);
  command
      .add_option("--remote-gpu", options.remote_gpu,
                  "GPU of the other end (default: likewise; with --loopback another one than this end's)")
      ->group(where);

  const auto pair_list = [&](const char* flag, std::vector<std::string>& into, const char* help) {
    command.add_option(flag, into, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("LIST")
        ->group(where);
  };
  pair_list("--pairs", flags.pairs,
            "Several pairs of RDMA device and GPU of this end, mlx5_0:gpu0,mlx5_1:gpu1, or auto: every GPU "
            "with its "
            "nearest device; measured alone, then all at once");
  pair_list("--remote-pairs", flags.remote_pairs,
            "The pairs of the other end, one for each (default: auto there; with named --pairs, of the same "
            "names)");
  command
      .add_option("--bind", flags.bind,
                  "Cores of both ends, of " + name_list<BindBy>() + "; auto: next to RDMA device and GPU")
      ->capture_default_str()
      ->group(where);

  const char* wire = "Queue pairs";
  command
      .add_option("--gid-index", options.gid_index, "Index of this end's GID (default: RoCE v2 IPv4 first)")
      ->group(wire);
  command
      .add_option("--remote-gid-index", options.remote_gid_index, "GID of the other end (default: likewise)")
      ->group(wire);
  command
      .add_flag("--no-relaxed-ordering", flags.no_relaxed_ordering,
                "Register without IBV_ACCESS_RELAXED_ORDERING")
      ->group(wire);
  add_listed_flags(command, verbs, wire);

  const char* results = "Results";
  add_file_flag(command, "--out", flags.out, "Write the result file (JSON)")->group(results);
  if (has_latency)
    add_file_flag(command, "--samples", flags.samples, "Write every latency sample (CSV)")->group(results);
  command.footer(
      "Every --benchmark_* flag goes to Google Benchmark: --benchmark_repetitions=9, "
      "--benchmark_min_time=1,\n"
      "--benchmark_filter=gdr …");
}

namespace {

// "mlx5_0:gpu0"
benchmarks::PairOption read_pair(const char* flag, const std::string& text) {
  const auto colon = text.rfind(':');
  int gpu = -1;
  if (colon != std::string::npos && colon > 0) {
    const std::string number = text.substr(colon + (text.compare(colon + 1, 3, "gpu") == 0 ? 4 : 1));
    const char* const end = number.data() + number.size();
    if (const auto [rest, fault] = std::from_chars(number.data(), end, gpu);
        fault != std::errc{} || rest != end)
      gpu = -1;
  }
  if (gpu < 0 || gpu > max_gpu)
    throw UsageError(fmt::format("{} '{}': not a pair; give RDMA device and GPU, mlx5_0:gpu0", flag, text));
  return {.device = text.substr(0, colon), .gpu = gpu};
}

void read_pairs(const MeasureFlags& flags, benchmarks::MeasureOptions& options) {
  options.all_pairs = flags.pairs == std::vector<std::string>{"auto"};
  if (!options.all_pairs)
    for (const std::string& text : flags.pairs) options.pairs.push_back(read_pair("--pairs", text));
  if (flags.remote_pairs != std::vector<std::string>{"auto"})
    for (const std::string& text : flags.remote_pairs)
      options.remote_pairs.push_back(read_pair("--remote-pairs", text));
  if (flags.pairs.empty()) {
    if (!flags.remote_pairs.empty()) throw UsageError("--remote-pairs: give --pairs, too");
    return;
  }
  if (!options.device.empty() || !options.remote_device.empty() || options.gpu || options.remote_gpu)
    throw UsageError(
        "--pairs chooses RDMA devices and GPUs: drop --device, --remote-device, --gpu and --remote-gpu");
  if (!options.all_pairs && !options.remote_pairs.empty() &&
      options.remote_pairs.size() != options.pairs.size())
    throw UsageError(fmt::format("--pairs has {} pairs and --remote-pairs {}: give one for each",
                                 options.pairs.size(), options.remote_pairs.size()));
}

}  // namespace

benchmarks::MeasureOptions read_measure_flags(const MeasureFlags& flags) {
  benchmarks::MeasureOptions options = flags.options;
  options.paths = read_names<Path>(flags.paths, options.paths);
  options.required = read_names<Path>(flags.required, {});
  for (const Path path : options.required)
    if (std::find(options.paths.begin(), options.paths.end(), path) == options.paths.end())
      options.paths.push_back(path);
  options.ops = read_names<Op>(flags.ops, options.ops);
  options.completions = read_names<CompletionMode>(flags.completions, options.completions);
  options.loads = read_names<Load>(flags.loads, options.loads);
  options.directions = read_names<Direction>(flags.directions, {});
  if (flags.sizes) options.sizes = parse_sizes(*flags.sizes);
  if (flags.memory) options.memory = from_name<MemoryKind>(*flags.memory);
  options.fabric = read_fabric(flags.fabric);
  read_pairs(flags, options);
  options.loopback = flags.loopback;
  options.bind = from_name<BindBy>(flags.bind);
  if (!is_pipelined(options.staging.variant) && options.staging.engine != CopyEngine::automatic)
    throw UsageError(
        fmt::format("--staging-engine {}: staging {} copies by the copy engine; use --staging auto or "
                    "pipelined",
                    to_string(options.staging.engine), to_string(options.staging.variant)));
  const bool tuned =
      flags.chunk || options.staging.slots != 0 || options.staging.streams != StagingOptions{}.streams;
  if (!is_pipelined(options.staging.variant) && tuned)
    throw UsageError(
        fmt::format("--chunk, --staging-depth and --staging-streams are of pipelined staging; --staging {} "
                    "has none of them",
                    to_string(options.staging.variant)));
  options.chunk_given = flags.chunk.has_value();
  if (flags.chunk) options.staging.chunk_bytes = parse_size(*flags.chunk);
  check_range("--chunk", options.staging.chunk_bytes, min_chunk_bytes, max_chunk_bytes);
  if (flags.footprint) options.footprint_bytes = parse_size(*flags.footprint);
  check_range("--footprint", options.footprint_bytes, 0, max_bytes);
  check_gid_index("--gid-index", options.gid_index);
  check_gid_index("--remote-gid-index", options.remote_gid_index);
  options.verbs.relaxed_ordering = !flags.no_relaxed_ordering;
  check_range("--depth", options.depth, 1, max_depth);
  check_range("--queue-pairs", options.queue_pairs, 1, max_queue_pairs);
  if (options.tcp_threads) {
    check_range("--tcp-threads", *options.tcp_threads, 0, max_tcp_threads);
    if (*options.tcp_threads > options.queue_pairs)
      throw UsageError(
          fmt::format("--tcp-threads {}: a thread moves whole sockets, and there are {} of them "
                      "(--queue-pairs)",
                      *options.tcp_threads, options.queue_pairs));
  }
  constexpr std::uint32_t mtus[] = {0, 256, 512, 1024, 2048, 4096};  // IBTA; 0: not given
  if (std::find(std::begin(mtus), std::end(mtus), options.verbs.path_mtu) == std::end(mtus))
    throw UsageError(fmt::format("--mtu {}: {} is none of 256, 512, 1024, 2048, 4096 bytes",
                                 options.verbs.path_mtu, options.verbs.path_mtu));
  return options;
}

}  // namespace gdrbench::cli
