#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error_text.hpp"
#include "base/system.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/report.hpp"

namespace gdrbench::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t buffer_bytes = 1 << 20;

std::string remedy(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return "the file system is full or the quota used up: make room, or name a file elsewhere";
    case EFBIG:
      return "larger than the limit on file sizes: raise it (ulimit -f), or name a file elsewhere";
    case EACCES:
    case EPERM:
      return "no permission: name a file in a folder that you may write to";
    case EROFS:
      return "the file system is read-only: name a file elsewhere";
    case EISDIR:
      return "this is a folder: name a file in it";
    case ENOTDIR:
    case EEXIST:
      return "a part of the path is a file and not a folder: check the path";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "name a file elsewhere";
  }
}

// A symbolic link stays a link: the file that it points to is replaced.
fs::path follow_links(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved;
}

// A file that appears under its name only when commit() has succeeded; until then it is a temporary file of
// the same folder, which the destructor removes. What exists and is not a regular file (a pipe, /dev/stdout)
// is written to directly. All members throw SystemError.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view text);
  void commit();

 private:
  void flush();
  [[noreturn]] void fail(int errno_value, std::string_view step) const;

  std::filesystem::path path_;       // as the user gave it, for the error text
  std::filesystem::path target_;     // with symbolic links followed
  std::filesystem::path temporary_;  // empty: nothing to rename or remove
  FileDescriptor fd_;
  std::string buffer_;
};

}  // namespace

void AtomicFile::fail(int errno_value, std::string_view step) const {
  throw SystemError(errno_value, fmt::format("writing '{}': {}", path_.string(), step), remedy(errno_value));
}

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(follow_links(path)) {
  std::error_code error;
  const fs::file_status existing = fs::status(path, error);
  if (existing.type() == fs::file_type::none) fail(error.value(), "open");
  if (path.filename().empty() || fs::is_directory(existing)) fail(EISDIR, "open");
  if (fs::exists(existing)) {
    // A file that may not be written to is not replaced either, although rename would do it.
    if (access(path.c_str(), W_OK) != 0) fail(errno, "open");
    if (!fs::is_regular_file(existing)) {
      fd_ = FileDescriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!fd_) fail(errno, "open");
      return;
    }
  }

  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  fs::create_directories(folder, error);
  if (error) fail(error.value(), fmt::format("making the folder '{}'", folder.string()));
  // Process ids repeat (1 in every container), so a leftover of a killed process may have the name.
  for (int attempt = 0;; ++attempt) {
    const fs::path candidate = folder / fmt::format(".gdrbench-{}-{}.tmp", getpid(), attempt);
    fd_ = FileDescriptor(open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd_ && errno == EEXIST && attempt < 1'000) continue;
    if (!fd_) fail(errno, fmt::format("making a temporary file in '{}'", folder.string()));
    temporary_ = candidate;
    return;
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty() && unlink(temporary_.c_str()) != 0)
    std::fputs(fmt::format("gdrbench: removing '{}': {}\n", printable(temporary_.native()), errno_name(errno))
                   .c_str(),
               stderr);
}

void AtomicFile::append(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_bytes) flush();
}

void AtomicFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno, "write");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (temporary_.empty()) return;
  // Some file systems report a full disk only here.
  if (fsync(fd_.get()) != 0) fail(errno, "fsync");
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno, "rename");
  temporary_.clear();
}

}  // namespace gdrbench::report

namespace gdrbench {

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  report::AtomicFile file(path);
  file.append(content);
  file.commit();
}

void check_writable(const std::filesystem::path& path) {
  try {
    const report::AtomicFile file(path);
  } catch (const SystemError& error) {
    throw UsageError(error.what());
  }
}

void write_samples(const std::filesystem::path& path, const ResultDocument& document) {
  report::AtomicFile file(path);
  file.append("suite,path,op,memory,completion,size_bytes,repetition,index,latency_ns\n");
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    const std::string prefix =
        fmt::format("{},{},{},{},{},{}", to_string(c.suite), to_string(c.path), to_string(c.op),
                    to_string(c.memory), to_string(c.completion), c.size_bytes);
    for (std::size_t repetition = 0; repetition < result.repetitions.size(); ++repetition) {
      const RunResult& run = result.repetitions[repetition];
      if (run.ranks.empty()) continue;
      const std::vector<std::int64_t>& samples_ns = run.ranks.front().samples_ns;
      for (std::size_t index = 0; index < samples_ns.size(); ++index)
        file.append(fmt::format("{},{},{},{}\n", prefix, repetition, index, samples_ns[index]));
    }
  }
  file.commit();
}

}  // namespace gdrbench
