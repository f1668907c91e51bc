#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "link/link.hpp"
#include "nic/receive_queue.hpp"

namespace gdrbench::softverbs {

class QueuePair;
struct Source;
struct StepResult;

/// The receiving half of a connection: executes the remote's requests in order. On an unreliable one it
/// answers nothing: a message that cannot be executed is dropped whole, and the next one may arrive. Used
/// under the lock of its queue pair.
class Responder {
 public:
  explicit Responder(QueuePair& of_queue_pair) : qp_(of_queue_pair) {}

  void connect(std::unique_ptr<Link> link);
  void step(StepResult& result);
  void reset();
  /// The next message waits, for a receive or for room to answer.
  bool stalled() const { return stalled_; }
  Link* link() { return link_.get(); }
  /// A receive was taken by a message that is not complete; flushed with the others.
  bool take_unfinished(ReceiveWork& work);

 private:
  enum class Outcome {
    done,
    dropped,  ///< unreliable: the message is ignored from here on
    again,    ///< the frame stays, for lack of room or for fairness
    failed
  };
  Outcome handle(const FrameHeader& request, StepResult& result);
  Outcome handle_send(const FrameHeader& request, StepResult& result);
  Outcome handle_write(const FrameHeader& request, StepResult& result);
  Outcome handle_read(const FrameHeader& request);
  Outcome handle_atomic(const FrameHeader& request);
  Outcome need_receive(const FrameHeader& request, StepResult& result);
  Outcome finish(const FrameHeader& request);
  /// Copies what the frame brings, in steps. `place(source, bytes)` puts bytes at the message's offset
  /// `moved_`.
  template <class Place>
  Outcome move(const FrameHeader& request, StepResult& result, Place place);
  Source source_of(const FrameHeader& request);
  Outcome refuse(const FrameHeader& request, ibv_wc_status for_remote, std::optional<ibv_event_type> event);
  Outcome refuse_receive(const FrameHeader& request, ibv_wc_status here, ibv_wc_status for_remote);
  Outcome malformed(const char* why);
  bool begin_unreliable(const FrameHeader& request);
  Outcome drop();
  void answer(FrameType type, const FrameHeader& request, std::uint16_t code = 0, std::uint64_t operand = 0);
  RingSpans add_answer(const FrameHeader& header);

  QueuePair& qp_;
  std::unique_ptr<Link> link_;
  std::uint32_t expected_ = 0;  ///< number of the message that is being executed
  bool begun_ = false;          ///< its first frame has been seen
  bool ack_due_ = false;
  bool waiting_ = false;  ///< for a receive
  bool stalled_ = false;
  bool dropping_ = false;          ///< unreliable: the rest of the message is ignored
  bool stopped_ = false;           ///< after an error nothing is executed
  Clock::time_point rnr_at_{};     ///< when the remote is told again that no receive is there
  std::uint64_t moved_ = 0;        ///< bytes of the message that are copied
  std::uint64_t frame_moved_ = 0;  ///< of these from the frame at hand
  bool has_receive_ = false;
  ReceiveWork receive_;
  std::array<Segment, max_segments> segments_{};  ///< a copy: the remote can change the ring
};

}  // namespace gdrbench::softverbs
