#pragma once

#include <infiniband/verbs.h>

#include <atomic>

namespace gdrbench::softverbs {

/// The objects of the application are the library's own classes over the public structs.
class ProtectionDomain : public ibv_pd {
 public:
  explicit ProtectionDomain(ibv_context& of_context) : ibv_pd{&of_context, 0} {}
  static ProtectionDomain& of(ibv_pd* pd) { return *static_cast<ProtectionDomain*>(pd); }

  std::atomic<int> users{
      0};  ///< regions, queue pairs …; while there are any it cannot be deallocated (EBUSY)
};

}  // namespace gdrbench::softverbs
