#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/fields.hpp"
#include "gdrbench/error.hpp"
#include "measure/arrival_observer.hpp"
#include "measure/gpu_proof.hpp"
#include "measure/loops.hpp"
#include "measure/runner.hpp"

namespace gdrbench::measure {

/// The Runner of path policy P over wire W.
template <class W, class P>
class PathRunner final : public Runner {
 public:
  template <class... WireArguments>
  PathRunner(const Case& c, Role role, Payload& payload, WireArguments&&... wire_arguments)
      : plan_{.c = c, .request = {}, .flow = path::flow_of(c, role == Role::initiator)},
        initiator_(role == Role::initiator),
        wire_(std::forward<WireArguments>(wire_arguments)...),
        payload_(pick(c, plan_.flow, payload)),
        path_(wire_, c, payload_.outgoing.get(), payload_.incoming.get()) {
    held_ = payload_;
    if constexpr (requires { path_.staging_buffer(); }) bounce_ = path_.staging_buffer();
    const Buffer* const payload_memory =
        payload_.incoming ? payload_.incoming.get() : payload_.outgoing.get();
    if (uses_verbs(c.path) && !is_staged(c.path) && payload_memory != nullptr &&
        payload_memory->view().on_gpu)
      gpu_writes_.emplace(payload_memory->gpu());
    if (spec(c.suite).arrival == ArrivalBy::memory && payload_.incoming)
      observer_ = make_arrival_observer(payload_.incoming->kind(), payload_.incoming->gpu());
  }

  /// Work to do beside the transfers; null for none.
  void use_load(std::unique_ptr<LoadSource> source) {
    if (source) load_ = std::make_unique<LoadMeter>(std::move(source));
    plan_.load = load_.get();
  }

  nlohmann::json offer() override { return {{"wire", wire_.offer()}, {"path", path_.offer()}}; }

  void connect(std::vector<RankLink> ranks) override {
    RankLink& remote = ranks.at(initiator_ ? 1 : 0);
    try {
      const Fields offer(remote.offer, "offer");
      offer.inner("wire");  // is an object
      path_.connect(offer.at("path"));
    } catch (const UsageError& fault) {
      throw PeerLost(fmt::format("malformed offer: {}", fault.what()));
    }
    try {
      wire_.connect(remote.offer.at("wire"), std::move(remote.connections));
    } catch (const nlohmann::json::exception& fault) {
      throw PeerLost(fmt::format("malformed offer: offer.wire: {}", words_of(fault)));
    }
  }

  void prepare(const RunRequest& request) override {
    plan_.request = request;
    // Payload that the peer has read raises no completion here; see TcpWire.
    if constexpr (requires { wire_.bytes_moved(); }) wire_.bytes_moved();
    for (std::uint32_t queue_pair = 0; queue_pair < path_.layout().queue_pairs; ++queue_pair) {
      if (payload_.outgoing)
        fill_pattern(*payload_.outgoing, slots_of(queue_pair, initiator_, path_.layout().size));
      if (payload_.incoming)
        scrub(*payload_.incoming, slots_of(queue_pair, !initiator_, path_.layout().size));
    }
    if (times_messages(plan_.c.suite)) {
      path_.start(latency_round(plan_));
    } else if (!initiator_) {
      path_.start(bandwidth_round(path_, plan_, false, bandwidth_rounds(plan_).front()));
    }
    // Last: while a kernel of theirs runs, nothing may wait for the whole GPU.
    if (observer_) open_observer();
    if (load_) load_->start();
  }

  RankResult run(Watch& watch) override {
    const std::optional<std::uint64_t> before = port_bytes();
    // Also when the loop fails: a kernel that waits for the host would keep every other call to CUDA waiting.
    const Rest rest{path_};
    RankResult result;
    try {
      result = turn_loop(watch);
    } catch (...) {
      end_kernels_quietly();
      throw;
    }
    if (observer_) observer_->close();
    if (load_) load_->stop();
    // Nothing tells the target of plain writes which of them arrived but its memory.
    if (may_lose_messages(plan_.c) && !times_messages(plan_.c.suite) && plan_.c.op == Op::write)
      result.messages_lost = missing_slots();
    if (const std::optional<std::uint64_t> after = port_bytes(); before && after)
      port_bytes_sent_ = *after - *before;
    return result;
  }

