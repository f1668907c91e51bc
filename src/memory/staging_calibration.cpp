#include "memory/staging_calibration.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "gdrbench/memory.hpp"
#include "memory/copier.hpp"
#include "memory/gdrcopy.hpp"

namespace gdrbench::memory {
namespace {

constexpr std::uint64_t area_bytes = 64 << 20;

struct Area {
  explicit Area(int gpu)
      : payload(BufferOptions{.kind = MemoryKind::cuda, .length = area_bytes, .gpu = gpu}),
        bounce(BufferOptions{.length = area_bytes, .gpu = gpu, .pin_for_gpu = true}) {}

  void submit(Copier& copier, Towards towards, std::uint64_t offset, std::uint64_t length) const {
    std::byte* const gpu = payload.data() + offset;
    std::byte* const host = bounce.data() + offset;
    towards == Towards::gpu ? copier.submit(gpu, host, length) : copier.submit(host, gpu, length);
  }

  Buffer payload, bounce;
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

// Best of three passes over the area, with as many chunks in flight as a lane has.
double bytes_per_second(const Area& area, int gpu, Towards towards, std::uint64_t chunk_bytes) {
  constexpr std::uint64_t in_flight_bytes = 4 << 20;
  const std::uint64_t chunks = area_bytes / chunk_bytes;
  const std::uint64_t most = std::clamp<std::uint64_t>(in_flight_bytes / chunk_bytes, 2, 16);
  const auto by = copier(area, gpu, towards, CopyEngine::copy_engine);
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const std::uint64_t before = by->submitted();
    const double start_us = now_us();
    while (by->finished() - before < chunks)
      while (by->submitted() - before < chunks && by->submitted() - by->finished() < most)
        area.submit(*by, towards, (by->submitted() - before) * chunk_bytes, chunk_bytes);
    best = std::max(best, static_cast<double>(area_bytes) / (now_us() - start_us) * 1e6);
  }
  return best;
}

}  // namespace

StagingCalibration calibrate_staging(int gpu) {
  const Area area(gpu);
  StagingCalibration calibration;
  std::vector<CopyEngine> engines{CopyEngine::copy_engine, CopyEngine::kernel};
  if (gdrcopy_unavailable().empty()) engines.push_back(CopyEngine::gdrcopy);
  for (std::uint64_t size = 64; size <= most_bytes(CopyEngine::kernel); size *= 4) {
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

}  // namespace gdrbench::memory
