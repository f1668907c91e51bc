#include "doctor/facts/kernel.hpp"

#include <fcntl.h>
#include <sys/klog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>

#include "doctor/facts/host.hpp"

namespace gdrbench::doctor {
namespace {

constexpr std::size_t max_lines = 400;
constexpr std::size_t max_line_bytes = 500;
constexpr std::size_t max_log_bytes = 16 << 20;

// Lower case; each begins a word.
constexpr std::string_view log_subjects[] = {
    "nvrm",
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
    "gdrdrv",
};

bool is_relevant(std::string_view line) {
  const std::string lower = lower_case(line);
  return std::any_of(std::begin(log_subjects), std::end(log_subjects), [&](std::string_view subject) {
    for (std::size_t at = 0; (at = lower.find(subject, at)) != std::string::npos; ++at)
      if (at == 0 || !is_word_character(lower[at - 1])) return true;
    return false;
  });
}

std::string to_ascii(std::string_view line) {
  std::string text(line.substr(0, max_line_bytes));
  for (char& c : text)
    if (c < ' ' || c > '~') c = c == '\t' ? ' ' : '?';
  return text;
}

std::optional<std::string> read_by_klogctl() {
  constexpr int read_all = 3, buffer_size = 10;  // of syslog(2)
  const int size = klogctl(buffer_size, nullptr, 0);
  if (size <= 0) return std::nullopt;
  std::string log(std::min(static_cast<std::size_t>(size), max_log_bytes), '\0');
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
  while (log.size() < max_log_bytes) {
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

constexpr std::size_t max_module_list_bytes = 4 << 20;  // modules.dep of a distribution has about 1 MiB

// A line of /proc/modules begins with the name.
bool lists_loaded(std::string_view modules, std::string_view name) {
  for (std::size_t at = modules.find(name); at != std::string_view::npos; at = modules.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || modules[at - 1] == '\n') && end < modules.size() && modules[end] == ' ') return true;
  }
  return false;
}

// modules.dep and modules.builtin name files, "kernel/…/rdma_rxe.ko.xz: …". In file names '-' stands for
// '_' at times.
bool lists_file(std::string list, std::string_view name) {
  std::replace(list.begin(), list.end(), '-', '_');
  const std::string file = "/" + std::string(name) + ".ko";
  for (std::size_t at = list.find(file); at != std::string::npos; at = list.find(file, at + 1)) {
    // Before a colon: the file itself, not what another one depends on.
    const std::size_t line = list.rfind('\n', at) + 1;
    if (list.find_first_of(": ", line) > at) return true;
  }
  return false;
}

}  // namespace

std::string relevant_log_lines(std::string_view log) {
  std::deque<std::string> kept;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (!is_relevant(line.substr(0, max_line_bytes))) continue;
    kept.push_back(to_ascii(line));
    if (kept.size() > max_lines) kept.pop_front();
  }
  std::string text;
  for (const std::string& line : kept) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::optional<std::string> read_kernel_log() {
  std::optional<std::string> log = read_by_klogctl();
  if (!log) log = read_by_device();
  if (!log) return std::nullopt;
  return relevant_log_lines(*log);
}

std::string_view to_string(ModuleState state) {
  switch (state) {
    case ModuleState::loaded:
      return "loaded";
    case ModuleState::builtin:
      return "built in";
    case ModuleState::available:
      return "not loaded";
    case ModuleState::absent:
      return "not there";
    case ModuleState::unknown:
      break;
  }
  return "cannot be seen";
}

ModuleState module_state(const topology::Root& root, std::string_view name) {
  const std::string folder = "lib/modules/" + kernel_release(root);
  const topology::FileText builtin = root.read(folder + "/modules.builtin", max_module_list_bytes);
  if (builtin.present() && lists_file(builtin.text, name)) return ModuleState::builtin;
  if (root.exists("sys/module/" + std::string(name)) ||
      lists_loaded(root.read("proc/modules", max_module_list_bytes).text, name))
    return ModuleState::loaded;
  const topology::FileText files = root.read(folder + "/modules.dep", max_module_list_bytes);
  if (!files.present()) return ModuleState::unknown;
  return lists_file(files.text, name) ? ModuleState::available : ModuleState::absent;
}

std::string kernel_release(const topology::Root& root) {
  return root.read("proc/sys/kernel/osrelease", 256).text;
}

}  // namespace gdrbench::doctor
