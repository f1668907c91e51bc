#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/system.hpp"

namespace gdrbench::report {

/// A file that appears under its name only when commit() has succeeded; until then it is a temporary file of
/// the same folder, which the destructor removes. What exists and is not a regular file (a pipe, /dev/stdout)
/// is written to directly. All members throw SystemError.
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

}  // namespace gdrbench::report
