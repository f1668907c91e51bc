#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gdrbench/memory.hpp"
#include "gdrbench/path_proof.hpp"
#include "memory/staging_choice.hpp"
#include "path/policy.hpp"
#include "path/staged_queue_pair.hpp"

namespace gdrbench::path {

/// The payload is copied to pinned host memory, which the wire works on, and from there at the other end: tcp
/// and rdma. See StagedQueuePair for what travels.
template <wire::Wire W>
class Staged {
 public:
  static wire::WireLimits wire_limits(const Case& c) {
    const StagingLayout slots = staging_layout(c);
    const auto receives = static_cast<std::uint32_t>(slots.receives());
    // A plain write is two requests a chunk.
    return {.queue_pairs = c.queue_pairs,
            .send_depth = 2 * std::max(slots.outgoing_slots, slots.incoming_slots) + slots.control_slots,
            .receive_depth = receives,
            .inline_bytes = c.verbs.inline_bytes,
            .completion = c.completion,
            .threads = wire_threads(c)};
  }

  Staged(W& wire, const Case& c, const Buffer* outgoing, const Buffer* incoming)
      : wire_(&wire),
        layout_(layout_of(c)),
        variant_(c.staging.variant),
        timed_(!times_messages(c.suite)),
        engine_(memory::choose_engine(staging_use(c), c.staging, staging_layout(c).chunk_bytes)),
        pattern_bytes_(layout_.size - turned_bytes(c)),
        slots_(staging_layout(c)),
        staging_(std::make_shared<Buffer>(
            BufferOptions{.kind = MemoryKind::host,
                          .length = slots_.bytes() * c.queue_pairs,
                          .gpu = c.gpu,
                          .pin_for_gpu = c.memory != MemoryKind::host && variant_ != Staging::pageable})) {
    region_ = wire.register_memory(staging_->view());
    const memory::CopierOptions copies{
        .pageable = variant_ == Staging::pageable, .engine = engine_.engine, .streams = c.staging.streams};
    queue_pairs_.reserve(c.queue_pairs);
    for (std::uint32_t q = 0; q < c.queue_pairs; ++q) {
      wire::Region part = region_;
      part.address += q * slots_.bytes();
      queue_pairs_.emplace_back(
          wire, c, q,
          typename StagedQueuePair<W>::Ends{outgoing, incoming, copies, timed_ ? &stages_ : nullptr}, part);
    }
  }

