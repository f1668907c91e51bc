#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"
#include "path/layout.hpp"
#include "path/policy.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::path {

/// The wire works on the payload where it lies: gdr, tcp_wire and rdma_wire. Messages longer than the wire's
/// largest are split into segments.
template <wire::Wire W>
class Direct {
 public:
  static wire::WireLimits wire_limits(const Case& c) {
    // 8 MiB is the smallest largest-message of the fabrics seen (rxe).
    const std::uint64_t segments = std::min<std::uint64_t>((c.size_bytes + (8 << 20) - 1) >> 23, 16);
    const auto depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(queue_depth(c) * segments, 4096));
    return {.queue_pairs = c.queue_pairs,
            .send_depth = depth + 4,  // room for the tokens
            .receive_depth = 2 * depth + 4,
            .inline_bytes = c.memory == MemoryKind::host || is_baseline(c.path) ? c.verbs.inline_bytes : 0,
            .completion = c.completion,
            .threads = wire_threads(c)};
  }

  /// The payload buffers; null where this end has no such side.
  Direct(W& wire, const Case& c, const Buffer* outgoing, const Buffer* incoming)
      : wire_(&wire), op_(c.op), layout_(layout_of(c)), limits_(wire_limits(c)) {
    outgoing_ = register_payload(outgoing);
    incoming_ = register_payload(incoming);
    segment_bytes_ = std::min<std::uint64_t>(wire.max_message(), layout_.size);
    segments_ = (layout_.size + segment_bytes_ - 1) / segment_bytes_;
    depth_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(limits_.send_depth - 4, queue_depth(c) * segments_));
    may_lose_ = may_lose_messages(c);
    // Every completion costs the NIC and the CPU something; a read's is what a ping-pong's arrival is.
    signal_every_ =
        segments_ > 1 || op_ == Op::read || may_lose_ ? 1 : std::max<std::uint32_t>(1, depth_ / 4);
    on_gpu_ =
        (outgoing != nullptr && outgoing->view().on_gpu) || (incoming != nullptr && incoming->view().on_gpu);
    inline_ = !on_gpu_ && op_ != Op::read && layout_.size <= wire.inline_bytes();
    polls_memory_ = polls_for_writes(c) && op_ == Op::write;
    own_bytes_ = polls_memory_ ? 1 : turned_bytes(c);
    if (may_lose_ && segments_ > 1)
      throw Unavailable(
          "a message longer than a request is several of them, which an unreliable connection may lose "
          "apart; use smaller --sizes");
    queue_pairs_.resize(layout_.queue_pairs);
  }

  /// An unreliable connection may lose messages.
  static constexpr bool tolerates_loss = true;

  /// Sockets know when the target has taken a write only by a token that follows it.
  bool target_must_answer() const {
    return !may_lose_ && (two_sided() || (op_ == Op::write && W::one_sided_needs_target_cpu));
  }
  /// The end that accepts has nothing to do while messages move.
  bool accepts_passively() const { return !two_sided() && !polls_memory_ && !W::one_sided_needs_target_cpu; }
  /// Whether accepted() counts arrivals.
  bool counts_arrivals() const { return !may_lose_ && (two_sided() || polls_memory_); }

  nlohmann::json offer() const {
    nlohmann::json j = nlohmann::json::object();
    if (outgoing_.length > 0) j["outgoing"] = to_json(outgoing_);
    if (incoming_.length > 0) j["incoming"] = to_json(incoming_);
    return j;
  }
  void connect(const nlohmann::json& remote_offer) {
    // Named by this end in its requests: where a read comes from, or a write goes to.
    const bool reads = op_ == Op::read && incoming_.length > 0;
    const bool writes = (op_ == Op::write || op_ == Op::write_imm) && outgoing_.length > 0;
    const Fields offer(remote_offer, "offer.path");
    if (reads || writes) remote_ = offered_region(offer, reads ? "outgoing" : "incoming", layout_.bytes());
  }

  /// Begins a round and posts its first receives. The previous round is over.
  void start(const Round& round) {
    round_ = round;
    posted_ = done_ = accepted_ = tokens_before_ = tokens_after_ = posted_again_ = 0;
    next_queue_pair_ = 0;
    for (std::uint32_t q = 0; q < layout_.queue_pairs; ++q) {
      QueuePair& pair = queue_pairs_[q];
      // Receives that lost messages have left over are the first to be used by this round.
      const QueuePair before = std::exchange(pair, {});
      pair.quota = share_of(round.posts, q, layout_.queue_pairs);
      if (may_lose_ && op_ == Op::send && round.accepts > 0) {
        pair.arrived = before.arrived;
        pair.receives_posted = before.receives_posted;
        pair.receives = pair.end_data = std::numeric_limits<std::uint64_t>::max();
        while (pair.receives_posted - pair.arrived < limits_.receive_depth) post_receive(q);
        continue;
      }
      const std::uint64_t arrivals = two_sided() ? share_of(round.accepts, q, layout_.queue_pairs) : 0;
      pair.first_data = round.token_before ? 1 : 0;
      pair.end_data = pair.first_data + arrivals * receives_per_message();
      pair.receives = pair.end_data + (round.token_after ? 1 : 0);
      for (std::uint32_t i = 0; i < limits_.receive_depth && pair.receives_posted < pair.receives; ++i)
        post_receive(q);
    }
    if (polls_memory_ && incoming_.length > 0) tail(incoming_) = std::byte{0};
  }

  /// Nothing of a direct path waits for the host between rounds.
  void rest() {}
  /// Nothing is staged.
  std::optional<StageTimes> stages() const { return std::nullopt; }

  /// Posts the next segment if the window of its queue pair has room.
  bool try_post() {
    for (std::uint32_t tried = 0; tried < layout_.queue_pairs; ++tried) {
      const std::uint32_t q = next_queue_pair_;
      QueuePair& pair = queue_pairs_[q];
      const bool whole = pair.segment == 0;
      const bool room = pair.posted - pair.completed < depth_ && pair.message < pair.quota;
      if (room && post_segment(q)) {
        if (pair.segment == 0) next_queue_pair_ = q + 1 == layout_.queue_pairs ? 0 : q + 1;
        return true;
      }
      if (!whole) return false;  // finish a message before another queue pair's turn
      next_queue_pair_ = q + 1 == layout_.queue_pairs ? 0 : q + 1;
    }
    return false;
  }

  /// Posts the last message of a ping-pong once more: it, or the answer to it, was lost.
  void post_again() {
    --queue_pairs_.front().message;
    --posted_;
    ++posted_again_;
    post_segment(0);
  }
  /// Messages of this round that were lost, as far as this end can tell without looking at the payload.
  std::uint64_t lost() const {
    if (posted_again_ > 0 || !may_lose_ || !two_sided() || round_.posts > 0) return posted_again_;
    return round_.accepts - std::min(accepted_, round_.accepts);
  }

  /// Takes completions; false when nothing had happened.
  bool progress() {
    std::array<wire::Completion, 16> batch;
    const std::size_t count = wire_->poll(batch);
    for (std::size_t i = 0; i < count; ++i) take(batch[i]);
    bool moved = count > 0 || progress_detector_.moved(*wire_);
    if (polls_memory_ && accepted_ < round_.accepts && tail_arrived()) {
      ++accepted_;
      moved = true;
    }
    return moved;
  }

  void wait(int extra_fd, int timeout_ms) { wire_->wait(extra_fd, timeout_ms); }
  std::uint64_t posted() const { return posted_; }      ///< messages posted whole
  std::uint64_t done() const { return done_; }          ///< posted messages that completed
  std::uint64_t accepted() const { return accepted_; }  ///< messages that arrived here
  bool token_before_arrived() const { return tokens_before_ == layout_.queue_pairs; }
  bool token_after_arrived() const { return tokens_after_ == layout_.queue_pairs; }
  void post_tokens() {
    for (std::uint32_t q = 0; q < layout_.queue_pairs; ++q)
      if (const int error = wire_->post_send({.id = token_id, .queue_pair = q}); error != 0)
        refuse("token", error);
  }
  const std::string& failure() const { return failure_; }

  /// The last byte of a message is no pattern where its arrival is found by polling memory.
  std::uint64_t pattern_bytes() const { return layout_.size - own_bytes_; }
  const Layout& layout() const { return layout_; }
  PolicyProof describe() const {
    const wire::Region& region = outgoing_.length > 0 ? outgoing_ : incoming_;
    return {.policy = Policy::direct,
            .registration = region.registration,
            .segments_per_message = segments_,
            .inline_data = inline_};
  }

 private:
  static constexpr std::uint64_t token_id = std::uint64_t{1} << 47;
  struct QueuePair {
    std::uint64_t quota = 0;                          ///< messages to post in this round
    std::uint64_t message = 0, segment = 0;           ///< next to post
    std::uint64_t posted = 0, completed = 0;          ///< segments
    std::uint64_t first_data = 0, end_data = 0;       ///< receives that are no tokens: [first_data, end_data)
    std::uint64_t receives = 0, receives_posted = 0;  ///< of this round
    std::uint64_t arrived = 0;                        ///< data receives completed
  };

  wire::Region register_payload(const Buffer* payload) {
    if (payload == nullptr) return {};
    MemoryView view = payload->view();
    view.length = layout_.bytes();  // the buffer may be larger, for another case
    return wire_->register_memory(view);
  }
  bool two_sided() const { return op_ == Op::send || op_ == Op::write_imm; }
  std::uint64_t receives_per_message() const { return op_ == Op::send ? segments_ : 1; }
  std::uint64_t segment_length(std::uint64_t segment) const {
    return std::min(segment_bytes_, layout_.size - segment * segment_bytes_);
  }

  bool post_segment(std::uint32_t q) {
    QueuePair& pair = queue_pairs_[q];
    const std::uint64_t offset = layout_.offset(q, pair.message) + pair.segment * segment_bytes_;
    const bool last = pair.segment + 1 == segments_;
    const wire::Region& local = op_ == Op::read ? incoming_ : outgoing_;
    if (polls_memory_ && last) tail(outgoing_) = tail_value(pair.message);
    wire::SendRequest request{.id = pair.posted + 1,
                              .queue_pair = q,
                              .op = op_ == Op::write_imm && !last ? Op::write : op_,
                              .address = local.address + offset,
                              .length = static_cast<std::uint32_t>(segment_length(pair.segment)),
                              .lkey = local.lkey,
                              .remote_address = remote_.address + offset,
                              .rkey = remote_.rkey,
                              .inline_data = inline_};
    request.signaled = (pair.posted + 1) % signal_every_ == 0 || (last && pair.message + 1 == pair.quota);
    if (const int error = wire_->post_send(request); error != 0) {
      refuse("send request", error);
      return false;
    }
    ++pair.posted;
    if (last) {
      ++pair.message;
      ++posted_;
      pair.segment = 0;
    } else {
      ++pair.segment;
    }
    return true;
  }

  void post_receive(std::uint32_t q) {
    QueuePair& pair = queue_pairs_[q];
    const std::uint64_t index = pair.receives_posted;
    wire::ReceiveRequest request{.id = index, .queue_pair = q};
    if (op_ == Op::send && index >= pair.first_data && index < pair.end_data) {
      const std::uint64_t message = (index - pair.first_data) / segments_;
      const std::uint64_t segment = (index - pair.first_data) % segments_;
      request.address = incoming_.address + layout_.offset(q, message) + segment * segment_bytes_;
      request.length = static_cast<std::uint32_t>(segment_length(segment));
      request.lkey = incoming_.lkey;
    }
    if (const int error = wire_->post_receive(request); error != 0) refuse("receive request", error);
    ++pair.receives_posted;
  }

  void take(const wire::Completion& c) {
    QueuePair& pair = queue_pairs_[c.queue_pair];
    if (c.status != 0) {
      if (failure_.empty() || (failed_by_flush_ && c.status != wire::flush_status)) {
        failure_ = wire::describe_status(
            c.status, {.vendor_error = c.vendor_error, .on_gpu = on_gpu_, .fabric = wire_->fabric()});
        failed_by_flush_ = c.status == wire::flush_status;
      }
    } else if (c.kind == wire::Completion::Kind::received) {
      if (c.id < pair.first_data) {
        ++tokens_before_;
      } else if (c.id < pair.end_data) {
        if (++pair.arrived % receives_per_message() == 0) ++accepted_;
      } else {
        ++tokens_after_;
      }
      if (pair.receives_posted < pair.receives) post_receive(c.queue_pair);
    } else if (c.id != token_id) {
      // In-order completion: this one stands for the unsignaled ones before it.
      done_ += c.id / segments_ - pair.completed / segments_;
      pair.completed = c.id;
    }
  }

  std::byte& tail(const wire::Region& region) const { return region.address[layout_.size - 1]; }
  static std::byte tail_value(std::uint64_t message) { return static_cast<std::byte>(1 + message % 255); }
  bool tail_arrived() const {
    // The NIC or another thread of the kernel writes this byte.
    return std::atomic_ref<std::byte>(tail(incoming_)).load(std::memory_order_acquire) ==
           tail_value(accepted_);
  }

  void refuse(const char* what, int error) {
    if (failure_.empty()) failure_ = std::string("posting a ") + what + ": " + errno_name(error);
  }

  W* wire_;
  Op op_;
  Layout layout_;
  wire::WireLimits limits_;
  wire::Region outgoing_, incoming_;
  wire::RemoteRegion remote_;
  std::uint64_t segment_bytes_ = 0, segments_ = 1, own_bytes_ = 0;
  std::uint32_t depth_ = 1, signal_every_ = 1, next_queue_pair_ = 0;
  bool inline_ = false, on_gpu_ = false, polls_memory_ = false, failed_by_flush_ = false, may_lose_ = false;
  Round round_;
  std::vector<QueuePair> queue_pairs_;
  ProgressDetector<W> progress_detector_;
  std::uint64_t posted_ = 0, done_ = 0, accepted_ = 0, tokens_before_ = 0, tokens_after_ = 0,
                posted_again_ = 0;
  std::string failure_;
};

}  // namespace gdrbench::path
