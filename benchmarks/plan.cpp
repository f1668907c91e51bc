#include "benchmarks/plan.hpp"

#include <algorithm>

#include "base/case_fields.hpp"
#include "measure/core_binding.hpp"
#include "memory/staging_choice.hpp"

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
  if (c.staging.variant == Staging::automatic && !options.chunk_given) return memory::choose_chunk_bytes(c);
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

}  // namespace

std::string no_load_reason(Path path, MemoryKind memory) {
  if (is_baseline(path)) return "no GPU works beside it: its payload is in host memory";
  if (memory == MemoryKind::host)
    return "overlap needs GPU memory on both ends, and the payload is in host memory: measured without a "
           "load only";
  return "";
}

std::vector<Point> plan_points(const MeasureOptions& options, const Discovery& discovery) {
  std::vector<Point> points;
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
            Point point;
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
  other.gpu = discovery.peer_gpu;
  other.verbs.device = discovery.peer_device;
  other.verbs.gid_index = options.peer_gid_index;
  return other;
}

}  // namespace gdrbench::benchmarks
