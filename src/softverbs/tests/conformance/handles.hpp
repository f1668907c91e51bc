#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <system_error>

/// Owners of verbs objects. One that cannot be destroyed fails the test in which it is.
namespace gdrbench::conformance {

template <auto Destroy>
struct Destroyer {
  template <class Object>
  void operator()(Object* object) const noexcept {
    EXPECT_EQ(Destroy(object), 0) << "destroying " << testing::PrintToString(object);
  }
};

using Context = std::unique_ptr<ibv_context, Destroyer<&ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroyer<&ibv_dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroyer<&ibv_dereg_mr>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroyer<&ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroyer<&ibv_destroy_cq>>;
using SharedReceives = std::unique_ptr<ibv_srq, Destroyer<&ibv_destroy_srq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroyer<&ibv_destroy_qp>>;
using AddressHandle = std::unique_ptr<ibv_ah, Destroyer<&ibv_destroy_ah>>;

/// The object that a verb made. Throws std::system_error, with errno and `call`, where it made none.
template <class Object>
Object* made(Object* object, const char* call) {
  if (object == nullptr) throw std::system_error(errno, std::generic_category(), call);
  return object;
}

/// For verbs that return an errno value: throws std::system_error, with `call`, where that is not 0.
inline void succeed(int error, const char* call) {
  if (error != 0) throw std::system_error(error, std::generic_category(), call);
}

}  // namespace gdrbench::conformance
