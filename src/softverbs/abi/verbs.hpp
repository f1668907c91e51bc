#pragma once

#include <cxxabi.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "nic/context.hpp"
#include "nic/faults.hpp"

/// A function of libibverbs that programs are to find here first: the library is compiled with hidden
/// visibility.
#define GDRBENCH_VERB extern "C" __attribute__((visibility("default")))

/// No exception crosses the ABI: a verb's body runs in the wrapper of its error convention, which first asks
/// whether this call is to fail. Variants of a verb (ibv_reg_mr_iova2, which the header's macro may call for
/// ibv_reg_mr, the extended ones …) count as that verb.
namespace gdrbench::softverbs {

/// What a body throws to fail with an errno value and without a word, as a driver does.
struct Refused {
  int error;
};

[[noreturn]] inline void refuse(int error) {
  throw Refused{error};
}
inline void refuse_if(bool invalid, int error = EINVAL) {
  if (invalid) refuse(error);
}

/// Within a catch block: the errno value that says the same as the exception. The text of one that has words
/// for the user goes to stderr.
int errno_of_exception(const char* verb);

/// The errno value that is injected into this call of the verb; 0: none.
inline int injected(const char* verb) {
  Faults& faults = Faults::instance();
  return faults.any() ? faults.on_call(verb) : 0;
}

/// For verbs that return an errno value, as `body` does.
template <class Body>
int returns_errno(const char* verb, Body&& body) {
  try {
    if (const int error = injected(verb)) return error;
    return body();
  } catch (abi::__forced_unwind&) {
    throw;  // the program cancels the thread
  } catch (...) {
    return errno_of_exception(verb);
  }
}

/// For verbs that return −1 and set errno; `body` returns an errno value.
template <class Body>
int returns_minus_one(const char* verb, Body&& body) {
  const int error = returns_errno(verb, std::forward<Body>(body));
  if (error == 0) return 0;
  errno = error;
  return -1;
}

/// For verbs that return null and set errno; `body` returns a pointer, or throws.
template <class Body>
auto returns_null(const char* verb, Body&& body) -> decltype(body()) {
  decltype(body()) object = nullptr;
  const int error = returns_errno(verb, [&] {
    object = body();
    return 0;
  });
  if (error != 0) errno = error;
  return object;
}

/// A new object that counts in a quota; ENOMEM when there are too many.
template <class Object, class... Arguments>
Object* create(Quota& quota, Arguments&&... arguments) {
  refuse_if(!quota.take(), ENOMEM);
  try {
    return new Object(std::forward<Arguments>(arguments)...);
  } catch (...) {
    quota.give();
    throw;
  }
}

template <class Object>
void destroy(Quota& quota, Object* object) {
  delete object;
  quota.give();
}

class QueuePair;

/// Gives a queue pair the functions that ibv_wr_start … ibv_wr_complete call.
void install_send_operations(QueuePair& queue_pair);

/// Functions that inline verbs find in the context.
namespace operations {

int post_send(ibv_qp* queue_pair, ibv_send_wr* list, ibv_send_wr** bad);
int post_recv(ibv_qp* queue_pair, ibv_recv_wr* list, ibv_recv_wr** bad);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);

int poll_cq(ibv_cq* queue, int count, ibv_wc* entries);
int req_notify_cq(ibv_cq* queue, int solicited_only);
int post_srq_recv(ibv_srq* queue, ibv_recv_wr* list, ibv_recv_wr** bad);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t bytes);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t bytes);

/// Puts all of them into a context.
void install(verbs_context& context);

}  // namespace operations
}  // namespace gdrbench::softverbs
