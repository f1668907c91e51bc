#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gdrbench/memory.hpp"
#include "gdrbench/path_proof.hpp"
#include "memory/staging_choice.hpp"
#include "path/staged_lane.hpp"
#include "path/wire_threads.hpp"

namespace gdrbench::path {

/// The payload is copied to pinned host memory, which the wire works on, and from there at the other end: tcp
/// and rdma. See StagedLane for what travels.
template <wire::Wire W>
class Staged {
 public:
  static wire::WireLimits wire_limits(const Case& c) {
    const BounceLayout slots = bounce_layout(c);
    const auto receives = static_cast<std::uint32_t>(slots.receives());
    // A plain write is two requests a chunk.
    return {.lanes = c.queue_pairs,
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
        engine_(memory::choose_engine(c, bounce_layout(c).chunk_bytes)),
        pattern_bytes_(layout_.size - turned_bytes(c)),
        slots_(bounce_layout(c)),
        bounce_(std::make_shared<Buffer>(
            BufferOptions{.kind = MemoryKind::host,
                          .length = slots_.bytes() * c.queue_pairs,
                          .gpu = c.gpu,
                          .pin_for_gpu = c.memory != MemoryKind::host && variant_ != Staging::pageable})) {
    region_ = wire.register_memory(bounce_->view());
    const memory::CopierOptions copies{
        .pageable = variant_ == Staging::pageable, .engine = engine_.engine, .streams = c.staging.streams};
    lanes_.reserve(c.queue_pairs);
    for (std::uint32_t l = 0; l < c.queue_pairs; ++l) {
      wire::Region part = region_;
      part.address += l * slots_.bytes();
      lanes_.emplace_back(
          wire, c, l, typename StagedLane<W>::Ends{outgoing, incoming, copies, timed_ ? &stages_ : nullptr},
          part);
    }
  }

  /// Kernels of all lanes end before the memory of any goes, for that waits for every kernel.
  ~Staged() { rest(); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  /// What the wire has registered, and so must outlive it.
  std::shared_ptr<const Buffer> bounce() const { return bounce_; }

  bool target_must_answer() const { return true; }
  bool accepts_passively() const { return false; }
  bool counts_arrivals() const { return true; }

  nlohmann::json offer() const { return {{"bounce", to_json(region_)}}; }
  void connect(const nlohmann::json& peer) {
    wire::RemoteRegion remote =
        offered_region(Fields(peer, "offer.path"), "bounce", slots_.bytes() * lanes_.size());
    for (StagedLane<W>& lane : lanes_) {
      lane.connect(remote);
      remote.address += slots_.bytes();
    }
  }

  void start(const Round& round) {
    next_lane_ = 0;
    stages_.reset();
    tokens_expected_before_ = round.token_before ? 1 : 0;
    tokens_expected_after_ = tokens_expected_before_ + (round.token_after ? 1 : 0);
    for (std::uint32_t l = 0; l < lanes_.size(); ++l)
      lanes_[l].start(share_of(round.posts, l, static_cast<std::uint32_t>(lanes_.size())));
  }

  /// After the last round, before anything else is done with the GPU.
  void rest() {
    for (StagedLane<W>& lane : lanes_) lane.rest();
  }
  std::optional<StageTimes> stages() const { return timed_ ? std::optional(stages_.times()) : std::nullopt; }

  bool try_post() {
    for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
      StagedLane<W>& lane = lanes_[next_lane_];
      next_lane_ = next_lane_ + 1 == lanes_.size() ? 0 : next_lane_ + 1;
      if (lane.try_post()) {
        lane.advance();
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
        lanes_[c.lane].take(c);
      } else if (failure_.empty() || (failed_by_flush_ && c.status != wire::flush_status)) {
        failure_ = wire::describe_status(
            c.status, {.vendor_error = c.vendor_error, .on_gpu = false, .fabric = wire_->fabric()});
        failed_by_flush_ = c.status == wire::flush_status;
      }
    }
    bool moved = count > 0 || stir_.moved(*wire_);
    for (StagedLane<W>& lane : lanes_) {
      moved |= lane.advance();
      if (failure_.empty() && !lane.failure().empty()) failure_ = lane.failure();
    }
    return moved;
  }

  /// Copies raise no event on the wire: while some are in flight, does not sleep.
  void wait(int extra_fd, int timeout_ms) {
    for (const StagedLane<W>& lane : lanes_)
      if (lane.copies_in_flight()) return;
    wire_->wait(extra_fd, timeout_ms);
  }

  std::uint64_t posted() const { return sum(&StagedLane<W>::posted); }
  std::uint64_t done() const { return sum(&StagedLane<W>::done); }
  std::uint64_t accepted() const { return sum(&StagedLane<W>::accepted); }
  bool token_before_arrived() const { return tokens_arrived(tokens_expected_before_); }
  bool token_after_arrived() const { return tokens_arrived(tokens_expected_after_); }
  void post_tokens() {
    for (StagedLane<W>& lane : lanes_) {
      lane.post_token();
      lane.advance();
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
            .staging_bytes = bounce_->size(),
            .copy_engine = engine_.name(),
            .copy_engine_reason = engine_.reason};
  }

 private:
  std::uint64_t sum(std::uint64_t (StagedLane<W>::*count)() const) const {
    std::uint64_t total = 0;
    for (const StagedLane<W>& lane : lanes_) total += (lane.*count)();
    return total;
  }
  bool tokens_arrived(std::uint64_t expected) const {
    return std::all_of(lanes_.begin(), lanes_.end(),
                       [&](const StagedLane<W>& lane) { return lane.tokens() >= expected; });
  }

  W* wire_;
  Layout layout_;
  Staging variant_;
  bool timed_;
  memory::EngineChoice engine_;
  std::uint64_t pattern_bytes_;
  BounceLayout slots_;
  std::shared_ptr<const Buffer> bounce_;
  wire::Region region_;
  Stages stages_;
  std::vector<StagedLane<W>> lanes_;
  Stir<W> stir_;
  std::size_t next_lane_ = 0;
  std::uint64_t tokens_expected_before_ = 0, tokens_expected_after_ = 0;
  std::string failure_;
  bool failed_by_flush_ = false;
};

}  // namespace gdrbench::path
