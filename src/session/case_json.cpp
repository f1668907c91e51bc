#include "session/case_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"
#include "session/case_limits.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_bytes_in_flight = std::uint64_t{1} << 50;
constexpr std::uint64_t most_iterations = std::uint64_t{1} << 48;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr double most_seconds = 1e9;
constexpr double most_units_per_second = 1e18;
constexpr double least_elapsed_s = 1e-9;         // the clocks count nanoseconds
constexpr std::size_t longest_device_name = 64;  // IBV_SYSFS_NAME_MAX

json staging_to_json(const StagingOptions& staging) {
  return {{"variant", to_string(staging.variant)},
          {"engine", to_string(staging.engine)},
          {"chunk_bytes", staging.chunk_bytes},
          {"slots", staging.slots},
          {"streams", staging.streams}};
}

json verbs_to_json(const VerbsOptions& verbs) {
  return {{"device", verbs.device},
          {"gid_index", verbs.gid_index ? json(*verbs.gid_index) : json(nullptr)},
          {"port", verbs.port},
          {"path_mtu", verbs.path_mtu},
          {"timeout", verbs.timeout},
          {"retry_count", verbs.retry_count},
          {"rnr_retry", verbs.rnr_retry},
          {"min_rnr_timer", verbs.min_rnr_timer},
          {"service_level", verbs.service_level},
          {"traffic_class", verbs.traffic_class},
          {"inline_bytes", verbs.inline_bytes},
          {"connect", to_string(verbs.connect)},
          {"relaxed_ordering", verbs.relaxed_ordering},
          {"registration", to_string(verbs.registration)}};
}

std::uint32_t path_mtu(const Fields& f) {
  constexpr std::array<std::uint32_t, 6> known{0, 256, 512, 1024, 2048, 4096};
  const auto value = f.number_as<std::uint32_t>("path_mtu", 0, 4096);
  if (std::find(known.begin(), known.end(), value) == known.end())
    throw UsageError("case.verbs.path_mtu: not one of 0, 256, 512, 1024, 2048, 4096");
  return value;
}

// The ranges are those of the fields of the InfiniBand headers and of struct ibv_qp_attr.
VerbsOptions verbs_from_json(const Fields& f) {
  VerbsOptions verbs;
  verbs.device = f.text("device", longest_device_name);
  if (!f.is_null("gid_index")) verbs.gid_index = f.number_as<int>("gid_index", 0, most_gid_index);
  verbs.port = f.number_as<std::uint8_t>("port", 1, 254);
  verbs.path_mtu = path_mtu(f);
  verbs.timeout = f.number_as<std::uint8_t>("timeout", 0, 31);
  verbs.retry_count = f.number_as<std::uint8_t>("retry_count", 0, 7);
  verbs.rnr_retry = f.number_as<std::uint8_t>("rnr_retry", 0, 7);
  verbs.min_rnr_timer = f.number_as<std::uint8_t>("min_rnr_timer", 0, 31);
  verbs.service_level = f.number_as<std::uint8_t>("service_level", 0, 15);
  verbs.traffic_class = f.number_as<std::uint8_t>("traffic_class", 0, 255);
  verbs.inline_bytes = f.number_as<std::uint32_t>("inline_bytes", 0, most_inline_bytes);
  verbs.connect = f.name<ConnectBy>("connect");
  verbs.relaxed_ordering = f.flag("relaxed_ordering");
  verbs.registration = f.name<RegisterBy>("registration");
  return verbs;
}

json load_to_json(const std::optional<LoadRates>& load) {
  if (!load) return nullptr;
  return {{"alone_units_per_second", load->alone_units_per_second},
          {"together_units_per_second", load->together_units_per_second}};
}

json cpu_to_json(const CpuUsage& cpu) {
  return {{"elapsed_s", cpu.elapsed_s}, {"user_s", cpu.user_s}, {"system_s", cpu.system_s},
          {"thread_s", cpu.thread_s},   {"irq_s", cpu.irq_s},   {"softirq_s", cpu.softirq_s}};
}

double seconds(const Fields& f, const char* key) {
  return f.real(key, 0, most_seconds);
}

// Others are divided by it: a denormal number would make them infinite.
double elapsed_seconds(const Fields& f) {
  const double value = seconds(f, "elapsed_s");
  return value == 0 ? 0 : f.real("elapsed_s", least_elapsed_s, most_seconds);
}

std::optional<LoadRates> load_from_json(const Fields& f) {
  if (f.is_null("load")) return std::nullopt;
  const Fields load = f.inner("load");
  return LoadRates{
      .alone_units_per_second = load.real("alone_units_per_second", 0, most_units_per_second),
      .together_units_per_second = load.real("together_units_per_second", 0, most_units_per_second)};
}

