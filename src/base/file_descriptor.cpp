#include "base/file_descriptor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "gdrbench/error.hpp"

namespace gdrbench {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0 && ::close(fd_) != 0 && errno != EINTR)
    fmt::print(stderr, "gdrbench: closing descriptor {}: {}\n", fd_, errno_name(errno));
}

}  // namespace gdrbench
