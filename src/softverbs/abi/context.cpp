#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "abi/verbs.hpp"
#include "nic/device.hpp"

namespace gdrbench::softverbs {

int errno_of_exception(const char* verb) {
  const auto tell = [verb](const std::exception& error) {
    std::fprintf(stderr, "%s: %s: %s\n", device_name, verb, error.what());
  };
  try {
    throw;
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::system_error& error) {
    tell(error);
    return error.code().value();
  } catch (const std::invalid_argument& error) {
    tell(error);
    return EINVAL;
  } catch (const std::exception& error) {
    tell(error);
    return EIO;
  }
}

namespace {

/// Objects are memory of this process, which no descriptor can hand to another.
template <class Object>
Object* no_import() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

void operations::install(verbs_context& context) {
  ibv_context_ops& ops = context.context.ops;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_srq_recv = post_srq_recv;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  context.query_port = query_port;
  context.query_device_ex = query_device_ex;
  context.create_cq_ex = create_cq_ex;
  context.create_srq_ex = create_srq_ex;
  context.create_qp_ex = create_qp_ex;

  // What is not offered stays null, and the inline verb answers EOPNOTSUPP; these would be called
  // unconditionally.
  ops.bind_mw = [](ibv_qp*, ibv_mw*, ibv_mw_bind*) { return EOPNOTSUPP; };
  ops.dealloc_mw = [](ibv_mw*) { return EOPNOTSUPP; };
  context.close_xrcd = [](ibv_xrcd*) { return EOPNOTSUPP; };
}

GDRBENCH_VERB ibv_context* ibv_import_device(int) {
  return no_import<ibv_context>();
}
GDRBENCH_VERB ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) {
  return no_import<ibv_pd>();
}
GDRBENCH_VERB ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) {
  return no_import<ibv_mr>();
}
GDRBENCH_VERB ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) {
  return no_import<ibv_dm>();
}
GDRBENCH_VERB void ibv_unimport_pd(ibv_pd*) {}
GDRBENCH_VERB void ibv_unimport_mr(ibv_mr*) {}
GDRBENCH_VERB void ibv_unimport_dm(ibv_dm*) {}

}  // namespace gdrbench::softverbs
