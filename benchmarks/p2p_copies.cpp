#include "benchmarks/p2p_copies.hpp"

#include <fmt/format.h>

#include <memory>

#include "cuda/p2p.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::benchmarks {
namespace {

struct Pair {
  Pair(const P2pCopyOptions& options, std::uint64_t size)
      : source({.kind = MemoryKind::cuda, .length = size, .gpu = options.gpu}),
        target({.kind = MemoryKind::cuda, .length = size, .gpu = options.remote_gpu}),
        copy(options.gpu, options.remote_gpu) {}
  Buffer source, target;
  cuda::P2pCopy copy;
};

LocalRepetition repetition(const cuda::P2pCopy::Times& times, std::uint64_t iterations) {
  const double each = 1e6 / static_cast<double>(iterations);
  return {.iterations = iterations, .time_us = times.host_s * each, .device_time_us = times.device_s * each};
}

LocalRun measure(Pair& pair, std::uint64_t iterations, bool single) {
  const std::uint64_t size = pair.source.size();
  static std::uint64_t seed = 0;
  fill_pattern(pair.source, {.length = size, .seed = ++seed});
  scrub(pair.target, {.length = size, .seed = seed});
  cuda::P2pCopy::Times times;
  const std::uint64_t batch = single ? 1 : iterations;
  pair.copy.run(pair.target.data(), pair.source.data(), size, 1);  // warm-up
  scrub(pair.target, {.length = size, .seed = seed});
  for (std::uint64_t done = 0; done < iterations; done += batch) {
    const auto once = pair.copy.run(pair.target.data(), pair.source.data(), size, batch);
    times.host_s += once.host_s;
    times.device_s += once.device_s;
  }
  if (const auto wrong = find_mismatch(pair.target, {.length = size, .seed = seed}))
    throw Error(fmt::format("cudaMemcpyPeerAsync of {} bytes: wrong byte at {}", size, wrong->offset));
  return {.elapsed_s = times.host_s, .repetitions = {repetition(times, iterations)}};
}

}  // namespace

std::vector<LocalCase> p2p_copy_cases(const P2pCopyOptions& options) {
  std::vector<std::uint64_t> sizes = options.sizes;
  if (sizes.empty()) sizes = {8, 4096, 65536, 1 << 20, 8 << 20, 64 << 20};
  const std::string link = cuda::p2p_link(options.gpu, options.remote_gpu).kind;
  std::vector<LocalCase> cases;
  for (const bool single : {true, false})
    for (const std::uint64_t size : sizes) {
      const std::string how = single ? "single" : "back to back";
      LocalResult result{.suite = "p2p",
                         .what = "cudaMemcpyPeerAsync",
                         .labels = {},
                         .size_bytes = size,
                         .moves_data = true,
                         .repetitions = {}};
      result.labels = {
          {"how", how}, {"link", link}, {"gpus", fmt::format("{}-{}", options.gpu, options.remote_gpu)}};
      cases.push_back(
          {.name = fmt::format("p2p/cudaMemcpyPeerAsync/{}/{}", single ? "single" : "back_to_back", size),
           .skipped_as = "cudaMemcpyPeerAsync",
           .results = {std::move(result)},
           .prepare = [options, size, single]() -> LocalMeasure {
             auto pair = std::make_shared<Pair>(options, size);
             return [pair, single](std::uint64_t n) { return measure(*pair, n, single); };
           }});
    }
  return cases;
}

}  // namespace gdrbench::benchmarks
