// Holds the test pattern's kernels against the GPU's own copy: one line of JSON, then a line for each.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "cuda/driver_api.hpp"
#include "cuda/pattern.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench {
namespace {

constexpr std::uint64_t bytes = std::uint64_t{1} << 30;

class Mark {
 public:
  explicit Mark(cudaStream_t stream) : stream_(stream) {
    cuda::check_runtime(cudaEventCreate(&event_), "creating an event");
  }
  ~Mark() { cudaEventDestroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  void record() { cuda::check_runtime(cudaEventRecord(event_, stream_), "recording an event"); }
  /// Waits for both.
  double seconds_since(const Mark& before) const {
    cuda::check_runtime(cudaEventSynchronize(event_), "waiting for an event");
    float ms = 0;
    cuda::check_runtime(cudaEventElapsedTime(&ms, before.event_, event_), "cudaEventElapsedTime");
    return ms / 1e3;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
};

/// The median of seven, after one that is not counted.
template <class Start>
double median_seconds(cudaStream_t stream, Start start) {
  Mark before(stream), after(stream);
  std::array<double, 7> seconds{};
  for (int i = -1; i < static_cast<int>(seconds.size()); ++i) {
    before.record();
    start();
    after.record();
    seconds[static_cast<std::size_t>(std::max(i, 0))] = after.seconds_since(before);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void measure() {
  const Buffer one(BufferOptions{.kind = MemoryKind::cuda, .length = bytes});
  const Buffer other(BufferOptions{.kind = MemoryKind::cuda, .length = bytes});
  cuda::PatternKernels kernels(0);
  const auto stream = static_cast<cudaStream_t>(kernels.stream().get());
  const cuda::PatternRanges range{.start = one.data(), .length = bytes, .seed = 1};

  // Bytes that cross the memory's pins: a copy's twice.
  const double copy = 2 * bytes / median_seconds(stream, [&] {
                        cuda::check_runtime(cudaMemcpyAsync(other.data(), one.data(), bytes,
                                                            cudaMemcpyDeviceToDevice, stream),
                                            "cudaMemcpyAsync within the GPU");
                      });
  const double fill = bytes / median_seconds(stream, [&] { kernels.start_writing(range, 0); });
  // Of right bytes alone: a thread ends at its first wrong one.
  if (kernels.first_wrong(range)) throw Error("the pattern that was written is not the one that is checked");
  const double check = bytes / median_seconds(stream, [&] { kernels.start_checking(range); });

  const GpuSummary gpu = gpu_summary();
  fmt::print(
      "{{\"gpu\": \"{}\", \"driver\": \"{}\", \"bytes\": {}, \"copy_bytes_per_second\": {:.4g}, "
      "\"fill_bytes_per_second\": {:.4g}, \"check_bytes_per_second\": {:.4g}, \"fill_to_copy\": {:.3f}, "
      "\"check_to_copy\": {:.3f}}}\n",
      gpu.name, gpu.driver, bytes, copy, fill, check, fill / copy, check / copy);
  fmt::print("copy   {:7.0f} GB/s read and written\n", copy / 1e9);
  fmt::print("fill   {:7.0f} GB/s written, {:.0f} % of copy\n", fill / 1e9, 100 * fill / copy);
  fmt::print("check  {:7.0f} GB/s read, {:.0f} % of copy\n", check / 1e9, 100 * check / copy);
}

}  // namespace
}  // namespace gdrbench

int main() {
  constexpr int skipped = 77;
  if (const std::string reason = gdrbench::gpu_summary().unavailable; !reason.empty()) {
    fmt::print("skipped: {}\n", reason);
    return skipped;
  }
  try {
    gdrbench::measure();
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "gpu_memory_speed: %s\n", fault.what());
    return 1;
  }
}
