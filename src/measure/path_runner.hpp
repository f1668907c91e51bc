#pragma once

#include <fmt/format.h>

#include <string>

#include "gdrbench/error.hpp"
#include "measure/loops.hpp"
#include "measure/runner.hpp"
#include "measure/visible.hpp"

namespace gdrbench::measure {

/// Makes payload buffers that the case needs at this end, or keeps those that fit.
void provide_payload(const Case& c, path::Flow flow, Payload& payload);

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
    if (c.suite == Suite::visible && payload_.incoming)
      sight_ = make_sight(payload_.incoming->kind(), payload_.incoming->gpu());
  }

  /// Work to do beside the transfers; null for none.
  void use_load(std::unique_ptr<LoadSource> source) {
    if (source) load_ = std::make_unique<LoadMeter>(std::move(source));
    plan_.load = load_.get();
  }

  nlohmann::json offer() override { return {{"wire", wire_.offer()}, {"path", path_.offer()}}; }

  void connect(const nlohmann::json& peer_offer, std::vector<wire::Socket> sockets) override {
    path_.connect(peer_offer.at("path"));
    wire_.connect(peer_offer.at("wire"), std::move(sockets));
  }

  void prepare(const RunRequest& request) override {
    plan_.request = request;
    if (payload_.outgoing)
      for_each_slot(initiator_, [&](std::uint64_t offset, std::uint64_t seed) {
        fill_pattern(*payload_.outgoing, offset, path_.layout().size, seed);
      });
    if (payload_.incoming)
      for_each_slot(!initiator_, [&](std::uint64_t offset, std::uint64_t seed) {
        scrub(*payload_.incoming, offset, path_.layout().size, seed);
      });
    if (times_messages(plan_.c.suite)) {
      path_.start(latency_round(plan_));
    } else if (!initiator_) {
      path_.start(bandwidth_round(path_, plan_, false, bandwidth_rounds(plan_).front()));
    }
    // Last: while a kernel of theirs runs, nothing may wait for the whole GPU.
    if (sight_) open_sight();
    if (load_) load_->start();
  }

  EndResult run(Watch& watch) override {
    const std::optional<std::uint64_t> before = port_bytes();
    EndResult result;
    try {
      result = turn_loop(watch);
    } catch (...) {
      end_kernels_quietly();
      throw;
    }
    if (sight_) sight_->close();
    if (load_) load_->stop();
    if (const std::optional<std::uint64_t> after = port_bytes(); before && after)
      port_bytes_sent_ = *after - *before;
    return result;
  }

  std::string verify() override {
    std::string fault;
    if (payload_.incoming)
      for_each_slot(!initiator_, [&](std::uint64_t offset, std::uint64_t seed) {
        if (!fault.empty() || path_.pattern_bytes() == 0) return;
        if (const auto wrong = find_mismatch(*payload_.incoming, offset, path_.pattern_bytes(), seed))
          fault = fmt::format(
              "{}: wrong byte in the message at slot offset {}, byte {}: expected {:#04x}, found {:#04x}",
              case_name(plan_.c), offset, wrong->offset, wrong->expected, wrong->found);
      });
    return fault;
  }

  nlohmann::json describe() override {
    nlohmann::json described{{"wire", wire_.describe()}, {"path", path_.describe()}};
    if (sight_) described["observer"] = sight_->describe();
    if (load_) described["load"] = load_->describe();
    if (port_bytes_sent_) described["port_bytes_sent"] = *port_bytes_sent_;
    return described;
  }

 private:
  EndResult turn_loop(Watch& watch) {
    if (sight_) return run_visible(path_, *sight_, plan_, initiator_, watch);
    if (times_messages(plan_.c.suite))
      return initiator_ ? initiate_latency(path_, plan_, watch) : respond_latency(path_, plan_, watch);
    return initiator_ ? initiate_bandwidth(path_, plan_, watch) : respond_bandwidth(path_, plan_, watch);
  }

  // A ping-pong's messages all lie in the first slot, and those that arrive come from the other end.
  void open_sight() {
    const std::uint64_t last = path_.layout().size - 1;
    for_each_slot(!initiator_, [&](std::uint64_t offset, std::uint64_t seed) {
      sight_->open(payload_.incoming->data() + offset + last, pattern_byte(last, seed),
                   latency_round(plan_).accepts);
    });
  }

  // The failure being handled says more than theirs would.
  void end_kernels_quietly() noexcept {
    try {
      if (sight_) sight_->close();
      if (load_) load_->stop();
    } catch (const std::exception&) {
    }
  }

  // What the port itself has counted; absent for sockets and for devices without such a counter.
  std::optional<std::uint64_t> port_bytes() const {
    if constexpr (requires { wire_.port_bytes(); }) return wire_.port_bytes();
    return std::nullopt;
  }

  // This case's share of the session's payload: later cases may replace the session's buffers by larger ones.
  static Payload pick(const Case& c, path::Flow flow, Payload& session) {
    provide_payload(c, flow, session);
    return {.outgoing = path::needs_outgoing(c, flow) ? session.outgoing : nullptr,
            .incoming = path::needs_incoming(c, flow) ? session.incoming : nullptr};
  }

  // The slots that messages of this run use, each with its seed, on which both ends agree: the run's own, the
  // end that the data comes from, and the message number in its lane, modulo the slots.
  template <class Visit>
  void for_each_slot(bool from_initiator, Visit visit) {
    const std::uint64_t run_seed = plan_.request.seed + (from_initiator ? 0 : std::uint64_t{1} << 40);
    const path::Layout& layout = path_.layout();
    const RunRequest& request = plan_.request;
    const std::uint64_t messages = times_messages(plan_.c.suite)
                                       ? request.warmup + request.iterations
                                       : std::max(request.warmup, request.iterations);
    for (std::uint32_t lane = 0; lane < layout.lanes; ++lane) {
      const std::uint64_t used = std::min(layout.slots, path::share_of(messages, lane, layout.lanes));
      for (std::uint64_t slot = 0; slot < used; ++slot)
        visit(layout.offset(lane, slot), run_seed + lane * layout.slots + slot);
    }
  }

  LoopPlan plan_;
  bool initiator_;
  W wire_;
  Payload payload_;
  P path_;
  // These go first: their kernels must have ended before memory that they look at is freed.
  std::unique_ptr<Sight> sight_;
  std::unique_ptr<LoadMeter> load_;
  std::optional<std::uint64_t> port_bytes_sent_;  ///< in the last run, by the NIC's port, headers included
};

}  // namespace gdrbench::measure
