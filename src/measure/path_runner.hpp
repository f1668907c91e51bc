#pragma once

#include <fmt/format.h>

#include <string>

#include "gdrbench/error.hpp"
#include "measure/gpu_nic.hpp"
#include "measure/loops.hpp"
#include "measure/runner.hpp"

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
    held_ = payload_;
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
    if (plan_.c.suite == Suite::latency) {
      path_.start(latency_round(plan_));
    } else if (!initiator_) {
      path_.start(bandwidth_round(path_, plan_, false, bandwidth_rounds(plan_).front()));
    }
  }

  EndResult run(Watch& watch) override {
    const std::optional<std::uint64_t> before = port_bytes();
    EndResult result = turn_loop(watch);
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
    if (uses_verbs(plan_.c.path)) {
      if (gpu_nic_.is_null())
        gpu_nic_ = describe_gpu_nic(plan_.c, described["wire"].value("device", std::string()));
      described.update(gpu_nic_);
    }
    if (port_bytes_sent_) described["port_bytes_sent"] = *port_bytes_sent_;
    return described;
  }

 private:
  EndResult turn_loop(Watch& watch) {
    if (plan_.c.suite == Suite::latency)
      return initiator_ ? initiate_latency(path_, plan_, watch) : respond_latency(path_, plan_, watch);
    return initiator_ ? initiate_bandwidth(path_, plan_, watch) : respond_bandwidth(path_, plan_, watch);
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
    const std::uint64_t messages = plan_.c.suite == Suite::latency
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
  Payload held_;  ///< the same as payload_: the memory outlives the wire, which has it registered
  W wire_;
  Payload payload_;
  P path_;
  nlohmann::json gpu_nic_;                        ///< made by the first describe() of a verbs path
  std::optional<std::uint64_t> port_bytes_sent_;  ///< in the last run, by the NIC's port, headers included
};

}  // namespace gdrbench::measure
