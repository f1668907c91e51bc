#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "link/handshake.hpp"
#include "nic/send_queue.hpp"

namespace gdrbench::softverbs {

// Times and numbers that queue-pair attributes encode.

/// ibv_qp_attr::rnr_retry: the requester waits for a receive for ever.
constexpr std::uint8_t rnr_without_end = 7;

/// ibv_qp_attr::timeout: 4.096 µs × 2^code; 0 means never, which here is a day (InfiniBand
/// specification 9.7.6.1.3).
constexpr std::chrono::nanoseconds ack_timeout(std::uint8_t code) {
  if (code == 0) return std::chrono::hours(24);
  return std::chrono::nanoseconds(4096) * (std::int64_t{1} << (code & 31));
}

/// ibv_qp_attr::min_rnr_timer (InfiniBand specification, table 45).
constexpr std::chrono::microseconds rnr_delay(std::uint8_t code) {
  constexpr std::array<int, 32> microseconds = {655360, 10,    20,    30,     40,     60,     80,     120,
                                                160,    240,   320,   480,    640,    960,    1280,   1920,
                                                2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                                40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return std::chrono::microseconds(microseconds[code & 31]);
}

class QueuePair;
struct StepResult;

/// The sending half of a connection: turns work requests into frames and answers into completions. On an
/// unreliable one nothing is answered: a request is done when it has left, and lost where nobody takes it.
/// Used under the lock of its queue pair.
class Requester {
 public:
  explicit Requester(QueuePair& of_queue_pair) : qp_(of_queue_pair) {}

  /// Connects to the responder; the queue pair is ready to send.
  void dial();
  void step(StepResult& result);
  /// Only completes what the remote has answered.
  void take_answers(StepResult& result);
  /// Forgets the connection and where the queue stood.
  void reset();
  /// The queue was flushed: the connection ends with the next step.
  void forget_work();
  /// Nothing is under way (send queue drained).
  bool idle() const { return in_flight_ == 0; }
  Link* link() { return link_.get(); }

 private:
  void on_dialed(DialResult result);
  bool loses_everything() const;
  void lose_what_is_under_way();
  bool handle(const FrameHeader& answer, StepResult& result);
  void complete_read(SendWork& work);
  bool handle_read_data(const FrameHeader& answer, SendWork& work);
  bool handle_read_reference(const FrameHeader& answer, SendWork& work, StepResult& result);
  void transmit(StepResult& result);
  bool may_start(const SendWork& work) const;
  bool faulty(SendWork& work, StepResult& result);
  ibv_wc_status check(const SendWork& work) const;
  bool send_frames(SendWork& work);
  FrameHeader header_of(const SendWork& work) const;
  SendWork* outstanding(std::uint32_t message);
  bool finish_until(std::uint32_t message);
  void complete_front();
  void fail_front(ibv_wc_status status, std::uint32_t vendor_error = 0);
  void check_link();

  QueuePair& qp_;
  std::unique_ptr<Link> link_;
  bool dialing_ = false;
  std::uint64_t connection_ = 0;     ///< counts resets, so that a late answer to an earlier dial is dropped
  std::size_t in_flight_ = 0;        ///< work requests from the front whose frames have all been sent
  std::uint32_t front_message_ = 0;  ///< message number of the front of the queue
  std::size_t reads_in_flight_ = 0;  ///< reads and atomics
  std::size_t large_reads_in_flight_ = 0;
  unsigned rnr_retries_ = 0;
  unsigned timeouts_ = 0;           ///< times that a fault has lost the message that is next
  bool fault_chosen_ = false;       ///< the fault for the next message has been chosen
  Clock::time_point dial_until_{};  ///< set while the remote is being called
  Clock::time_point redial_at_{};   ///< set while a busy remote is left alone
  Clock::time_point hold_until_{};  ///< by a fault
  Clock::time_point lost_until_{};  ///< unreliable: after a remote could not be reached, when to try again
  bool warned_ = false;             ///< that the remote cannot be reached
};

}  // namespace gdrbench::softverbs
