// Times the copies of the staged paths alone, as they run in them: what a pair of small ones costs by each
// engine, and what a pipeline of large ones reaches against one long copy between events.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "cuda/driver_api.hpp"
#include "cuda/stream.hpp"
#include "gdrbench/memory.hpp"
#include "memory/copier.hpp"

namespace gdrbench {
namespace {

using memory::Copier;
using memory::Towards;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Memory {
  Buffer gpu{BufferOptions{.kind = MemoryKind::cuda, .length = std::uint64_t{1} << 30}};
  Buffer host{BufferOptions{.length = std::uint64_t{256} << 20, .pin_for_gpu = true}};
};

std::unique_ptr<Copier> copier(Towards towards, CopyEngine engine, unsigned streams) {
  return memory::make_copier(
      {.payload = MemoryKind::cuda, .towards = towards, .engine = engine, .streams = streams});
}

void submit(Copier& by, Towards towards, std::byte* gpu, std::byte* host, std::uint64_t length) {
  towards == Towards::gpu ? by.submit(gpu, host, length) : by.submit(host, gpu, length);
}

/// Microseconds of one copy, from submit until it is known to be finished.
double one_copy_us(const Memory& m, Towards towards, CopyEngine engine, std::uint64_t size) {
  const auto by = copier(towards, engine, 1);
  by->start();
  std::vector<double> times;
  for (int i = 0; i < 2200; ++i) {
    const auto start = Clock::now();
    submit(*by, towards, m.gpu.data(), m.host.data(), size);
    while (by->finished() < by->submitted()) {
    }
    if (i >= 200) times.push_back(seconds_since(start) * 1e6);
  }
  by->rest();
  return median(times);
}

/// Bytes a second of a pipeline of chunks with `slots` in flight.
double pipeline(const Memory& m, Towards towards, CopyEngine engine, std::uint64_t chunk, unsigned streams,
                unsigned slots, std::uint64_t total) {
  const auto by = copier(towards, engine, streams);
  by->start();
  double best = 0;
  std::vector<double> rates;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const std::uint64_t before = by->submitted(), chunks = total / chunk;
    const auto start = Clock::now();
    while (by->finished() - before < chunks)
      while (by->submitted() - before < chunks && by->submitted() - by->finished() < slots &&
             by->has_room()) {
        const std::uint64_t index = by->submitted() - before;
        submit(*by, towards, m.gpu.data() + index * chunk % m.gpu.size(),
               m.host.data() + index % slots * chunk, chunk);
      }
    rates.push_back(static_cast<double>(chunks * chunk) / seconds_since(start));
  }
  by->rest();
  best = median(rates);
  return best;
}

/// Both ways at once, one host thread.
std::pair<double, double> duplex(const Memory& m, std::uint64_t chunk, unsigned streams, unsigned slots) {
  std::unique_ptr<Copier> both[2] = {copier(Towards::host, CopyEngine::copy_engine, streams),
                                     copier(Towards::gpu, CopyEngine::copy_engine, streams)};
  const std::uint64_t chunks = (std::uint64_t{2} << 30) / chunk;
  const auto start = Clock::now();
  double ended[2] = {};
  while (ended[0] == 0 || ended[1] == 0)
    for (int way = 0; way < 2; ++way) {
      Copier& by = *both[way];
      const auto towards = way == 0 ? Towards::host : Towards::gpu;
      if (by.submitted() < chunks && by.submitted() - by.finished() < slots) {
        const std::uint64_t index = by.submitted();
        submit(by, towards, m.gpu.data() + (way * m.gpu.size() / 2 + index * chunk % (m.gpu.size() / 2)),
               m.host.data() + (index % slots + way * slots) * chunk, chunk);
      }
      if (ended[way] == 0 && by.finished() == chunks) ended[way] = seconds_since(start);
    }
  const auto bytes = static_cast<double>(chunks * chunk);
  return {bytes / ended[0], bytes / ended[1]};
}

/// One copy of 256 MiB, by the host's clock from before it is submitted until it is known to be finished.
double by_the_clock(const Memory& m, Towards towards) {
  const auto by = copier(towards, CopyEngine::copy_engine, 1);
  std::vector<double> rates;
  for (int i = 0; i < 8; ++i) {
    const auto start = Clock::now();
    submit(*by, towards, m.gpu.data(), m.host.data(), m.host.size());
    while (by->finished() < by->submitted()) {
    }
    if (i > 0) rates.push_back(static_cast<double>(m.host.size()) / seconds_since(start));
  }
  return median(rates);
}

/// The same between two events.
double by_events(const Memory& m, Towards towards) {
  const cuda::Stream stream(0);
  auto* const native = static_cast<cudaStream_t>(stream.get());
  cudaEvent_t start = nullptr, end = nullptr;
  cuda::check_runtime(cudaEventCreate(&start), "event");
  cuda::check_runtime(cudaEventCreate(&end), "event");
  std::vector<double> rates;
  for (int i = 0; i < 8; ++i) {
    cudaEventRecord(start, native);
    if (towards == Towards::gpu)
      cudaMemcpyAsync(m.gpu.data(), m.host.data(), m.host.size(), cudaMemcpyHostToDevice, native);
    else
      cudaMemcpyAsync(m.host.data(), m.gpu.data(), m.host.size(), cudaMemcpyDeviceToHost, native);
    cudaEventRecord(end, native);
    cuda::check_runtime(cudaEventSynchronize(end), "copy between events");
    float ms = 0;
    cudaEventElapsedTime(&ms, start, end);
    if (i > 0) rates.push_back(static_cast<double>(m.host.size()) / (ms * 1e-3));
  }
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  return median(rates);
}

}  // namespace
}  // namespace gdrbench

