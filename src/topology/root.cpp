#include "topology/root.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "gdrbench/error.hpp"

namespace gdrbench::topology {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_names = 4096;

FileState state_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      return FileState::absent;
    case EACCES:
    case EPERM:
      return FileState::denied;
    default:
      return FileState::unreadable;
  }
}

// Attributes of sysfs fail at the read, not at the opening: EINVAL of an empty slot, EIO of a sleeping
// device.
FileState read_up_to(int fd, std::size_t most, std::string& text) {
  text.resize(most);
  std::size_t filled = 0;
  while (filled < most) {
    const ssize_t got = ::read(fd, text.data() + filled, most - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      text.clear();
      return state_of(errno);
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  if (text.ends_with('\n')) text.pop_back();
  return FileState::present;
}

}  // namespace

std::string_view to_string(FileState state) {
  switch (state) {
    case FileState::present:
      return "present";
    case FileState::absent:
      return "absent";
    case FileState::denied:
      return "permission denied";
    case FileState::unreadable:
      break;
  }
  return "unreadable";
}

FileText Root::read(const std::string& path, std::size_t most) const {
  // Without O_NONBLOCK, a pipe in a recorded tree would be waited for.
  const int fd = open((folder_ / path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return {state_of(errno), ""};
  FileText file;
  struct stat status {};
  file.state = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? read_up_to(fd, most, file.text)
                                                                  : FileState::unreadable;
  close(fd);
  return file;
}

std::optional<std::int64_t> Root::number(const std::string& path) const {
  const std::string text = read(path, 64).text;
  std::string_view digits = text;
  digits.remove_prefix(std::min(digits.find_first_not_of(" \t"), digits.size()));
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, fault] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (fault != std::errc{}) return std::nullopt;
  return value;
}

FileState Root::state(const std::string& path) const {
  struct stat status {};
  return stat((folder_ / path).c_str(), &status) == 0 ? FileState::present : state_of(errno);
}

std::vector<std::string> Root::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::directory_iterator entry(folder_ / path, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    if (names.size() == max_names) break;
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Root::link_name(const std::string& path) const {
  std::error_code fault;
  const fs::path target = fs::read_symlink(folder_ / path, fault);
  return fault ? "" : target.filename().string();
}

std::string Root::resolve(const std::string& path) const {
  std::error_code fault;
  const fs::path top = fs::canonical(folder_, fault);
  if (fault) return "";
  const fs::path resolved = fs::canonical(folder_ / path, fault);
  if (fault) return "";
  const fs::path inside = resolved.lexically_relative(top);
  return inside.empty() || inside.native().starts_with("..") ? "" : inside.string();
}

namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& top) {
  const fs::path inside = path.lexically_relative(top);
  return !inside.empty() && *inside.begin() != "..";
}

// A link to nothing is judged by its text: what it names may be made later.
bool leads_out(const fs::path& link, const fs::path& top) {
  std::error_code fault;
  if (const fs::path target = fs::canonical(link, fault); !fault) return !is_inside(target, top);
  const fs::path text = fs::read_symlink(link, fault);
  return !is_inside((link.parent_path() / text).lexically_normal(), top);
}

void require_plain(const fs::path& top, const std::string& named) {
  std::error_code fault;
  for (fs::recursive_directory_iterator entry(top, fs::directory_options::skip_permission_denied, fault), end;
       !fault && entry != end; entry.increment(fault)) {
    const fs::file_status status = entry->symlink_status(fault);
    if (fs::is_other(status))
      throw UsageError(fmt::format("{}: {} is a device, a socket or a pipe, and so is no recording", named,
                                   entry->path().native()));
    if (fs::is_symlink(status) && leads_out(entry->path(), top))
      throw UsageError(fmt::format("{}: {} leads out of the folder, which no link of a recording does", named,
                                   entry->path().native()));
  }
}

}  // namespace

Root open_recording(const fs::path& folder, const std::string& named) {
  std::error_code fault;
  if (!fs::is_directory(folder, fault))
    throw UsageError(fmt::format("{}: {}; name a folder that gdrbench doctor --record made", named,
                                 fault ? fault.message() : "is no folder"));
  // As "/" it would be this machine.
  Root root(fs::canonical(folder, fault));
  const bool holds_something =
      root.exists("sys") || root.exists("proc") || root.exists("answers.json") || root.exists("topology.xml");
  if (fault || root.is_this_machine() || !holds_something)
    throw UsageError(
        fmt::format("{}: holds neither sys nor proc nor answers.json nor topology.xml; name a folder that "
                    "gdrbench doctor "
                    "--record made",
                    named));
  require_plain(root.folder(), named);
  return root;
}

}  // namespace gdrbench::topology
