#pragma once

#include <string>

namespace gdrbench::topology {

/// The logical CPUs that this process was allowed before any ThreadBinding, "0-15"; empty where the kernel
/// does not tell.
std::string allowed_cores();

/// While it lives, the threads of this process run on some cores only: those that ran where the calling
/// thread does, and those started from them since; a thread that was bound to other cores keeps them. Of
/// several that live, the one made or renewed last counts; when the last is gone, all run where they did
/// before.
class ThreadBinding {
 public:
  /// Throws SystemError where the kernel refuses.
  explicit ThreadBinding(std::string cores);
  ~ThreadBinding();
  ThreadBinding(const ThreadBinding&) = delete;
  ThreadBinding& operator=(const ThreadBinding&) = delete;

  /// Makes this one count again, where another was made since.
  void renew();

 private:
  const std::string cores_;
};

}  // namespace gdrbench::topology