int main() {
  using namespace gdrbench;
  if (const GpuSummary gpu = gpu_summary(); !gpu.unavailable.empty()) {
    fmt::print("skipped: {}\n", gpu.unavailable);
    return 77;
  }
  const Memory m;
  fmt::print("small copies, us (GPU→host + host→GPU = pair)\n");
  for (const std::uint64_t size : {8, 64, 512, 1024, 2048, 4096, 8192, 16384}) {
    double pair[2] = {};
    std::string text;
    for (const CopyEngine engine : {CopyEngine::copy_engine, CopyEngine::kernel}) {
      const double out = one_copy_us(m, Towards::host, engine, size);
      const double in = one_copy_us(m, Towards::gpu, engine, size);
      pair[engine == CopyEngine::kernel ? 1 : 0] = out + in;
      text += fmt::format("  {} {:.2f} + {:.2f} = {:.2f}", to_string(engine), out, in, out + in);
    }
    fmt::print("{:>6} B{}  ratio {:.2f}\n", size, text, pair[1] / pair[0]);
    std::fflush(stdout);
  }
  for (const Towards towards : {Towards::host, Towards::gpu}) {
    const double long_copy = by_events(m, towards);
    const double by_clock = by_the_clock(m, towards);
    fmt::print("{}: one long copy between events {:.2f} GB/s, by the clock {:.2f} GB/s ({:.3f})\n",
               towards == Towards::gpu ? "host→GPU" : "GPU→host", long_copy * 1e-9, by_clock * 1e-9,
               by_clock / long_copy);
    for (const std::uint64_t chunk : {64 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20})
      for (const unsigned streams : {1U, 2U, 4U}) {
        const double rate =
            pipeline(m, towards, CopyEngine::copy_engine, chunk, streams, 16, std::uint64_t{2} << 30);
        fmt::print("  chunk {:>5} KiB streams {} {:.2f} GB/s  {:.3f}\n", chunk >> 10, streams, rate * 1e-9,
                   rate / long_copy);
      }
    fmt::print("  kernel 4 KiB {:.2f} GB/s, 16 KiB {:.2f} GB/s\n",
               pipeline(m, towards, CopyEngine::kernel, 4096, 1, 16, 64 << 20) * 1e-9,
               pipeline(m, towards, CopyEngine::kernel, 16384, 1, 16, 64 << 20) * 1e-9);
    std::fflush(stdout);
  }
  for (const std::uint64_t chunk : {256 << 10, 1 << 20, 4 << 20})
    for (const unsigned streams : {1U, 2U}) {
      const auto [out, in] = duplex(m, chunk, streams, 8);
      fmt::print("both ways, chunk {} KiB streams {}: {:.2f} out, {:.2f} in GB/s\n", chunk >> 10, streams,
                 out * 1e-9, in * 1e-9);
    }
}