  /// Kernels of all queue pairs end before the memory of any goes, for that waits for every kernel.
  ~Staged() { rest(); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  /// What the wire has registered, and so must outlive it.
  std::shared_ptr<const Buffer> staging_buffer() const { return staging_; }

  bool target_must_answer() const { return true; }
  bool accepts_passively() const { return false; }
  bool counts_arrivals() const { return true; }

  nlohmann::json offer() const { return {{"staging", to_json(region_)}}; }
  void connect(const nlohmann::json& remote_offer) {
    wire::RemoteRegion remote =
        offered_region(Fields(remote_offer, "offer.path"), "staging", slots_.bytes() * queue_pairs_.size());
    for (StagedQueuePair<W>& pair : queue_pairs_) {
      pair.connect(remote);
      remote.address += slots_.bytes();
    }
  }

  void start(const Round& round) {
    next_queue_pair_ = 0;
    stages_.reset();
    tokens_expected_before_ = round.token_before ? 1 : 0;
    tokens_expected_after_ = tokens_expected_before_ + (round.token_after ? 1 : 0);
    for (std::uint32_t q = 0; q < queue_pairs_.size(); ++q)
      queue_pairs_[q].start(share_of(round.posts, q, static_cast<std::uint32_t>(queue_pairs_.size())));
  }

  /// After the last round, before anything else is done with the GPU.
  void rest() {
    for (StagedQueuePair<W>& pair : queue_pairs_) pair.rest();
  }
  std::optional<StageTimes> stages() const { return timed_ ? std::optional(stages_.times()) : std::nullopt; }

  bool try_post() {
    for (std::size_t tried = 0; tried < queue_pairs_.size(); ++tried) {
      StagedQueuePair<W>& pair = queue_pairs_[next_queue_pair_];
      next_queue_pair_ = next_queue_pair_ + 1 == queue_pairs_.size() ? 0 : next_queue_pair_ + 1;
      if (pair.try_post()) {
        pair.advance();
        return true;
      }
    }
    return false;
  }

  bool progress() {
    std::array<wire::Completion, 16> batch;
    const std::size_t count = wire_->poll(batch);
    for (std::size_t i = 0; i < count; ++i) {
      const wire::Completion& c = batch[i];
      if (c.status == 0) {
        queue_pairs_[c.queue_pair].take(c);
      } else if (failure_.empty() || (failed_by_flush_ && c.status != wire::flush_status)) {
        failure_ = wire::describe_status(
            c.status, {.vendor_error = c.vendor_error, .on_gpu = false, .fabric = wire_->fabric()});
        failed_by_flush_ = c.status == wire::flush_status;
      }
    }
    bool moved = count > 0 || progress_detector_.moved(*wire_);
    for (StagedQueuePair<W>& pair : queue_pairs_) {
      moved |= pair.advance();
      if (failure_.empty() && !pair.failure().empty()) failure_ = pair.failure();
    }
    return moved;
  }

  /// Copies raise no event on the wire: while some are in flight, does not sleep.
  void wait(int extra_fd, int timeout_ms) {
    for (const StagedQueuePair<W>& pair : queue_pairs_)
      if (pair.copies_in_flight()) return;
    wire_->wait(extra_fd, timeout_ms);
  }

  std::uint64_t posted() const { return sum(&StagedQueuePair<W>::posted); }
  std::uint64_t done() const { return sum(&StagedQueuePair<W>::done); }
  std::uint64_t accepted() const { return sum(&StagedQueuePair<W>::accepted); }
  bool token_before_arrived() const { return tokens_arrived(tokens_expected_before_); }
  bool token_after_arrived() const { return tokens_arrived(tokens_expected_after_); }
  void post_tokens() {
    for (StagedQueuePair<W>& pair : queue_pairs_) {
      pair.post_token();
      pair.advance();
    }
  }
  const std::string& failure() const { return failure_; }
  std::uint64_t pattern_bytes() const { return pattern_bytes_; }
  const Layout& layout() const { return layout_; }

  PolicyProof describe() const {
    return {.policy = Policy::staged,
            .registration = region_.registration,
            .staging = variant_,
            .chunk_bytes = slots_.chunk_bytes,
            .outgoing_slots = slots_.outgoing_slots,
            .incoming_slots = slots_.incoming_slots,
            .staging_bytes = staging_->size(),
            .copy_engine = engine_.name(),
            .copy_engine_reason = engine_.reason};
  }

 private:
  std::uint64_t sum(std::uint64_t (StagedQueuePair<W>::*count)() const) const {
    std::uint64_t total = 0;
    for (const StagedQueuePair<W>& pair : queue_pairs_) total += (pair.*count)();
    return total;
  }
  bool tokens_arrived(std::uint64_t expected) const {
    return std::all_of(queue_pairs_.begin(), queue_pairs_.end(),
                       [&](const StagedQueuePair<W>& pair) { return pair.tokens() >= expected; });
  }

  W* wire_;
  Layout layout_;
  Staging variant_;
  bool timed_;
  memory::EngineChoice engine_;
  std::uint64_t pattern_bytes_;
  StagingLayout slots_;
  std::shared_ptr<const Buffer> staging_;
  wire::Region region_;
  Stages stages_;
  std::vector<StagedQueuePair<W>> queue_pairs_;
  ProgressDetector<W> progress_detector_;
  std::size_t next_queue_pair_ = 0;
  std::uint64_t tokens_expected_before_ = 0, tokens_expected_after_ = 0;
  std::string failure_;
  bool failed_by_flush_ = false;
};

}  // namespace gdrbench::path
