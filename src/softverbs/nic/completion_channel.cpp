#include "nic/completion_queue.hpp"

namespace gdrbench::softverbs {

CompletionChannel::CompletionChannel(ibv_context& of_context) : ibv_comp_channel{&of_context, -1, 0} {
  fd = events_.descriptor();
}

}  // namespace gdrbench::softverbs
