#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

namespace counters {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "No counter of loss or congestion is above zero."},
    {"loss", Verdict::warn,
     "Packets were lost, late or out of order during the run and had to be retransmitted, which costs a "
     "timeout each.",
     "RoCE: make the network lossless (PFC on the NIC's traffic class at every hop, the same at both ends) "
     "or rely on ECN; check for a bond or ECMP group that reorders packets; compare the switch's drop "
     "counters"},
    {"congestion", Verdict::warn,
     "The network was congested during the run: packets were ECN-marked or senders throttled, so the rate is "
     "below that of the link.",
     "look for other traffic on the path and for incast; compare with a run between two nodes of one switch; "
     "PFC and ECN thresholds at switch and NIC; ethtool -S <netdev> | grep pause"},
    {"receiver_not_ready", Verdict::warn,
     "Messages found no posted receive during the run (RNR), here or at the remote, and were retransmitted "
     "after a delay.",
     "post more receives (larger --depth), and give the receiving program a core of its own"},
    {"bad_link", Verdict::warn, "The link itself had errors during the run.",
     "clean or replace cable and transceiver; mlxlink -d <device> -c shows the raw error rates"},
    {"in_the_past", Verdict::info,
     "Counters of loss, congestion or link errors are not zero. They count since the driver was loaded; only "
     "their increase during a run says something about it.",
     ""},
};

constexpr Check check = {.name = "counters",
                         .question = "Are packets lost, or senders throttled by congestion?",
                         .looks_at =
                             "/sys/class/infiniband/*/ports/*/{hw_counters,counters}, before and after a "
                             "short run; lifespan there is a setting and not a counter",
                         .layer = Layer::performance,
                         .causes = causes,
                         .run = run};

struct Meaning {
  std::string_view counter;
  std::string_view cause;
};

// Names of mlx5, bnxt_re, irdma and rdma_rxe in hw_counters, and of the InfiniBand port counters.
constexpr Meaning meanings[] = {
    {"local_ack_timeout_err", "loss"},
    {"out_of_sequence", "loss"},
    {"packet_seq_err", "loss"},
    {"implied_nak_seq_err", "loss"},
    {"duplicate_request", "loss"},
    {"req_transport_retries_exceeded", "loss"},
    {"roce_adp_retrans", "loss"},
    {"roce_adp_retrans_to", "loss"},
    {"roce_slow_restart", "loss"},
    {"rx_icrc_encapsulated", "loss"},
    {"out_of_seq_request", "loss"},
    {"rcvd_seq_err", "loss"},
    {"completer_retry_err", "loss"},
    {"retry_exceeded_err", "loss"},
    {"port_xmit_discards", "loss"},
    {"np_cnp_sent", "congestion"},
    {"np_ecn_marked_roce_packets", "congestion"},
    {"rp_cnp_handled", "congestion"},
    {"rp_cnp_ignored", "congestion"},
    {"cnpSent", "congestion"},
    {"cnpHandled", "congestion"},
    {"port_xmit_wait", "congestion"},
    {"rnr_nak_retry_err", "receiver_not_ready"},
    {"out_of_buffer", "receiver_not_ready"},
    {"rcvd_rnr_err", "receiver_not_ready"},
    {"symbol_error", "bad_link"},
    {"link_error_recovery", "bad_link"},
    {"link_downed", "bad_link"},
    {"local_link_integrity_errors", "bad_link"},
    {"port_rcv_errors", "bad_link"},
};

// "mlx5_0/1/out_of_sequence" → "mlx5_0", "1", "out_of_sequence"; empty parts for any other text.
struct Key {
  std::string device, port, counter;
};
Key parts_of(const std::string& key) {
  const std::size_t first = key.find('/');
  if (first == std::string::npos) return {};
  const std::size_t second = key.find('/', first + 1);
  if (second == std::string::npos) return {};
  return {key.substr(0, first), key.substr(first + 1, second - first - 1), key.substr(second + 1)};
}

std::string_view cause_of(std::string_view counter) {
  const auto* const found = std::find_if(std::begin(meanings), std::end(meanings),
                                         [counter](const Meaning& one) { return one.counter == counter; });
  return found == std::end(meanings) ? "" : found->cause;
}

// By port and cause, in the order of ports.
using Seen = std::map<std::pair<std::string, std::string_view>, std::vector<Evidence>>;

std::vector<Finding> findings_of(const Check& self, const Seen& seen) {
  std::vector<Finding> findings;
  for (const auto& [what, evidence] : seen) {
    const std::string& port = what.first;
    findings.push_back(
        named(find(self, what.second, port, evidence), "<device>", port.substr(0, port.find(' '))));
  }
  return findings;
}

Seen counted_during_run(const Counters& before, const Counters& after) {
  Seen seen;
  for (const auto& [key, value] : after) {
    const auto earlier = before.find(key);
    const Key key_parts = parts_of(key);
    const std::string_view cause = cause_of(key_parts.counter);
    // Fewer than before: reset in between, or wrapped.
    if (cause.empty() || earlier == before.end() || value <= earlier->second) continue;
    seen[{key_parts.device + " port " + key_parts.port, cause}].push_back(
        {key + " over the run", fmt::format("+{}", value - earlier->second)});
  }
  return seen;
}

Seen counted_ever(const Counters& counters) {
  Seen seen;
  for (const auto& [key, value] : counters) {
    const Key key_parts = parts_of(key);
    if (value > 0 && !cause_of(key_parts.counter).empty())
      seen[{key_parts.device + " port " + key_parts.port, "in_the_past"}].push_back(
          {key, std::to_string(value)});
  }
  return seen;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const Counters& after = facts.answers.counters_after;
  const Counters now = after.empty() ? read_counters(facts.root) : after;
  if (now.empty()) return {};
  if (const Seen seen = counted_during_run(facts.answers.counters_before, after); !seen.empty())
    return findings_of(self, seen);
  if (const Seen seen = counted_ever(now); !seen.empty()) return findings_of(self, seen);
  return {find(self, "ok", "", {{"counters read", std::to_string(now.size())}})};
}

}  // namespace counters

}  // namespace

CheckList counters_checks() {
  static constexpr const Check* list[] = {&counters::check};
  return list;
}

}  // namespace gdrbench::doctor
