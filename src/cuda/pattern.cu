#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/pattern.hpp"
#include "cuda/pattern_words.hpp"

namespace gdrbench::cuda {
namespace {

constexpr std::uint64_t word_bytes = 8;
constexpr std::uint64_t group_bytes = 16;  // the largest access of a thread
constexpr unsigned threads = 256;
// Each thread has so many groups on their way at once: 128 KiB on a full multiprocessor, several times what
// covers the latency of HBM.
constexpr unsigned groups_per_thread = 4;
constexpr std::uint64_t tile_bytes = group_bytes * threads * groups_per_thread;

/// The group at `from`, of which `bytes` bytes are there.
template <bool aligned>
__device__ ulonglong2 load(const std::byte* from, std::uint64_t bytes) {
  if (aligned && bytes >= group_bytes) return *reinterpret_cast<const ulonglong2*>(from);
  ulonglong2 group{0, 0};
  for (unsigned i = 0; i < group_bytes && i < bytes; ++i)
    (i < word_bytes ? group.x : group.y) |= static_cast<unsigned long long>(from[i]) << i % word_bytes * 8;
  return group;
}

template <bool aligned>
__device__ void store(std::byte* to, std::uint64_t bytes, ulonglong2 group) {
  if (aligned && bytes >= group_bytes) {
    *reinterpret_cast<ulonglong2*>(to) = group;
    return;
  }
  for (unsigned i = 0; i < group_bytes && i < bytes; ++i)
    to[i] = static_cast<std::byte>((i < word_bytes ? group.x : group.y) >> i % word_bytes * 8);
}

/// The bits of a word of which the range has `bytes` bytes.
__device__ std::uint64_t present(std::uint64_t bytes) {
  return bytes >= word_bytes ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes * 8) - 1;
}

// In both kernels a block takes tiles of the ranges blockIdx.y, blockIdx.y + gridDim.y …, in ascending order,
// so that no thread divides. The words of a thread's groups in a tile are a constant apart.
constexpr std::uint64_t words_between_groups = threads * group_bytes / word_bytes;

template <bool aligned>
__global__ void __launch_bounds__(threads) write_ranges(PatternRanges ranges, std::uint64_t flip) {
  for (std::uint64_t range = blockIdx.y; range < ranges.count; range += gridDim.y) {
    std::byte* const start = ranges.start + range * ranges.stride;
    for (std::uint64_t tile = blockIdx.x * tile_bytes; tile < ranges.length; tile += gridDim.x * tile_bytes) {
      const std::uint64_t first = tile + threadIdx.x * group_bytes;
      const PatternWords words(ranges.seed + range, first / word_bytes);
      const bool whole = aligned && tile + tile_bytes <= ranges.length;
#pragma unroll
      for (unsigned g = 0; g < groups_per_thread; ++g) {
        const std::uint64_t at = first + g * threads * group_bytes;
        const ulonglong2 group{words.peek(g * words_between_groups) ^ flip,
                               words.peek(g * words_between_groups + 1) ^ flip};
        if (whole) {
          *reinterpret_cast<ulonglong2*>(start + at) = group;
        } else if (at < ranges.length) {
          store<aligned>(start + at, ranges.length - at, group);
        }
      }
    }
  }
}

/// Leaves in `first_wrong` the least number of a wrong word; words are numbered through all ranges.
template <bool aligned>
__global__ void __launch_bounds__(threads)
    check_ranges(PatternRanges ranges, unsigned long long* first_wrong) {
  const std::uint64_t words_per_range = (ranges.length + word_bytes - 1) / word_bytes;
  for (std::uint64_t range = blockIdx.y; range < ranges.count; range += gridDim.y) {
    const std::byte* const start = ranges.start + range * ranges.stride;
    for (std::uint64_t tile = blockIdx.x * tile_bytes; tile < ranges.length; tile += gridDim.x * tile_bytes) {
      const std::uint64_t first = tile + threadIdx.x * group_bytes;
      const PatternWords words(ranges.seed + range, first / word_bytes);
      const bool whole = tile + tile_bytes <= ranges.length;
      ulonglong2 found[groups_per_thread];
      // All loads before the first use of any.
      if (aligned && whole) {
#pragma unroll
        for (unsigned g = 0; g < groups_per_thread; ++g)
          found[g] = *reinterpret_cast<const ulonglong2*>(start + first + g * threads * group_bytes);
      } else {
#pragma unroll
        for (unsigned g = 0; g < groups_per_thread; ++g) {
          const std::uint64_t at = first + g * threads * group_bytes;
          found[g] = at < ranges.length ? load<aligned>(start + at, ranges.length - at) : ulonglong2{0, 0};
        }
      }
      std::uint64_t wrong_bits = 0;
      std::uint64_t wrong_word = 0;
#pragma unroll
      for (unsigned g = groups_per_thread; g-- > 0;) {  // downwards: the first one stays
        const std::uint64_t at = first + g * threads * group_bytes;
        std::uint64_t low = found[g].x ^ words.peek(g * words_between_groups);
        std::uint64_t high = found[g].y ^ words.peek(g * words_between_groups + 1);
        if (!whole) {
          low &= at < ranges.length ? present(ranges.length - at) : 0;
          high &= at + word_bytes < ranges.length ? present(ranges.length - at - word_bytes) : 0;
        }
        if ((low | high) != 0) wrong_word = at / word_bytes + (low != 0 ? 0 : 1);
        wrong_bits |= low | high;
      }
      if (wrong_bits != 0) {
        // What this thread would find from here on comes later.
        atomicMin(first_wrong, static_cast<unsigned long long>(range * words_per_range + wrong_word));
        return;
      }
    }
  }
}

bool is_aligned(const PatternRanges& ranges) {
  return reinterpret_cast<std::uintptr_t>(ranges.start) % group_bytes == 0 &&
         (ranges.count <= 1 || ranges.stride % group_bytes == 0);
}

dim3 grid_for(const PatternRanges& ranges, unsigned max_blocks) {
  constexpr std::uint64_t max_rows = 65'535;  // "Maximum y-dimension of a grid", CUDA C++ Programming Guide
  const std::uint64_t tiles =
      std::min<std::uint64_t>((ranges.length + tile_bytes - 1) / tile_bytes, max_blocks);
  const std::uint64_t rows = std::min({ranges.count, (max_blocks + tiles - 1) / tiles, max_rows});
  return {static_cast<unsigned>(tiles), static_cast<unsigned>(rows)};
}

bool is_empty(const PatternRanges& ranges) {
  return ranges.length == 0 || ranges.count == 0;
}

// Not by <<<>>>, after which cudaGetLastError may tell of something else, such as an event that was not
// ready.
template <class Argument>
void launch(void (*kernel)(PatternRanges, Argument), const char* name, PatternRanges ranges,
            Argument argument, dim3 grid, const Stream& stream) {
  void* arguments[] = {&ranges, &argument};
  check_runtime(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, dim3(threads), arguments, 0,
                                 static_cast<cudaStream_t>(stream.get())),
                std::string("launching the kernel that ") + name + " the test pattern");
}

