#include "doctor/kernel_log.hpp"

#include <fcntl.h>
#include <sys/klog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>

namespace gdrbench::doctor {
namespace {

constexpr std::size_t most_lines = 400;
constexpr std::size_t longest_line = 500;
constexpr std::size_t most_log_bytes = 16 << 20;

// Lower case; each begins a word.
constexpr std::string_view subjects[] = {"nvrm",
                                         "nvidia",
                                         "xid",
                                         "mlx4",
                                         "mlx5",
                                         "ib_",
                                         "rdma",
                                         "rxe",
                                         "siw",
                                         "bnxt_re",
                                         "irdma",
                                         "dmar",
                                         "aer",
                                         "iommu",
                                         "amd-vi",
                                         "arm-smmu",
                                         "infiniband",
                                         "nv_peer_mem",
                                         "disagrees about version",
                                         "unknown symbol",
                                         "gdrdrv"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool concerns_us(std::string_view line) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(std::begin(subjects), std::end(subjects), [&](std::string_view subject) {
    for (std::size_t at = 0; (at = lower.find(subject, at)) != std::string::npos; ++at)
      if (at == 0 || !is_word(lower[at - 1])) return true;
    return false;
  });
}

std::string as_ascii(std::string_view line) {
  std::string text(line.substr(0, longest_line));
  for (char& c : text)
    if (c < ' ' || c > '~') c = c == '\t' ? ' ' : '?';
  return text;
}

std::optional<std::string> read_by_klogctl() {
  constexpr int read_all = 3, buffer_size = 10;  // of syslog(2)
  const int size = klogctl(buffer_size, nullptr, 0);
  if (size <= 0) return std::nullopt;
  std::string log(std::min(static_cast<std::size_t>(size), most_log_bytes), '\0');
  const int got = klogctl(read_all, log.data(), static_cast<int>(log.size()));
  if (got < 0) return std::nullopt;
  log.resize(static_cast<std::size_t>(got));
  return log;
}

// Records "priority,sequence,time,flags;text", one a read, that an overrun makes fail with EPIPE.
std::optional<std::string> read_by_device() {
  const int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string log;
  std::array<char, 8192> record{};
  bool read_any = false;
  while (log.size() < most_log_bytes) {
    const ssize_t got = read(fd, record.data(), record.size());
    if (got < 0 && errno == EPIPE) continue;
    if (got <= 0) {
      read_any = read_any || (got < 0 && errno == EAGAIN);
      break;
    }
    read_any = true;
    std::string_view text(record.data(), static_cast<std::size_t>(got));
    if (const auto head = text.find(';'); head != std::string_view::npos) text.remove_prefix(head + 1);
    log += text.substr(0, text.find('\n'));
    log += '\n';
  }
  close(fd);
  if (!read_any) return std::nullopt;
  return log;
}

}  // namespace

std::string lines_that_concern(std::string_view log) {
  std::deque<std::string> kept;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (!concerns_us(line.substr(0, longest_line))) continue;
    kept.push_back(as_ascii(line));
    if (kept.size() > most_lines) kept.pop_front();
  }
  std::string text;
  for (const std::string& line : kept) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::optional<std::string> read_kernel_log() {
  std::optional<std::string> log = read_by_klogctl();
  if (!log) log = read_by_device();
  if (!log) return std::nullopt;
  return lines_that_concern(*log);
}

}  // namespace gdrbench::doctor
