#include "benchmarks/registration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "cuda/device.hpp"
#include "cuda/memory.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/size.hpp"
#include "memory/copier.hpp"
#include "verbs/device.hpp"
#include "verbs/memory_region.hpp"

namespace gdrbench::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t huge_page_bytes = 2 << 20;

/// Who is told of the memory: the RDMA device, in one of its ways, or the GPU.
enum class Way { host, dmabuf, peermem, cuda_pin };

struct Kind {
  const char* memory;
  const char* registration;
  MemoryKind kind;
  Way way;
  bool huge_pages = false;
};
constexpr Kind kinds[] = {
    {"host", "host", MemoryKind::host, Way::host},
    {"host_huge", "host", MemoryKind::host, Way::host, true},
    {"host", "cuda_pin", MemoryKind::host, Way::cuda_pin},
    {"cuda", "dmabuf", MemoryKind::cuda, Way::dmabuf},
    {"cuda", "peermem", MemoryKind::cuda, Way::peermem},
    {"cuda_vmm", "dmabuf", MemoryKind::cuda_vmm, Way::dmabuf},
    {"cuda_vmm", "peermem", MemoryKind::cuda_vmm, Way::peermem},
};

// A buffer would quietly get small pages where there are not enough.
void require_huge_pages(std::uint64_t size) {
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  std::uint64_t free_pages = 0;
  file >> free_pages;
  const std::uint64_t wanted = (size + huge_page_bytes - 1) / huge_page_bytes;
  if (free_pages < wanted)
    throw Unavailable(
        fmt::format("too few free huge pages of 2 MiB (up to {} here); give the kernel some: "
                    "sysctl vm.nr_hugepages=N",
                    format_size(free_pages * huge_page_bytes)));
}

/// The memory of one case, and what it is registered with.
class Subject {
 public:
  Subject(const Kind& kind, const RegistrationOptions& options, std::uint64_t size) : kind_(kind) {
    if (kind.huge_pages) require_huge_pages(size);
    if (kind.way == Way::cuda_pin && !cuda::unavailable_reason().empty())
      throw Unavailable(cuda::unavailable_reason());
    if (kind.way != Way::cuda_pin) {
      if (options.device.empty()) throw Unavailable(options.no_device);
      domain_ = verbs::Device::open(options.device, 1)->allocate_protection_domain();
    }
    gpu_ = options.gpu;
    memory_.emplace(
        BufferOptions{.kind = kind.kind, .length = size, .gpu = options.gpu, .huge_pages = kind.huge_pages});
    if (kind.way == Way::dmabuf && memory_->view().dmabuf_fd < 0)
      throw Unavailable(memory_->no_dmabuf_reason());
    copy_.emplace(BufferOptions{.kind = MemoryKind::host,
                                .length = size,
                                .gpu = options.gpu,
                                .pin_for_gpu = kind.kind != MemoryKind::host});
    copier_ =
        memory::make_copier({.payload = kind.kind, .gpu = options.gpu, .towards = memory::Towards::host});
    register_once();
  }

  LocalRun measure(std::uint64_t iterations) {
    double register_s = 0, deregister_s = 0, copy_s = 0;
    copy();  // warm-up: first touch of the target's pages by this copier
    for (std::uint64_t i = 0; i < iterations; ++i) {
      const auto [first, second] = register_once();
      register_s += first;
      deregister_s += second;
    }
    for (std::uint64_t i = 0; i < iterations; ++i) copy_s += copy();
    return {.elapsed_s = register_s + deregister_s + copy_s,
            .repetitions = {mean(register_s, iterations), mean(deregister_s, iterations),
                            mean(copy_s, iterations)}};
  }

