#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "benchmarks/transfer_probes.hpp"
#include "cli/doctor_facts.hpp"
#include "cli/loopback.hpp"
#include "doctor/facts/child_process.hpp"
#include "doctor/probes/registration.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cli {
namespace {

using namespace std::chrono_literals;
using benchmarks::TransferProbe;
using nlohmann::json;

// A session's own limits are shorter.
constexpr auto transfer_timeout = 60s;

bool has_usable_device(const EndInfo& end) {
  return std::any_of(end.rdma.devices.begin(), end.rdma.devices.end(),
                     [](const RdmaDeviceInfo& device) { return device.unusable.empty(); });
}

// One path was asked for, so that the head says nothing.
std::string reason_of(const Unavailable& fault) {
  const std::string text = fault.what();
  constexpr std::string_view head = "none of the paths asked for can run: ";
  return text.starts_with(head) ? text.substr(head.size()) : text;
}

// The child's session with the other end, opened by its first step.
class TransferSession {
 public:
  explicit TransferSession(const TransferRequest& request) : request_(request) {}

  json run(const TransferProbe& probe) {
    if (!lost_.empty()) return {{"lost", lost_}};
    try {
      open();
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& fault) {  // it answered a moment ago
      return lose(fault.what(), "failed");
    }
    try {
      const benchmarks::TransferOutcome used =
          benchmarks::run_transfer(*session_, this_end_, probe, request_.measure);
      return {{"outcome", "passed"}, {"device", used.device}, {"gpu", used.gpu}};
    } catch (const PeerLost& fault) {
      return lose(fault.what(), "timed out");
    } catch (const Unavailable& fault) {
      const bool was_tried =
          !uses_verbs(probe.path) || (has_usable_device(this_end_) && has_usable_device(session_->remote()));
      return {{"outcome", was_tried ? "failed" : "not run"}, {"text", reason_of(fault)}};
    }
  }

  /// Closes the session: a child process ends without its destructors.
  void close() {
    session_.reset();
    responder_.reset();
  }

 private:
  void open() {
    if (session_) return;
    ConnectOptions connect = request_.connect;
    if (request_.loopback) {
      responder_.emplace();
      connect = {};
      connect.port = responder_->port();
      connect.key = responder_->key();
    }
    session_.emplace(connect);
    this_end_ = describe_this_end();
  }

  // Another responder of our own can be forked only by a process that has used no device.
  json lose(const std::string& why, const char* outcome) {
    if (!request_.loopback) {
      lost_ = why;
      return {{"lost", lost_}};
    }
    const int signal = responder_ ? responder_->killed_by() : 0;
    if (signal != 0)
      throw doctor::EndOfProcess{
          {{"outcome", "crashed"},
           {"text", fmt::format("the responder was killed by SIG{}: {}", sigabbrev_np(signal), why)}}};
    throw doctor::EndOfProcess{{{"outcome", outcome}, {"text", why}}};
  }

  const TransferRequest& request_;
  std::optional<LoopbackResponder> responder_;
  std::optional<Session> session_;
  EndInfo this_end_;
  std::string lost_;
};

std::string text_in(const json& answer, const char* key) {
  const auto found = answer.is_object() ? answer.find(key) : answer.end();
  return found != answer.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

TransferResults probe_transfers(const TransferRequest& request) {
  const std::vector<TransferProbe> planned = benchmarks::transfer_probes();
  const auto session = std::make_shared<TransferSession>(request);
  std::vector<std::function<json()>> steps;
  steps.reserve(planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i)
    steps.emplace_back([=, probe = planned[i], is_last = i + 1 == planned.size()] {
      json answer = session->run(probe);
      if (is_last) session->close();
      return answer;
    });
  const std::vector<doctor::StepResult> steps_done = doctor::run_steps(steps, transfer_timeout);

  TransferResults results;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const doctor::StepResult& result = steps_done[i];
    doctor::ProbeResult probe{.what = fmt::format("transfer {} {} {}", to_string(planned[i].path),
                                                  to_string(planned[i].op), to_string(planned[i].direction)),
                              .device = text_in(result.answer, "device"),
                              .gpu = text_in(result.answer, "gpu"),
                              .outcome = text_in(result.answer, "outcome"),
                              .text = ""};
    std::string error =
        result.end == doctor::ChildEnd::finished ? text_in(result.answer, "text") : result.text;
    if (probe.outcome.empty()) probe.outcome = doctor::outcome(result.end);
    if (const std::string lost = text_in(result.answer, "lost"); !lost.empty()) {
      probe.outcome = "not run";
      error = lost;
      results.remote_lost = lost;
    }
    doctor::set_error(probe, error);
    results.probes.push_back(std::move(probe));
  }
  return results;
}

}  // namespace gdrbench::cli