CpuUsage cpu_from_json(const Fields& f) {
  return {.elapsed_s = elapsed_seconds(f),
          .user_s = seconds(f, "user_s"),
          .system_s = seconds(f, "system_s"),
          .thread_s = seconds(f, "thread_s"),
          .irq_s = seconds(f, "irq_s"),
          .softirq_s = seconds(f, "softirq_s")};
}

StageTimes stages_from_json(const Fields& f) {
  return {.gpu_to_host_s = seconds(f, "gpu_to_host_s"),
          .wire_s = seconds(f, "wire_s"),
          .host_to_gpu_s = seconds(f, "host_to_gpu_s")};
}

}  // namespace

json case_to_json(const Case& c) {
  return {{"suite", to_string(c.suite)},
          {"path", to_string(c.path)},
          {"op", to_string(c.op)},
          {"memory", to_string(c.memory)},
          {"completion", to_string(c.completion)},
          {"direction", to_string(c.direction)},
          {"size_bytes", c.size_bytes},
          {"depth", c.depth},
          {"queue_pairs", c.queue_pairs},
          {"footprint_bytes", c.footprint_bytes},
          {"gpu", c.gpu},
          {"shares_gpu", c.shares_gpu},
          {"load", to_string(c.load)},
          {"bind", to_string(c.bind)},
          {"tcp_threads", c.tcp_threads ? json(*c.tcp_threads) : json(nullptr)},
          {"staging", staging_to_json(c.staging)},
          {"verbs", verbs_to_json(c.verbs)}};
}

Case case_from_json(const json& j) {
  const Fields f(j, "case");
  const Fields staging = f.inner("staging");
  Case c;
  c.suite = f.name<Suite>("suite");
  c.path = f.name<Path>("path");
  c.op = f.name<Op>("op");
  c.memory = f.name<MemoryKind>("memory");
  c.completion = f.name<CompletionMode>("completion");
  c.direction = f.name<Direction>("direction");
  c.size_bytes = f.number("size_bytes", 1, most_bytes);
  c.depth = f.number_as<std::uint32_t>("depth", 1, most_depth);
  c.queue_pairs = f.number_as<std::uint32_t>("queue_pairs", 1, most_queue_pairs);
  if (c.size_bytes > most_bytes_in_flight / c.depth / c.queue_pairs)
    throw UsageError(fmt::format("case.size_bytes: {} messages of {} bytes in flight are more than {} bytes",
                                 std::uint64_t{c.depth} * c.queue_pairs, c.size_bytes, most_bytes_in_flight));
  c.footprint_bytes = f.number("footprint_bytes", 0, most_bytes);
  c.gpu = f.number_as<int>("gpu", 0, 1023);
  c.shares_gpu = f.flag("shares_gpu");
  c.load = f.name<Load>("load");
  c.bind = f.name<BindBy>("bind");
  if (!f.is_null("tcp_threads"))
    c.tcp_threads = f.number_as<std::uint32_t>("tcp_threads", 0, most_tcp_threads);
  c.staging.variant = staging.name<Staging>("variant");
  c.staging.engine = staging.name<CopyEngine>("engine");
  c.staging.chunk_bytes = staging.number("chunk_bytes", least_chunk_bytes, most_chunk_bytes);
  c.staging.slots = staging.number_as<std::uint32_t>("slots", 0, most_staging_slots);
  c.staging.streams = staging.number_as<std::uint32_t>("streams", 1, most_staging_streams);
  c.verbs = verbs_from_json(f.inner("verbs"));
  return c;
}

json request_to_json(const RunRequest& request) {
  return {{"iterations", request.iterations}, {"warmup", request.warmup}, {"seed", request.seed}};
}

RunRequest request_from_json(const json& j) {
  const Fields f(j, "run");
  return {.iterations = f.number("iterations", 1, most_iterations),
          .warmup = f.number("warmup", 0, most_iterations),
          .seed = f.number("seed", 0, most)};
}

json end_result_to_json(const EndResult& result) {
  json stages = nullptr;
  if (result.stages)
    stages = {{"gpu_to_host_s", result.stages->gpu_to_host_s},
              {"wire_s", result.stages->wire_s},
              {"host_to_gpu_s", result.stages->host_to_gpu_s}};
  return {{"elapsed_s", result.elapsed_s},
          {"messages_sent", result.messages_sent},
          {"messages_received", result.messages_received},
          {"stages", stages},
          {"cpu", cpu_to_json(result.cpu)},
          {"load", load_to_json(result.load)}};
}

EndResult end_result_from_json(const json& j) {
  const Fields f(j, "result");
  return {.elapsed_s = elapsed_seconds(f),
          .messages_sent = f.number("messages_sent", 0, most),
          .messages_received = f.number("messages_received", 0, most),
          .cpu = cpu_from_json(f.inner("cpu")),
          .stages = f.is_null("stages") ? std::nullopt : std::optional(stages_from_json(f.inner("stages"))),
          .samples_us = {},
          .load = load_from_json(f)};
}

}  // namespace gdrbench::session
