#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// /sys, /proc and /dev of this machine, or of one that was recorded.
namespace gdrbench::topology {

enum class FileState { present, absent, denied, unreadable };

/// "absent", "permission denied" …
std::string_view to_string(FileState state);

/// What a file holds, without the newline at its end; empty where it is not present.
struct FileText {
  FileState state = FileState::absent;
  std::string text;
  bool present() const { return state == FileState::present; }
};

/// Paths are relative to the root and have no leading slash: "sys/class/infiniband". Nothing here throws,
/// whatever the files are: a recorded tree may hold anything.
class Root {
 public:
  explicit Root(std::filesystem::path folder = "/") : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// Whether answers of the running system belong to it.
  bool is_this_machine() const { return folder_ == "/"; }

  /// The first `most` bytes; a file that is no regular file, or a folder, is unreadable.
  FileText read(const std::string& path, std::size_t most = 64 << 10) const;
  /// A whole number at the start of the file, decimal or after 0x; absent where there is none.
  std::optional<std::int64_t> number(const std::string& path) const;
  FileState state(const std::string& path) const;
  bool exists(const std::string& path) const { return state(path) != FileState::absent; }
  /// Names in a folder, sorted, at most 4096; empty where it cannot be read.
  std::vector<std::string> list(const std::string& path) const;
  /// Last part of what a symbolic link points to, as sysfs names drivers; empty where it is none.
  std::string link_name(const std::string& path) const;
  /// Where a path leads once all links are followed, relative to the root; empty where it leads nowhere or
  /// out of the root.
  std::string resolve(const std::string& path) const;

 private:
  std::filesystem::path folder_;
};

/// The root of a recorded machine. Throws UsageError, which begins with `named` ("--snapshot DIR"), where the
/// folder is none, holds no recording, or holds what none ever has: a device, a pipe or a socket, which would
/// be waited for, or a link that leads out of it, behind which lie files of this machine.
Root open_recording(const std::filesystem::path& folder, const std::string& named);

}  // namespace gdrbench::topology
