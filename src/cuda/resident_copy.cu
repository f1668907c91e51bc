#include "cuda/device.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/flagged_words.hpp"
#include "cuda/resident_copy.hpp"

namespace gdrbench::cuda {
namespace {

using Word = unsigned long long;  // {data, flag}

constexpr unsigned threads = 512;        // 4 KiB of data in one round
constexpr unsigned bytes_of_thread = 8;  // of data
constexpr unsigned round_bytes = threads * bytes_of_thread;
constexpr unsigned header_words = sizeof(ResidentCopy::Order) / 4;
// Whole cache lines.
constexpr std::uint64_t slot_bytes =
    (flagged_bytes(sizeof(ResidentCopy::Order) + ResidentCopy::max_bytes) + 127) / 128 * 128;
static_assert(slot_bytes == 32896 && sizeof(ResidentCopy::Order) == 24);
constexpr std::uint64_t counter_offset = ResidentCopy::slots * slot_bytes;

__device__ Word load_word(const Word* from) {
  Word word;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}

struct Pair {
  unsigned first, first_flag, second, second_flag;
};
__device__ void store_pair(Pair* to, const Pair& pair) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(pair.first), "r"(pair.first_flag), "r"(pair.second), "r"(pair.second_flag)
               : "memory");
}

// The first warp waits for the order and tells the block.
__device__ ResidentCopy::Order wait_for_order(const std::byte* slot, unsigned flag) {
  __shared__ ResidentCopy::Order shared;
  if (threadIdx.x < warpSize) {
    const unsigned index = threadIdx.x % header_words;
    const Word* const header = reinterpret_cast<const Word*>(slot) + index;
    Word word;
    do word = load_word(header);
    while (!__all_sync(~0U, static_cast<unsigned>(word >> 32) == flag));
    if (threadIdx.x < header_words)
      reinterpret_cast<unsigned*>(&shared)[threadIdx.x] = static_cast<unsigned>(word);
  }
  __syncthreads();
  const ResidentCopy::Order order = shared;
  __syncthreads();  // before the first warp writes the next one
  return order;
}

// Past any cache: the CPU, a NIC or a copy engine may have put the data there.
__device__ Word read_data(std::uint64_t address, unsigned bytes) {
  if (bytes >= bytes_of_thread && address % bytes_of_thread == 0)
    return __ldcv(reinterpret_cast<const Word*>(address));
  Word data = 0;
  for (unsigned i = 0; i < min(bytes, bytes_of_thread); ++i)
    data |= static_cast<Word>(__ldcv(reinterpret_cast<const unsigned char*>(address) + i)) << i * 8;
  return data;
}

__device__ void write_data(std::uint64_t address, unsigned bytes, Word data) {
  if (bytes >= bytes_of_thread && address % bytes_of_thread == 0) {
    *reinterpret_cast<Word*>(address) = data;
    return;
  }
  for (unsigned i = 0; i < min(bytes, bytes_of_thread); ++i)
    reinterpret_cast<unsigned char*>(address)[i] = static_cast<unsigned char>(data >> i * 8);
}

__global__ void __launch_bounds__(threads) copy_to_host(std::byte* memory, std::uint64_t piece) {
  for (;; ++piece) {
    const auto flag = static_cast<unsigned>(piece);
    std::byte* const slot = memory + piece % ResidentCopy::slots * slot_bytes;
    const ResidentCopy::Order order = wait_for_order(slot, flag);
    if (order.length == 0) return;
    auto* const pairs = reinterpret_cast<Pair*>(slot + 2 * sizeof order);
    for (unsigned at = threadIdx.x * bytes_of_thread; at < order.length; at += round_bytes) {
      const Word data = read_data(order.gpu_address + at, order.length - at);
      store_pair(pairs + at / bytes_of_thread,
                 {static_cast<unsigned>(data), flag, static_cast<unsigned>(data >> 32), flag});
    }
  }
}

__global__ void __launch_bounds__(threads) copy_to_gpu(std::byte* memory, std::uint64_t piece) {
  for (;; ++piece) {
    const std::byte* const slot = memory + piece % ResidentCopy::slots * slot_bytes;
    const ResidentCopy::Order order = wait_for_order(slot, static_cast<unsigned>(piece));
    if (order.length == 0) return;
    for (unsigned at = threadIdx.x * bytes_of_thread; at < order.length; at += round_bytes)
      write_data(order.gpu_address + at, order.length - at,
                 read_data(order.host_address + at, order.length - at));
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence_system();  // the whole block's writes, before the word that they are done
      *reinterpret_cast<volatile Word*>(memory + counter_offset) = piece;
    }
  }
}

}  // namespace

ResidentCopy::ResidentCopy(int gpu, CopyKind kind)
    : gpu_(gpu), kind_(kind), memory_(gpu, counter_offset + sizeof(Word)), stream_(gpu) {
  for (auto* const kernel : {copy_to_host, copy_to_gpu})
    share_multiprocessors(reinterpret_cast<const void*>(kernel));
}

void ResidentCopy::start(std::uint64_t next) {
  use_device(gpu_);
  auto* const kernel = kind_ == CopyKind::gpu_to_host ? copy_to_host : copy_to_gpu;
  std::byte* memory = memory_.address();
  void* arguments[] = {&memory, &next};
  // Not by <<<>>>, after which cudaGetLastError may tell of something else, such as an event that was not
  // ready.
  check_runtime(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(threads), arguments, 0,
                                 static_cast<cudaStream_t>(stream_.get())),
                "starting the resident copy kernel");
}

void ResidentCopy::join() {
  stream_.wait();
}

void ResidentCopy::check() const {
  const cudaError_t code = cudaStreamQuery(static_cast<cudaStream_t>(stream_.get()));
  if (code != cudaSuccess && code != cudaErrorNotReady) check_runtime(code, "the resident copy kernel");
}

std::byte* ResidentCopy::order(std::uint64_t piece) const {
  return memory_.address() + piece % slots * slot_bytes;
}

std::byte* ResidentCopy::data(std::uint64_t piece) const {
  return order(piece) + 2 * sizeof(Order);
}

std::uint64_t ResidentCopy::arrived() const {
  return __atomic_load_n(reinterpret_cast<std::uint64_t*>(memory_.address() + counter_offset),
                         __ATOMIC_ACQUIRE);
}

}  // namespace gdrbench::cuda
