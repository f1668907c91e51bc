#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "gdrbench/run_result.hpp"

namespace gdrbench::measure {

/// Reads the CPU time that this process, the calling thread and the whole host spend between start() and
/// stop(). Sources: getrusage(2) with RUSAGE_SELF and RUSAGE_THREAD, the `cpu` line of /proc/stat (proc(5),
/// in ticks of sysconf(_SC_CLK_TCK), usually 10 ms), CLOCK_MONOTONIC_RAW. Both calls must come from the
/// measuring thread. /proc/stat is read outside the interval on both sides, so that its own cost is not part
/// of the result.
class CpuMeter {
 public:
  /// Whose user and system time it tells; of one thread where other threads of the process measure, too.
  enum class Scope { process, thread };
  explicit CpuMeter(Scope scope = Scope::process, const std::filesystem::path& proc = "/proc")
      : scope_(scope), stat_(proc / "stat") {}

  /// Throws SystemError when getrusage fails.
  void start();
  /// The usage since start(). irq_s and softirq_s are 0 where host_times_known() is false.
  CpuUsage stop();
  /// Whether /proc/stat could be read at both ends of the last interval.
  bool host_times_known() const { return host_times_known_; }

 private:
  struct HostTicks {
    std::uint64_t irq = 0;
    std::uint64_t softirq = 0;
  };
  std::optional<HostTicks> read_host_ticks() const;

  Scope scope_;
  std::filesystem::path stat_;
  std::optional<HostTicks> host_;
  rusage process_{};
  rusage thread_{};
  double started_s_ = 0;
  bool host_times_known_ = false;
};

}  // namespace gdrbench::measure