  std::string verify() override {
    std::string fault = first_wrong_byte();
    // Not before: it would help data to become visible that kernels did not see.
    if (gpu_writes_) gpu_writes_->time_flush();
    return fault;
  }

  PathProof describe() override {
    if (!place_) {
      place_.emplace();
      put(*place_, wire_.describe());
      add_gpu_nic(*place_, plan_.c);
    }
    PathProof proof = *place_;
    put(proof, wire_.describe());
    proof.policy = path_.describe();
    if (gpu_writes_) proof.gpu_writes = gpu_writes_->describe();
    if (observer_) proof.observer = observer_->describe();
    if (load_) proof.load = load_->describe();
    proof.port_bytes_sent = port_bytes_sent_;
    return proof;
  }

 private:
  // The member for the proof of this wire.
  static void put(PathProof& proof, TcpProof wire) { proof.tcp = std::move(wire); }
  static void put(PathProof& proof, VerbsProof wire) { proof.verbs = std::move(wire); }
  static void put(PathProof& proof, IpcProof wire) { proof.ipc = std::move(wire); }

  struct Rest {
    P& path;
    ~Rest() { path.rest(); }
  };

  RankResult turn_loop(Watch& watch) {
    if (observer_) return run_observed(path_, *observer_, plan_, initiator_, watch);
    if (times_messages(plan_.c.suite))
      return initiator_ ? initiate_latency(path_, plan_, watch) : respond_latency(path_, plan_, watch);
    return initiator_ ? initiate_bandwidth(path_, plan_, watch) : respond_bandwidth(path_, plan_, watch);
  }

  // A ping-pong's messages all lie in the first slot, and those that arrive come from the other end.
  void open_observer() {
    const std::uint64_t last = path_.layout().size - 1;
    const PatternSlots slot = slots_of(0, !initiator_, path_.layout().size);
    observer_->open(payload_.incoming->data() + slot.offset + last, pattern_byte(last, slot.seed),
                    latency_round(plan_).accepts);
  }

  // The failure being handled says more than theirs would.
  void end_kernels_quietly() noexcept {
    try {
      if (observer_) observer_->close();
      if (load_) load_->stop();
    } catch (const std::exception&) {
    }
  }

  // What the port itself has counted; absent for sockets and for devices without such a counter.
  std::optional<std::uint64_t> port_bytes() const {
    if constexpr (requires { wire_.port_bytes(); }) return wire_.port_bytes();
    return std::nullopt;
  }

  // What cannot be measured where messages may be lost.
  static void refuse_loss(const Case& c) {
    if (!may_lose_messages(c)) return;
    if constexpr (!requires { P::tolerates_loss; })
      throw Unavailable("the messages that steer staging must arrive; use --transport rc");
    if (spec(c.suite).arrival == ArrivalBy::memory)
      throw Unavailable(
          "an unreliable connection may lose the message that is waited for in memory; use --transport rc");
    if (!times_messages(c.suite) && c.direction != Direction::forward)
      throw Unavailable("an unreliable connection is measured forward; use --direction forward");
  }

  // This case's share of the session's payload: later cases may replace the session's buffers by larger ones.
  static Payload pick(const Case& c, path::Flow flow, Payload& session) {
    refuse_loss(c);
    provide_payload(c, flow, session);
    return {.outgoing = path::needs_outgoing(c, flow) ? session.outgoing : nullptr,
            .incoming = path::needs_incoming(c, flow) ? session.incoming : nullptr};
  }

  // The slots of a queue pair that messages of this run use, each with its seed, on which both ends agree:
  // the run's own, the end that the data comes from, and the message number in its queue pair, modulo the
  // slots.
  PatternSlots slots_of(std::uint32_t queue_pair, bool from_initiator, std::uint64_t length) const {
    const path::Layout& layout = path_.layout();
    return {.offset = layout.offset(queue_pair, 0),
            .length = length,
            .stride = layout.stride,
            // After a loss, messages arrive in other slots than they left from.
            .count = may_lose_messages(plan_.c) ? layout.slots
                                                : used_slots(plan_.c, layout, plan_.request, queue_pair),
            .seed = plan_.request.seed + (from_initiator ? 0 : std::uint64_t{1} << 40) +
                    queue_pair * layout.slots};
  }

