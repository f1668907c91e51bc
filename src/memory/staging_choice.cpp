#include "memory/staging_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "gdrbench/size.hpp"
#include "memory/copier.hpp"
#include "memory/staging_calibration.hpp"

namespace gdrbench::memory {
namespace {

// Each resident kernel takes a block of the GPU and reads host memory all the time.
constexpr std::uint32_t most_lanes_with_kernels = 8;

const StagingCalibration& calibration_of(int gpu) {
  static std::mutex mutex;
  static std::map<int, StagingCalibration> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(gpu);
  return found != known.end() ? found->second : known.emplace(gpu, calibrate_staging(gpu)).first->second;
}

}  // namespace

EngineChoice choose_engine(const StagingCalibration& calibration, std::uint64_t piece_bytes) {
  // Sizes between two measured ones are judged by the larger.
  const auto at = std::find_if(calibration.small.begin(), calibration.small.end(),
                               [&](const auto& small) { return small.size_bytes >= piece_bytes; });
  if (at == calibration.small.end())
    return {CopyEngine::copy_engine, fmt::format("pieces of {} are large", format_size(piece_bytes))};
  const auto best = std::min_element(at->pair_us.begin(), at->pair_us.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string all;
  for (const auto& [engine, time_us] : at->pair_us)
    all += fmt::format("{}{} {:.1f} us", all.empty() ? "" : ", ", to_string(engine), time_us);
  return {best->first, fmt::format("a pair of copies of {} took: {}", format_size(at->size_bytes), all)};
}

std::uint64_t choose_chunk_bytes(const StagingCalibration& calibration, double share) {
  double best = 0;
  for (const auto& large : calibration.large) best = std::max(best, large.bytes_per_second);
  for (const auto& large : calibration.large)
    if (large.bytes_per_second >= share * best) return large.chunk_bytes;
  return StagingOptions{}.chunk_bytes;
}

EngineChoice choose_engine(const Case& c, std::uint64_t piece_bytes) {
  if (c.memory == MemoryKind::host) return {CopyEngine::automatic, "the payload is in host memory"};
  if (!is_pipelined(c.staging.variant)) return {CopyEngine::copy_engine, "plain staging"};
  if (c.staging.engine != CopyEngine::automatic) return {c.staging.engine, "asked for"};
  if (c.staging.variant != Staging::automatic) return {CopyEngine::copy_engine, "the default of pipelined"};
  if (piece_bytes > most_bytes(CopyEngine::kernel))
    return {CopyEngine::copy_engine, fmt::format("pieces of {} are large", format_size(piece_bytes))};
  if (c.shares_gpu)
    return {CopyEngine::copy_engine,
            "both ends run on one GPU, on which a kernel of one keeps out the other's"};
  if (c.queue_pairs > most_lanes_with_kernels)
    return {CopyEngine::copy_engine, fmt::format("{} lanes are too many for kernels", c.queue_pairs)};
  return choose_engine(calibration_of(c.gpu), piece_bytes);
}

std::uint64_t choose_chunk_bytes(const Case& c) {
  if (c.memory == MemoryKind::host) return StagingOptions{}.chunk_bytes;
  constexpr std::uint64_t least = 64 << 10, parts = 4;
  // Sockets are far slower than the copy engine: what counts there is that the CPU, which moves every byte,
  // seldom has a copy to start and to look after. Between two H200s 2 MiB was best, by one socket as by 16.
  constexpr std::uint64_t of_tcp = 2 << 20;
  const std::uint64_t wanted = uses_verbs(c.path) ? choose_chunk_bytes(calibration_of(c.gpu), 0.97) : of_tcp;
  // Many lanes share the bounce memory.
  const std::uint64_t most_in_flight = uses_verbs(c.path) ? 16 << 20 : 32 << 20;
  const std::uint64_t busy = std::clamp(wanted, least, std::max(least, most_in_flight / c.queue_pairs));
  if (!times_messages(c.suite)) return busy;
  return std::clamp(c.size_bytes / parts, least, busy);
}

}  // namespace gdrbench::memory
