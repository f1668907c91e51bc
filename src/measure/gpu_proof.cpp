#include "measure/gpu_proof.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::measure {

void add_gpu_nic(PathProof& proof, const Case& c) {
  if (!proof.verbs || c.memory == MemoryKind::host || is_baseline(c.path)) return;
  proof.gpu = c.gpu;
  if (const std::string nic = topology::rdma_pci_address(proof.verbs->device); !nic.empty())
    proof.gpu_nic_distance = topology::distance_between(gpu_summary(c.gpu).pci_address, nic);
}

GpuWrites::GpuWrites(int gpu) : gpu_(gpu), ordering_(cuda::write_ordering(gpu)) {
  if (!ordering_.host_flush)
    no_times_reason_ =
        "this GPU offers no flush to the host (cudaDevAttrGPUDirectRDMAFlushWritesOptions lacks "
        "cudaFlushGPUDirectRDMAWritesOptionHost)";
}

// A flush that fails is no fault of the run, which was verified without this one.
void GpuWrites::time_flush() {
  if (!ordering_.host_flush) return;
  using Clock = std::chrono::steady_clock;
  std::array<double, 100> times_us{};
  try {
    cuda::use_device(gpu_);
    cuda::force_flush(gpu_);  // what only the first one costs is not that of a flush
    for (double& time_us : times_us) {
      const Clock::time_point before = Clock::now();
      cuda::force_flush(gpu_);
      time_us = std::chrono::duration<double, std::micro>(Clock::now() - before).count();
    }
  } catch (const Error& error) {
    times_.reset();
    no_times_reason_ = error.what();
    return;
  }
  std::sort(times_us.begin(), times_us.end());
  constexpr std::size_t half = times_us.size() / 2;
  times_ = {.median_us = (times_us[half - 1] + times_us[half]) / 2, .max_us = times_us.back()};
}

GpuWritesProof GpuWrites::describe() const {
  GpuWritesProof proof{.writes_ordering = std::string(ordering_.name()),
                       .flush_needed = ordering_.needs_flush(),
                       .flush_us = std::nullopt,
                       .no_flush_reason = std::nullopt};
  if (times_)
    proof.flush_us = {.median = times_->median_us, .max = times_->max_us};
  else
    proof.no_flush_reason = no_times_reason_;
  return proof;
}

}  // namespace gdrbench::measure
