#pragma once

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "gdrbench/case.hpp"

/// The verbs and rdma_cm calls report failure in three ways; one checker each. All throw SystemError with
/// `tried`
/// ("create queue pair on mlx5_0"), the errno's name and what usually causes it in that step.
namespace gdrbench::verbs {

enum class Step {
  open,
  create,
  register_host_memory,
  register_gpu_memory,
  modify_queue_pair,
  connect,  ///< by rdma_cm
  use       ///< of what was made
};

/// What usually causes the errno value in this step, what to try, and the check of the doctor that would see
/// it; "" where nothing is known.
std::string hint(Step step, int errno_value, FabricKind fabric = FabricKind::hardware);

/// "EFAULT (Bad address); <hint>", for texts that are not thrown here.
std::string explain(Step step, int errno_value);
/// The same without the doctor's check, for texts that join several failures.
std::string explain_in_part(Step step, int errno_value, FabricKind fabric = FabricKind::hardware);

[[noreturn]] void throw_system_error(Step step, int errno_value, const std::string& tried);

/// Null, and the reason in errno: ibv_open_device, ibv_create_*, ibv_reg_mr …
template <class T>
T* check_pointer(T* object, Step step, const std::string& tried) {
  if (object == nullptr) throw_system_error(step, errno, tried);
  return object;
}

/// The errno value itself: ibv_query_*, ibv_modify_qp, ibv_req_notify_cq. Some providers return it negated.
inline void check_returned(int returned, Step step, const std::string& tried) {
  if (returned != 0) throw_system_error(step, returned > 0 ? returned : -returned, tried);
}

/// Negative, and the reason in errno: rdma_* and ibv_get_cq_event.
inline void check_negative(int returned, Step step, const std::string& tried) {
  if (returned < 0) throw_system_error(step, errno, tried);
}

/// Whatever an object must not outlive.
using Parent = std::shared_ptr<const void>;

/// Deleter of a verbs object. `Call` names and makes the destroying call, which returns 0 on success.
///
/// The parents live in the deleter because unique_ptr's move-assignment destroys the old object before it
/// replaces the old deleter: a child goes before its parents on every way out.
template <class Call>
struct Destroy {
  std::array<Parent, 2> parents;

  template <class T>
  void operator()(T* object) const noexcept {
    const int returned = Call::destroy(object);
    if (returned == 0) return;
    const int code = returned > 0 ? returned : errno;
    const char* const code_name = strerrorname_np(code);
    std::fprintf(stderr, "gdrbench: %s: %s (%d)\n", Call::name, code_name != nullptr ? code_name : "?", code);
  }
};

/// Sole owner of a verbs object; shares its parents.
template <class T, class Call>
using Handle = std::unique_ptr<T, Destroy<Call>>;

template <class Call, class T>
Handle<T, Call> own(T* object, Parent parent = nullptr, Parent other = nullptr) {
  return Handle<T, Call>(object, Destroy<Call>{{std::move(parent), std::move(other)}});
}

}  // namespace gdrbench::verbs