  std::string first_wrong_byte() const {
    if (!payload_.incoming) return "";
    for (std::uint32_t queue_pair = 0; queue_pair < path_.layout().queue_pairs; ++queue_pair) {
      const PatternSlots slots = slots_of(queue_pair, !initiator_, path_.pattern_bytes());
      if (may_lose_messages(plan_.c)) {
        if (std::string fault = first_strange_slot(slots); !fault.empty()) return fault;
      } else if (const auto wrong = find_mismatch(*payload_.incoming, slots)) {
        return describe_mismatch(queue_pair, *wrong);
      }
    }
    return "";
  }

  // Slot `index` of those, alone.
  static PatternSlots one_slot(const PatternSlots& slots, std::uint64_t index) {
    PatternSlots one = slots;
    one.offset += index * slots.stride;
    one.count = 1;
    one.seed += index;
    return one;
  }

  // Slots of this run in which the message that was to be there last is not.
  std::uint64_t missing_slots() const {
    if (!payload_.incoming) return 0;
    std::uint64_t missing = 0;
    for (std::uint32_t queue_pair = 0; queue_pair < path_.layout().queue_pairs; ++queue_pair) {
      const PatternSlots slots = slots_of(queue_pair, !initiator_, path_.pattern_bytes());
      const std::uint64_t used = used_slots(plan_.c, path_.layout(), plan_.request, queue_pair);
      for (std::uint64_t i = 0; i < used; ++i)
        missing += find_mismatch(*payload_.incoming, one_slot(slots, i)).has_value() ? 1 : 0;
    }
    return missing;
  }

  // Where messages were lost, a slot holds what it held before the run, or a whole message of this run: after
  // a loss of sends another one than without; of writes its own, maybe only a part of it. Empty where all do.
  std::string first_strange_slot(const PatternSlots& slots) const {
    std::uint64_t shift = 0;
    for (std::uint64_t i = 0; i < slots.count; ++i) {
      const PatternSlots here = one_slot(slots, i);
      if (!find_mismatch(*payload_.incoming, here)) continue;
      const auto holds = [&](std::uint64_t from) {
        PatternSlots other = here;
        other.seed = slots.seed + (i + from) % slots.count;
        return !find_mismatch(*payload_.incoming, other);
      };
      if (plan_.c.op == Op::send && holds(shift)) continue;
      if (is_untouched(here, plan_.c.op == Op::write)) continue;
      for (shift = 0; shift < slots.count && !holds(shift);) ++shift;
      if (plan_.c.op != Op::send || shift == slots.count)
        return fmt::format("{}: wrong byte in slot {}: it holds no message of this run", case_name(plan_.c),
                           i);
    }
    return "";
  }

  // Whether the slot is as scrub() left it; `or_part`: but for a part of its message. In GPU memory a slot is
  // looked at as a whole.
  bool is_untouched(const PatternSlots& slot, bool or_part) const {
    if (payload_.incoming->view().on_gpu) return or_part;
    const std::byte* const bytes = payload_.incoming->data() + slot.offset;
    for (std::uint64_t i = 0; i < slot.length; ++i) {
      const std::byte pattern = pattern_byte(i, slot.seed);
      if (bytes[i] != ~pattern && !(or_part && bytes[i] == pattern)) return false;
    }
    return true;
  }

  std::string describe_mismatch(std::uint32_t queue_pair, const Mismatch& wrong) const {
    return fmt::format("{}: wrong byte in {}, slot {}, byte {}: expected {:#04x}, found {:#04x}{}",
                       case_name(plan_.c),
                       message_in_slot(plan_.c, path_.layout(), plan_.request, queue_pair, wrong.slot),
                       wrong.slot, wrong.offset, wrong.expected, wrong.found,
                       wrong.expected == wrong.found ? " just after it was checked: it came late" : "");
  }

  LoopPlan plan_;
  bool initiator_;
  // The same memory as payload_ and path_ have: it outlives the wire, where the peer may still write into it.
  Payload held_;
  std::shared_ptr<const Buffer> bounce_;
  W wire_;
  Payload payload_;
  P path_;
  std::optional<PathProof> place_;       ///< where GPU and NIC sit, found by the first describe()
  std::optional<GpuWrites> gpu_writes_;  ///< where the wire works on GPU memory
  // These go first: their kernels must have ended before memory that they look at is freed.
  std::unique_ptr<ArrivalObserver> observer_;
  std::unique_ptr<LoadMeter> load_;
  std::optional<std::uint64_t> port_bytes_sent_;  ///< in the last run, by the NIC's port, headers included
};

}  // namespace gdrbench::measure
