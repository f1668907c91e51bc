#pragma once

#include "link/frame.hpp"
#include "link/ring.hpp"

union ibv_gid;

namespace gdrbench::softverbs {

class QueuePair;
struct StepResult;

/// Sends what a UD queue pair has to send. Under its lock.
void send_datagrams(QueuePair& queue_pair, StepResult& result);

/// Puts a datagram, behind its 40-byte GRH, into the next receive; dropped where there is none, or the Q_Key
/// is another. Under the lock.
void receive_datagram(QueuePair& queue_pair, const FrameHeader& header, const RingSpans& payload,
                      const ibv_gid& source, const ibv_gid& destination);

}  // namespace gdrbench::softverbs
