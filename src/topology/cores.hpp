#pragma once

#include <hwloc.h>

#include <memory>
#include <string>

namespace gdrbench::topology {

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using CoreBitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

/// Sets of logical CPUs as lists, "0-15,32-47"; empty text is the empty set, and so is what is no list.
CoreBitmap core_bitmap(const std::string& list);
std::string core_list(hwloc_const_bitmap_t set);

/// The CPUs that are in both.
std::string common_cores(const std::string& one, const std::string& other);
int count_cores(const std::string& list);

/// Next to both devices, else next to the first, else next to the second; empty where nothing is known of
/// either.
std::string cores_next_to_both(const std::string& first, const std::string& second);

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
