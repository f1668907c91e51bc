#include "measure/cpu_meter.hpp"

#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <string>

#include "gdrbench/error.hpp"

namespace gdrbench::measure {
namespace {

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

rusage usage(int who) {
  rusage result{};
  if (getrusage(who, &result) != 0)
    throw SystemError(errno, who == RUSAGE_SELF ? "getrusage(RUSAGE_SELF)" : "getrusage(RUSAGE_THREAD)");
  return result;
}

double difference_s(const timeval& from, const timeval& to) {
  return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_usec - from.tv_usec) * 1e-6;
}

double ticks_to_s(std::uint64_t from, std::uint64_t to) {
  static const double ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  // The kernel's counters may step back a little when a CPU goes offline.
  return to > from ? static_cast<double>(to - from) / ticks_per_s : 0;
}

}  // namespace

std::optional<CpuMeter::HostTicks> CpuMeter::read_host_ticks() const {
  std::ifstream file(stat_);
  std::string label;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0;
  HostTicks ticks;
  file >> label >> user >> nice >> system >> idle >> iowait >> ticks.irq >> ticks.softirq;
  if (!file || label != "cpu") return std::nullopt;
  return ticks;
}

void CpuMeter::start() {
  host_ = read_host_ticks();
  process_ = usage(RUSAGE_SELF);
  thread_ = usage(RUSAGE_THREAD);
  started_s_ = now_s();
}

CpuUsage CpuMeter::stop() {
  const double stopped_s = now_s();
  const rusage thread = usage(RUSAGE_THREAD);
  const rusage process = usage(RUSAGE_SELF);
  const auto host = read_host_ticks();
  host_times_known_ = host_ && host;

  CpuUsage result;
  result.elapsed_s = stopped_s - started_s_;
  const bool whole = scope_ == Scope::process;
  const rusage& from = whole ? process_ : thread_;
  const rusage& to = whole ? process : thread;
  result.user_s = difference_s(from.ru_utime, to.ru_utime);
  result.system_s = difference_s(from.ru_stime, to.ru_stime);
  result.thread_s =
      difference_s(thread_.ru_utime, thread.ru_utime) + difference_s(thread_.ru_stime, thread.ru_stime);
  if (host_times_known_) {
    result.irq_s = ticks_to_s(host_->irq, host->irq);
    result.softirq_s = ticks_to_s(host_->softirq, host->softirq);
  }
  return result;
}

}  // namespace gdrbench::measure
