// NCCL between GPU 0 and GPU 1 of this machine, one process each, as a peer to hold the tcp path against:
// point to point, so that both move the same bytes. NCCL is loaded at run time; its environment says which
// transport it takes.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

namespace {

struct UniqueId {
  char internal[128];
};
using Comm = void*;
constexpr int nccl_char = 0;

// As in nccl.h of version 2.
struct Nccl {
  int (*get_unique_id)(UniqueId*);
  int (*comm_init_rank)(Comm*, int, UniqueId, int);
  int (*send)(const void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*receive)(void*, std::size_t, int, int, Comm, cudaStream_t);
  const char* (*error_string)(int);
};

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "nccl_speed: {}\n", what);
  std::_Exit(1);
}

Nccl load(void* library) {
  const auto find = [&](const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr) fail(fmt::format("NCCL has no {}", name));
    return found;
  };
  return {reinterpret_cast<decltype(Nccl::get_unique_id)>(find("ncclGetUniqueId")),
          reinterpret_cast<decltype(Nccl::comm_init_rank)>(find("ncclCommInitRank")),
          reinterpret_cast<decltype(Nccl::send)>(find("ncclSend")),
          reinterpret_cast<decltype(Nccl::receive)>(find("ncclRecv")),
          reinterpret_cast<decltype(Nccl::error_string)>(find("ncclGetErrorString"))};
}

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) fail(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

class Rank {
 public:
  Rank(const Nccl& nccl, const UniqueId& id, int rank) : nccl_(nccl), rank_(rank) {
    check(cudaSetDevice(rank), "cudaSetDevice");
    check(cudaMalloc(&memory_, most_bytes), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    ask(nccl.comm_init_rank(&comm_, 2, id, rank), "ncclCommInitRank");
  }

  /// Microseconds of half a round trip; the round trips are enqueued together, so that no launch is waited
  /// for.
  double half_round_trip_us(std::size_t bytes, int trips) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < trips; ++i) {
      one_way(bytes, 0);
      one_way(bytes, 1);
    }
    check(cudaStreamSynchronize(stream_), "waiting for NCCL");
    return seconds_since(start) * 1e6 / trips / 2;
  }

  /// Bytes a second from rank 0 to rank 1.
  double goodput(std::size_t bytes, int messages) {
    one_way(1, 1);  // so that both begin together
    check(cudaStreamSynchronize(stream_), "waiting for NCCL");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < messages; ++i) one_way(bytes, 0);
    one_way(1, 1);
    check(cudaStreamSynchronize(stream_), "waiting for NCCL");
    return static_cast<double>(bytes) * messages / seconds_since(start);
  }

  static constexpr std::size_t most_bytes = 64 << 20;

 private:
  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void ask(int code, const char* what) const {
    if (code != 0) fail(fmt::format("{}: {}", what, nccl_.error_string(code)));
  }
  void one_way(std::size_t bytes, int from) {
    ask(rank_ == from ? nccl_.send(memory_, bytes, nccl_char, 1 - rank_, comm_, stream_)
                      : nccl_.receive(memory_, bytes, nccl_char, 1 - rank_, comm_, stream_),
        "ncclSend, ncclRecv");
  }

  Nccl nccl_;
  int rank_;
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Comm comm_ = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(const Nccl& nccl, const UniqueId& id, int rank) {
  Rank own(nccl, id, rank);
  std::vector<double> times_us, rates;
  for (int repetition = 0; repetition < 6; ++repetition) {
    const double time_us = own.half_round_trip_us(8, 500);
    const double rate = own.goodput(Rank::most_bytes, 12);
    if (repetition == 0) continue;  // warm-up
    times_us.push_back(time_us);
    rates.push_back(rate);
  }
  if (rank == 0)
    fmt::print("NCCL: 8 B half round trip {:.1f} us, 64 MiB {:.2f} GB/s (medians of {})\n", median(times_us),
               median(rates) * 1e-9, rates.size());
  return 0;
}

}  // namespace

int main() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) {
    fmt::print("skipped: {}\n", dlerror());
    return 77;
  }
  const Nccl nccl = load(library);
  int channel[2];
  if (pipe(channel) != 0) fail("pipe");
  // Before any call of CUDA, which a forked process cannot go on with.
  const pid_t child = fork();
  UniqueId id{};
  if (child == 0) {
    close(channel[1]);  // so that it notices when no id will come
    if (read(channel[0], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) std::_Exit(77);
    std::_Exit(run(nccl, id, 1));
  }
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 2) {
    fmt::print("skipped: needs two GPUs\n");
    close(channel[1]);
    waitpid(child, nullptr, 0);
    return 77;
  }
  if (nccl.get_unique_id(&id) != 0) fail("ncclGetUniqueId");
  if (write(channel[1], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) fail("writing the id");
  const int own = run(nccl, id, 0);
  int status = 0;
  waitpid(child, &status, 0);
  return own != 0 || status != 0 ? 1 : 0;
}
