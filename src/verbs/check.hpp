#pragma once

#include <cerrno>
#include <string>

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

}  // namespace gdrbench::verbs
