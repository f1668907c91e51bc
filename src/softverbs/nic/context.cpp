#include "nic/context.hpp"

namespace gdrbench::softverbs {

Context::Context(ibv_device& device) : verbs_context{}, nic_(Nic::acquire()) {
  sz = sizeof(verbs_context);
  context.device = &device;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.cmd_fd = -1;  // there is no kernel driver to command
  context.async_fd = events_.descriptor();
  context.num_comp_vectors = 1;
  pthread_mutex_init(&context.mutex, nullptr);
}

Context::~Context() {
  pthread_mutex_destroy(&context.mutex);
}

bool Context::unused() const {
  return domains.unused() && channels.unused() && completion_queues.unused();
}

}  // namespace gdrbench::softverbs
