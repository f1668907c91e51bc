#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <string>

#include "stress_ring.hpp"
#include "stress_verbs.hpp"

/// One stream of messages, from both its ends. It is the ends' own agreement, in memory that they share
/// beside the device, that keeps either from touching what the device may still read or write.
namespace gdrbench::softverbs {

/// Progress of one stream, in messages.
struct alignas(64) Gate {
  std::atomic<std::uint64_t> prepared{0};   ///< the responder is ready for those before
  std::atomic<std::uint64_t> completed{0};  ///< at the initiator, all before
  std::atomic<std::uint64_t> end{std::numeric_limits<std::uint64_t>::max()};
  std::atomic<std::uint64_t> swapped{0};  ///< what the last cmp_swap leaves behind
};

struct Totals {
  std::array<std::atomic<std::uint64_t>, kind_names.size()> messages{}, bytes{};
  std::array<std::atomic<std::uint64_t>, 2> added{};  ///< by the fetch_add of all streams of a direction
};

inline constexpr std::uint64_t receive_flag = std::uint64_t{1} << 63;  ///< in wr_id

/// "pair 3 right to left, message 17 (write, 513 bytes)"
std::string describe(const Stream& stream, const Message& message);

/// Throws where a byte in or beside the message is wrong.
void check_bytes(const Stream& stream, const Message& message, std::byte* area, const Layout& layout);

struct Local {
  std::byte* ring = nullptr;  ///< ring_bytes
  std::uint32_t lkey = 0;
};

/// The end that posts.
class Initiator {
 public:
  using Clock = std::chrono::steady_clock;

  Initiator(Stream stream, Gate& gate, Totals& totals, ibv_qp* qp, Local local, const Endpoint& remote,
            std::uint32_t pieces, std::uint32_t inline_bytes)
      : stream_(stream),
        gate_(gate),
        totals_(totals),
        qp_(qp),
        local_(local),
        remote_(remote),
        pieces_(pieces),
        inline_bytes_(inline_bytes),
        next_(plan_message(stream, 0)) {}

  /// Posts the next message if it may go. No group begins after the deadline.
  bool post(Clock::time_point deadline);
  /// Takes a successful completion of the send queue.
  void complete(const ibv_wc& completion);
  bool done() const { return ended_ && in_flight_.empty(); }
  std::string progress() const;

 private:
  std::byte* area(const Message& message) const { return local_.ring + message.position % ring_bytes; }
  void send(Message& message);
  void aim(ibv_send_wr& request, Message& message);
  void check(const Message& message);

  Stream stream_;
  Gate& gate_;
  Totals& totals_;
  ibv_qp* qp_;
  Local local_;
  Endpoint remote_;
  std::uint32_t pieces_, inline_bytes_;
  Ring ring_;
  std::deque<Message> in_flight_;
  Message next_, previous_;
  std::uint64_t tail_ = 0;  ///< of the ring: the last message completed, which the next one may forward
  std::uint64_t swap_word_ = 0, last_sum_ = 0;
  bool ended_ = false, added_before_ = false;
};

/// The end that answers.
class Responder {
 public:
  Responder(Stream stream, Gate& gate, ibv_qp* qp, Local local, std::uint32_t pieces)
      : stream_(stream), gate_(gate), qp_(qp), local_(local), pieces_(pieces) {}

  /// Makes ready for the next message if there is room for it.
  bool prepare();
  /// Takes a successful completion of the receive queue.
  void receive(const ibv_wc& completion);
  bool done() const { return verified_ == gate_.end.load(std::memory_order_acquire); }
  std::string progress() const;

 private:
  static constexpr std::uint64_t look_ahead = queue_depth - 2 * group_messages;  ///< messages

  std::byte* area(const Message& message) const { return local_.ring + message.position % ring_bytes; }
  Layout layout(const Message& message) const;
  void post_receive(const Message& message);
  void retire();

  Stream stream_;
  Gate& gate_;
  ibv_qp* qp_;
  Local local_;
  std::uint32_t pieces_;
  Ring ring_;
  std::deque<Message> ready_;  ///< from the oldest whose place may be in use to the newest prepared
  std::uint64_t prepared_ = 0, verified_ = 0;
};

}  // namespace gdrbench::softverbs
