#include "benchmarks/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/case_fields.hpp"
#include "gdrbench/size.hpp"
#include "measure/core_binding.hpp"
#include "path/staging_layout.hpp"

namespace gdrbench::benchmarks {
namespace {

std::vector<std::uint64_t> sizes_of(Suite suite, const MeasureOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  return {spec(suite).sizes.begin(), spec(suite).sizes.end()};
}

std::vector<Direction> directions_of(Suite suite, const MeasureOptions& options) {
  if (!times_messages(suite) && !options.directions.empty()) return options.directions;
  return {spec(suite).directions.begin(), spec(suite).directions.end()};
}

// Without a load first: what the others are held against, and what says whether the path runs at all.
std::vector<Load> loads_of(const Case& c, const MeasureOptions& options) {
  std::vector<Load> loads = {Load::none};
  if (spec(c.suite).has_load && no_load_reason(c.path, c.memory).empty())
    for (const Load load : options.loads)
      if (load != Load::none) loads.push_back(load);
  return loads;
}

// Plain staging copies whole messages, as far as a wire takes them at once.
std::uint64_t chunk_bytes(const Case& c, const MeasureOptions& options) {
  if (!is_pipelined(c.staging.variant)) return std::clamp(c.size_bytes, min_chunk_bytes, max_chunk_bytes);
  if (c.staging.variant == Staging::automatic && !options.chunk_given)
    return memory::choose_chunk_bytes(path::staging_use(c));
  return options.staging.chunk_bytes;
}

Case make_case(const MeasureOptions& options, const Discovery& discovery) {
  Case c;
  c.memory = discovery.memory;
  c.depth = options.depth;
  c.queue_pairs = options.queue_pairs;
  c.footprint_bytes = options.footprint_bytes;
  c.gpu = discovery.gpu;
  c.shares_gpu = discovery.shares_gpu;
  c.bind = options.bind;
  c.tcp_threads = options.tcp_threads;
  c.verbs = options.verbs;
  c.verbs.device = discovery.device;
  c.verbs.gid_index = options.gid_index;
  return c;
}

std::string point_name(const Case& c) {
  std::string name =
      fmt::format("{} {} {}", to_string(c.suite), to_string(c.op), format_exact_size(c.size_bytes));
  if (!times_messages(c.suite)) name += fmt::format(" {}", to_string(c.direction));
  return name;
}

// "mlx5_0:gpu0"
std::string pair_name(const Discovery& discovery) {
  return fmt::format("{}:gpu{}", discovery.device, discovery.gpu);
}

}  // namespace

std::string no_load_reason(Path path, MemoryKind memory) {
  if (is_baseline(path)) return "no GPU works beside it: its payload is in host memory";
  if (memory == MemoryKind::host)
    return "overlap needs GPU memory on both ends, and the payload is in host memory: measured without a "
           "load only";
  return "";
}

std::vector<CasePoint> plan_cases(const MeasureOptions& options, const Discovery& discovery) {
  std::vector<CasePoint> points;
  Case c = make_case(options, discovery);
  const measure::CoreBinding near(c);  // staging is calibrated where the cases will run
  for (const Suite suite : options.suites)
    for (const Op op : options.ops)
      for (const CompletionMode completion : options.completions)
        for (const std::uint64_t size : sizes_of(suite, options))
          for (const Direction direction : directions_of(suite, options)) {
            c.suite = suite;
            c.op = op;
            c.completion = completion;
            c.size_bytes = size;
            c.direction = direction;
            // A ping-pong is one message at a time on one queue pair.
            c.queue_pairs = times_messages(suite) ? 1 : options.queue_pairs;
            c.depth = times_messages(suite) ? 1 : options.depth;
            CasePoint point;
            for (const Path path : discovery.paths) {
              c.path = path;
              c.memory = is_baseline(path) ? MemoryKind::host : discovery.memory;
              c.staging = options.staging;
              if (is_staged(path)) c.staging.chunk_bytes = chunk_bytes(c, options);
              for (const Load load : loads_of(c, options)) {
                c.load = load;
                point.push_back(c);
              }
            }
            points.push_back(std::move(point));
          }
  return points;
}

Case responder_case(const Case& c, const MeasureOptions& options, const Discovery& discovery) {
  Case other = c;
  other.gpu = discovery.remote_gpu;
  other.verbs.device = discovery.remote_device;
  other.verbs.gid_index = options.remote_gid_index;
  return other;
}

std::vector<Point> plan_points(const MeasureOptions& options, const std::vector<PlacedPair>& pairs) {
  std::vector<std::vector<CasePoint>> by_pair;
  by_pair.reserve(pairs.size());
  for (const PlacedPair& pair : pairs) by_pair.push_back(plan_cases(options, pair.discovery));
  std::vector<Point> points;
  for (std::size_t i = 0; i < by_pair.front().size(); ++i) {
    const CasePoint& cases = by_pair.front()[i];
    Point point{.name = point_name(cases.front()), .measurements = {}};
    for (std::size_t k = 0; k < cases.size(); ++k) {
      std::vector<PlacedCase> together;
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        Case alone = by_pair[p][i][k];
        if (pairs.size() > 1) alone.pair = pair_name(pairs[p].discovery);
        const auto place = [&](const Case& c) {
          return PlacedCase{pairs[p].session, c, responder_case(c, options, pairs[p].discovery)};
        };
        point.measurements.push_back(measure_case({place(alone)}));
        alone.pairs_at_once = static_cast<std::uint32_t>(pairs.size());
        together.push_back(place(alone));
      }
      if (pairs.size() > 1) point.measurements.push_back(measure_case(std::move(together)));
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace gdrbench::benchmarks