// Kernels are loaded when first used, which waits for those that run.
template <class Kernel>
void load_now(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  check_runtime(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)),
                "loading the kernels of the test pattern",
                "a build has code for the GPUs that CMAKE_CUDA_ARCHITECTURES names; the default begins with "
                "compute capability 7.5");
}

}  // namespace

PatternKernels::PatternKernels(int gpu) : gpu_(gpu), stream_(gpu), host_word_(gpu, word_bytes) {
  load_now(write_ranges<true>);
  load_now(write_ranges<false>);
  load_now(check_ranges<true>);
  load_now(check_ranges<false>);
  const std::string where = " on GPU " + std::to_string(gpu);
  int multiprocessors = 0;
  check_runtime(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu),
                "reading cudaDevAttrMultiProcessorCount" + where);
  // Several times what runs at once, so that none waits long for the last one.
  max_blocks_ = static_cast<unsigned>(multiprocessors) * 32;
  void* memory = nullptr;
  check_runtime(cudaMalloc(&memory, word_bytes), "allocating GPU memory" + where);
  device_word_.reset(memory);
}

void PatternKernels::start_writing(const PatternRanges& ranges, std::uint64_t flip) {
  if (is_empty(ranges)) return;
  use_device(gpu_);
  launch(is_aligned(ranges) ? write_ranges<true> : write_ranges<false>, "writes", ranges, flip,
         grid_for(ranges, max_blocks_), stream_);
}

void PatternKernels::start_checking(const PatternRanges& ranges) {
  if (is_empty(ranges)) return;
  use_device(gpu_);
  launch(is_aligned(ranges) ? check_ranges<true> : check_ranges<false>, "checks", ranges,
         static_cast<unsigned long long*>(device_word_.get()), grid_for(ranges, max_blocks_), stream_);
}

void PatternKernels::write(const PatternRanges& ranges, std::uint64_t flip) {
  const std::lock_guard lock(mutex_);
  start_writing(ranges, flip);
  stream_.wait();
}

std::optional<WrongWord> PatternKernels::first_wrong(const PatternRanges& ranges) {
  if (is_empty(ranges)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  use_device(gpu_);
  constexpr std::uint64_t none = ~std::uint64_t{0};
  auto& word = *reinterpret_cast<std::uint64_t*>(host_word_.address());
  auto* const there = static_cast<std::byte*>(device_word_.get());
  auto* const here = host_word_.address();
  word = none;
  stream_.copy(there, here, word_bytes, CopyKind::host_to_gpu);
  start_checking(ranges);
  stream_.copy(here, there, word_bytes, CopyKind::gpu_to_host);
  stream_.wait();
  if (word == none) return std::nullopt;

  const std::uint64_t words_per_range = (ranges.length + word_bytes - 1) / word_bytes;
  WrongWord wrong{.range = word / words_per_range, .offset = word % words_per_range * word_bytes};
  word = 0;
  stream_.copy(here, ranges.start + wrong.range * ranges.stride + wrong.offset,
               std::min(word_bytes, ranges.length - wrong.offset), CopyKind::gpu_to_host);
  stream_.wait();
  wrong.found = word;
  return wrong;
}

}  // namespace gdrbench::cuda
