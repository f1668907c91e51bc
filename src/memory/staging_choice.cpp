#include "memory/staging_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/system.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/size.hpp"
#include "memory/copier.hpp"
#include "memory/gdrcopy.hpp"

namespace gdrbench::memory {
namespace {

// Each resident kernel takes a block of the GPU and reads host memory all the time.
constexpr std::uint32_t max_queue_pairs_with_kernels = 8;

constexpr std::uint64_t area_bytes = 64 << 20;

struct Area {
  explicit Area(int gpu)
      : payload(BufferOptions{.kind = MemoryKind::cuda, .length = area_bytes, .gpu = gpu}),
        staging(BufferOptions{.length = area_bytes, .gpu = gpu, .pin_for_gpu = true}) {}

  void submit(Copier& copier, Towards towards, std::uint64_t offset, std::uint64_t length) const {
    std::byte* const gpu = payload.data() + offset;
    std::byte* const host = staging.data() + offset;
    towards == Towards::gpu ? copier.submit(gpu, host, length) : copier.submit(host, gpu, length);
  }

  Buffer payload, staging;
};

std::unique_ptr<Copier> copier(const Area& area, int gpu, Towards towards, CopyEngine engine) {
  return make_copier({.payload = MemoryKind::cuda,
                      .range = {area.payload.data(), area.payload.size()},
                      .gpu = gpu,
                      .towards = towards,
                      .engine = engine,
                      .streams = StagingOptions{}.streams});
}

// Median over copies one at a time, from submitting until it is known to be finished.
double one_copy_us(const Area& area, int gpu, Towards towards, CopyEngine engine, std::uint64_t length) {
  constexpr int warmup = 20, measured = 101;
  const auto by = copier(area, gpu, towards, engine);
  by->start();
  std::vector<double> times_us;
  for (int i = 0; i < warmup + measured; ++i) {
    const double start_us = now_us();
    area.submit(*by, towards, 0, length);
    while (by->finished() < by->submitted()) {
    }
    if (i >= warmup) times_us.push_back(now_us() - start_us);
  }
  by->rest();
  std::nth_element(times_us.begin(), times_us.begin() + measured / 2, times_us.end());
  return times_us[measured / 2];
}

// Best of three passes over the area, with as many chunks in flight as a queue pair has.
double bytes_per_second(const Area& area, int gpu, Towards towards, std::uint64_t chunk_bytes) {
  constexpr std::uint64_t in_flight_bytes = 4 << 20;
  const std::uint64_t chunks = area_bytes / chunk_bytes;
  const std::uint64_t max_in_flight = std::clamp<std::uint64_t>(in_flight_bytes / chunk_bytes, 2, 16);
  const auto by = copier(area, gpu, towards, CopyEngine::copy_engine);
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const std::uint64_t before = by->submitted();
    const double start_us = now_us();
    while (by->finished() - before < chunks)
      while (by->submitted() - before < chunks && by->submitted() - by->finished() < max_in_flight)
        area.submit(*by, towards, (by->submitted() - before) * chunk_bytes, chunk_bytes);
    best = std::max(best, static_cast<double>(area_bytes) / (now_us() - start_us) * 1e6);
  }
  return best;
}

const StagingCalibration& calibration_of(int gpu) {
  static std::mutex mutex;
  static std::map<int, StagingCalibration> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(gpu);
  return found != known.end() ? found->second : known.emplace(gpu, calibrate_staging(gpu)).first->second;
}

}  // namespace

StagingCalibration calibrate_staging(int gpu) {
  const Area area(gpu);
  StagingCalibration calibration;
  std::vector<CopyEngine> engines{CopyEngine::copy_engine, CopyEngine::kernel};
  if (gdrcopy_unavailable().empty()) engines.push_back(CopyEngine::gdrcopy);
  for (std::uint64_t size = 64; size <= max_bytes(CopyEngine::kernel); size *= 4) {
    StagingCalibration::Small& small = calibration.small.emplace_back();
    small.size_bytes = size;
    for (const CopyEngine engine : engines)
      small.pair_us.emplace_back(engine, one_copy_us(area, gpu, Towards::host, engine, size) +
                                             one_copy_us(area, gpu, Towards::gpu, engine, size));
  }
  for (std::uint64_t chunk = 128 << 10; chunk <= 4 << 20; chunk *= 2)
    calibration.large.push_back(
        {.chunk_bytes = chunk,
         .bytes_per_second = std::min(bytes_per_second(area, gpu, Towards::host, chunk),
                                      bytes_per_second(area, gpu, Towards::gpu, chunk))});
  return calibration;
}

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

EngineChoice choose_engine(const StagingUse& use, const StagingOptions& asked, std::uint64_t piece_bytes) {
  if (use.payload == MemoryKind::host) return {CopyEngine::automatic, "the payload is in host memory"};
  if (!is_pipelined(asked.variant)) return {CopyEngine::copy_engine, "plain staging"};
  if (asked.engine != CopyEngine::automatic) return {asked.engine, "asked for"};
  if (asked.variant != Staging::automatic) return {CopyEngine::copy_engine, "the default of pipelined"};
  if (piece_bytes > max_bytes(CopyEngine::kernel))
    return {CopyEngine::copy_engine, fmt::format("pieces of {} are large", format_size(piece_bytes))};
  if (use.shares_gpu)
    return {CopyEngine::copy_engine,
            "both ends run on one GPU, on which a kernel of one keeps out the other's"};
  if (use.queue_pairs > max_queue_pairs_with_kernels)
    return {CopyEngine::copy_engine, fmt::format("{} queue pairs are too many for kernels", use.queue_pairs)};
  return choose_engine(calibration_of(use.gpu), piece_bytes);
}

std::uint64_t choose_chunk_bytes(const StagingUse& use) {
  if (use.payload == MemoryKind::host) return StagingOptions{}.chunk_bytes;
  constexpr std::uint64_t min_chunk_bytes = 64 << 10, parts = 4;
  // Sockets are far slower than the copy engine: what counts there is that the CPU, which moves every byte,
  // seldom has a copy to start and to look after. Between two H200s 2 MiB was best, by one socket as by 16.
  constexpr std::uint64_t for_sockets = 2 << 20;
  const std::uint64_t wanted =
      use.cpu_sends ? for_sockets : choose_chunk_bytes(calibration_of(use.gpu), 0.97);
  // Many queue pairs share the staging buffer.
  const std::uint64_t max_in_flight = use.cpu_sends ? 32 << 20 : 16 << 20;
  const std::uint64_t busy =
      std::clamp(wanted, min_chunk_bytes, std::max(min_chunk_bytes, max_in_flight / use.queue_pairs));
  if (!use.is_latency_critical) return busy;
  return std::clamp(use.message_bytes / parts, min_chunk_bytes, busy);
}

}  // namespace gdrbench::memory
