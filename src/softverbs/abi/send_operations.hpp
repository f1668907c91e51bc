#pragma once

namespace gdrbench::softverbs {

class QueuePair;

/// Gives a queue pair the functions that ibv_wr_start … ibv_wr_complete call.
void install_send_operations(QueuePair& queue_pair);

}  // namespace gdrbench::softverbs