 private:
  static double seconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }
  static LocalRepetition mean(double total_s, std::uint64_t iterations) {
    return {.iterations = iterations,
            .time_us = total_s * 1e6 / static_cast<double>(iterations),
            .device_time_us = std::nullopt};
  }

  // Seconds that registering and deregistering took.
  std::pair<double, double> register_once() const {
    const auto start = Clock::now();
    auto done = start;
    if (kind_.way == Way::cuda_pin) {
      const cuda::HostRegistration pinned(gpu_, memory_->data(), whole_pages());
      done = Clock::now();
    } else {
      const RegisterBy by = kind_.way == Way::peermem  ? RegisterBy::peermem
                            : kind_.way == Way::dmabuf ? RegisterBy::dmabuf
                                                       : RegisterBy::automatic;
      const verbs::MemoryRegion region = domain_->register_memory(memory_->view(), {.registration = by});
      done = Clock::now();
    }
    return {seconds(start, done), seconds(done, Clock::now())};
  }

  // The mapping behind the buffer is of whole pages.
  std::uint64_t whole_pages() const {
    constexpr std::uint64_t page = 4096;
    return (memory_->size() + page - 1) / page * page;
  }

  double copy() {
    const auto start = Clock::now();
    copier_->submit(copy_->data(), memory_->data(), memory_->size());
    while (copier_->finished() < copier_->submitted()) {
    }
    return seconds(start, Clock::now());
  }

  Kind kind_;
  int gpu_ = 0;
  std::optional<Buffer> memory_, copy_;
  std::shared_ptr<const verbs::ProtectionDomain> domain_;
  std::unique_ptr<memory::Copier> copier_;
};

// What is too large for the memory, or for the limit on locked memory, leaves other sizes and kinds possible.
std::shared_ptr<Subject> make_subject(const Kind& kind, const RegistrationOptions& options,
                                      std::uint64_t size) {
  try {
    return std::make_shared<Subject>(kind, options, size);
  } catch (const SystemError& error) {
    throw Unavailable(error.what());
  } catch (const CudaError& error) {
    throw Unavailable(error.what());
  }
}

std::vector<LocalResult> results_of(const Kind& kind, std::uint64_t size) {
  std::vector<LocalResult> results;
  for (const char* what : {"register", "deregister", "copy"}) {
    LocalResult result{.suite = "registration",
                       .what = what,
                       .labels = {},
                       .size_bytes = size,
                       .moves_data = false,
                       .repetitions = {}};
    result.labels = {{"memory", kind.memory}, {"registration", kind.registration}};
    results.push_back(std::move(result));
  }
  return results;
}

double median_us(const LocalResult& result) {
  std::vector<double> times_us;
  for (const LocalRepetition& repetition : result.repetitions) times_us.push_back(repetition.time_us);
  std::sort(times_us.begin(), times_us.end());
  return times_us[times_us.size() / 2];
}

}  // namespace

std::vector<LocalCase> registration_cases(const RegistrationOptions& options) {
  std::vector<std::uint64_t> sizes = options.sizes;
  if (sizes.empty())
    for (std::uint64_t size = 4096; size <= std::uint64_t{1} << 30; size *= 4) sizes.push_back(size);
  std::vector<LocalCase> cases;
  for (const Kind& kind : kinds)
    for (const std::uint64_t size : sizes)
      cases.push_back({.name = fmt::format("registration/{}/{}/{}", kind.memory, kind.registration, size),
                       .skipped_as = fmt::format("{} {}", kind.memory, kind.registration),
                       .results = results_of(kind, size),
                       .prepare = [kind, options, size]() -> LocalMeasure {
                         const auto subject = make_subject(kind, options, size);
                         return [subject](std::uint64_t n) { return subject->measure(n); };
                       }});
  return cases;
}

std::vector<LocalCrossover> registration_crossovers(const std::vector<LocalResult>& results) {
  using Labels = std::vector<std::pair<std::string, std::string>>;
  struct Times {
    double use_us = 0, copy_us = 0;
  };
  std::vector<std::pair<Labels, std::map<std::uint64_t, Times>>> kinds_seen;
  for (const LocalResult& result : results) {
    if (result.suite != "registration" || result.repetitions.empty()) continue;
    auto found = std::find_if(kinds_seen.begin(), kinds_seen.end(),
                              [&](const auto& known) { return known.first == result.labels; });
    if (found == kinds_seen.end()) found = kinds_seen.insert(kinds_seen.end(), {result.labels, {}});
    Times& times = found->second[result.size_bytes];
    (result.what == "copy" ? times.copy_us : times.use_us) += median_us(result);
  }
  std::vector<LocalCrossover> crossovers;
  for (const auto& [labels, by_size] : kinds_seen) {
    LocalCrossover one{.suite = "registration",
                       .what = "register and deregister take less than the copy",
                       .labels = labels,
                       .from_bytes = std::nullopt};
    for (const auto& [size, times] : by_size) {
      if (times.use_us >= times.copy_us)
        one.from_bytes.reset();
      else if (!one.from_bytes)
        one.from_bytes = size;
    }
    crossovers.push_back(std::move(one));
  }
  return crossovers;
}

}  // namespace gdrbench::benchmarks
