#pragma once

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <vector>

#include "base/system.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/run_result.hpp"
#include "measure/cpu_meter.hpp"
#include "measure/load_meter.hpp"
#include "measure/summary.hpp"
#include "measure/watch.hpp"
#include "path/layout.hpp"
#include "path/policy.hpp"

/// The measuring loops, one for each suite and end. They are instantiated for every path, so that the clock
/// is read at the same places for all of them: the difference between two results is the path and nothing
/// else.
namespace gdrbench::measure {

struct LoopPlan {
  Case c;
  RunRequest request;
  path::Flow flow;
  LoadMeter* load = nullptr;  ///< overlap with a load
};

/// Turns the path's wheels until `condition()` holds; false when the control channel has something to say
/// first.
template <class P, class Condition>
bool turn_until(P& path, Watch& watch, CompletionMode mode, Condition condition) {
  while (!condition()) {
    if (path.progress()) {
      watch.active();
      continue;
    }
    if (!path.failure().empty()) throw Error(path.failure());
    if (mode == CompletionMode::event) {
      path.wait(watch.control_fd(), 100);
      if (!watch.check()) return condition();
    } else if (!watch.idle()) {
      return condition();
    }
  }
  return true;
}

/// As turn_until, where a message before its time means that another rank has given up.
template <class P, class Condition>
void turn(P& path, Watch& watch, CompletionMode mode, Condition condition) {
  if (!turn_until(path, watch, mode, condition)) throw EndedEarly();
}

/// Posts message number `index` of the round, all segments of it.
template <class P>
void post_message(P& path, Watch& watch, CompletionMode mode, std::uint64_t index) {
  turn(path, watch, mode, [&] {
    while (path.posted() <= index && path.try_post()) {
    }
    return path.posted() > index;
  });
}

/// Serves the initiator's one-sided operations until it says that the run is over. A NIC needs no help with
/// them, so this end sleeps, whatever the completion mode; sockets need this process.
template <class P>
void serve_one_sided(P& path, Watch& watch, CompletionMode mode) {
  if (path.accepts_passively()) {
    while (watch.check()) {
      watch.active();  // the messages are not seen here; a lost peer is, on the control channel
      wire::wait_for(watch.control_fd(), POLLIN | POLLRDHUP, after(std::chrono::milliseconds(100)));
    }
  } else {
    turn_until(path, watch, mode, [] { return false; });
  }
}

/// The last completions of an end that has nothing more to do; the control channel may already be talking.
template <class P>
void drain(P& path, CompletionMode mode, std::uint64_t posts) {
  Watch quiet(-1, std::chrono::seconds(5));
  turn(path, quiet, mode, [&] { return path.done() == posts; });
}

/// What is metered beside the messages, over the timed part: started again where it begins anew.
class Meter {
 public:
  explicit Meter(const LoopPlan& plan)
      : cpu_(plan.c.pairs_at_once > 1 ? CpuMeter::Scope::thread : CpuMeter::Scope::process),
        load_(plan.load) {}
  void start() {
    cpu_.start();
    if (load_ != nullptr) load_->begin();
  }
  RankResult stop() {
    RankResult result;
    if (load_ != nullptr) result.load = load_->end();
    result.cpu = cpu_.stop();
    return result;
  }

 private:
  CpuMeter cpu_;
  LoadMeter* load_;
};

template <class P>
RankResult finish(P& path, Meter& meter) {
  RankResult result = meter.stop();
  result.elapsed_s = result.cpu.elapsed_s;
  result.messages_sent = path.done();
  result.messages_received = path.accepted();
  result.stages = path.stages();
  if constexpr (requires { path.lost(); }) result.messages_lost = path.lost();
  return result;
}

/// Where messages may be lost, waits for those that are only late.
template <class P>
void take_what_is_under_way(P& path, const LoopPlan& plan) {
  constexpr std::int64_t quiet_ns = 20'000'000;
  for (std::int64_t moved_ns = now_ns(); may_lose_messages(plan.c) && now_ns() - moved_ns < quiet_ns;)
    if (path.progress()) moved_ns = now_ns();
}

/// As turn(), over a path that may lose messages: where the condition does not come true for a while, the
/// message that was posted last is posted once more. Whether it was.
template <class P, class Condition>
bool turn_or_post_again(P& path, const LoopPlan& plan, Watch& watch, Condition condition) {
  if constexpr (requires { path.post_again(); }) {
    constexpr std::int64_t patience_ns = 100'000'000;  // far above a round trip
    constexpr int max_attempts = 50;
    for (int attempts = 0; may_lose_messages(plan.c) && attempts < max_attempts; ++attempts) {
      const std::int64_t until_ns = now_ns() + patience_ns;
      turn(path, watch, plan.c.completion, [&] { return condition() || now_ns() >= until_ns; });
      if (condition()) return attempts > 0;
      path.post_again();
    }
    if (may_lose_messages(plan.c))
      throw Error(
          fmt::format("no message arrived though it was sent {} times over the unreliable connection: is the "
                      "remote end reachable? Try --transport rc",
                      max_attempts));
  }
  turn(path, watch, plan.c.completion, condition);
  return false;
}

/// Latency: rounds are round trips, warm-up first.
inline path::Round latency_round(const LoopPlan& plan) {
  std::uint64_t trips = plan.request.warmup + plan.request.iterations;
  if (may_lose_messages(plan.c)) trips = 2 * trips + 1000;  // room for those that are posted again
  return {.posts = plan.flow.posts ? trips : 0, .accepts = plan.flow.accepts ? trips : 0};
}

/// Ping-pong, or one read after the other. A sample is half a round trip; for read it is the whole operation,
/// which crosses the wire both ways by itself.
template <class P>
RankResult initiate_latency(P& path, const LoopPlan& plan, Watch& watch) {
  const std::uint64_t warmup = plan.request.warmup, trips = warmup + plan.request.iterations;
  const bool reads = plan.c.op == Op::read;
  std::vector<std::int64_t> times_ns(plan.request.iterations + 1);
  std::vector<std::uint64_t> interrupted;  // trips in which a message was lost
  std::uint64_t surplus = 0;
  Meter meter(plan);
  for (std::uint64_t i = 0; i < trips; ++i) {
    if (i == warmup) {
      meter.start();
      times_ns[0] = now_ns();
    }
    // Answers to messages that were posted again though only late, not lost.
    if (!reads && path.accepted() > i + surplus) surplus = path.accepted() - i;
    post_message(path, watch, plan.c.completion, i);
    const auto is_over = [&] { return reads ? path.done() > i : path.accepted() > i + surplus; };
    if (turn_or_post_again(path, plan, watch, is_over)) {
      if (i >= warmup) interrupted.push_back(i - warmup);
      take_what_is_under_way(path, plan);
    }
    if (i >= warmup) times_ns[i - warmup + 1] = now_ns();
  }
  RankResult result = finish(path, meter);
  drain(path, plan.c.completion, trips + result.messages_lost);
  for (std::size_t i = 0; i + 1 < times_ns.size(); ++i)
    times_ns[i] = (times_ns[i + 1] - times_ns[i]) / (reads ? 1 : 2);
  times_ns.pop_back();
  for (auto trip = interrupted.rbegin(); trip != interrupted.rend(); ++trip)
    times_ns.erase(times_ns.begin() + static_cast<std::ptrdiff_t>(*trip));
  if (times_ns.empty()) throw Error("every message of the run was lost or late; try --transport rc");
  result.latency_us = summarise(times_ns);
  result.samples_ns = std::move(times_ns);
  return result;
}

/// Answers every message that arrives, of those that were posted again too, until the initiator says that the
/// run is over. A plain write that was posted again cannot be told from the one before it, so that this end
/// repeats its answer by itself.
template <class P>
RankResult respond_until_told(P& path, const LoopPlan& plan, Watch& watch, Meter& meter) {
  constexpr std::int64_t patience_ns = 100'000'000;
  std::int64_t answered_ns = now_ns();
  for (std::uint64_t i = 0;;) {
    const auto is_due = [&] {
      return i > 0 && plan.c.op == Op::write && now_ns() - answered_ns >= patience_ns;
    };
    if (!turn_until(path, watch, plan.c.completion, [&] { return path.accepted() > i || is_due(); })) break;
    if (path.accepted() > i) {
      if (i == plan.request.warmup) meter.start();
      post_message(path, watch, plan.c.completion, i++);
    } else if constexpr (requires { path.post_again(); }) {
      path.post_again();
    }
    answered_ns = now_ns();
  }
  RankResult result = finish(path, meter);
  drain(path, plan.c.completion, path.posted() + result.messages_lost);
  result.messages_lost = 0;  // which the initiator counts
  return result;
}

template <class P>
RankResult respond_latency(P& path, const LoopPlan& plan, Watch& watch) {
  Meter meter(plan);
  meter.start();
  if (plan.c.op == Op::read) {
    serve_one_sided(path, watch, plan.c.completion);
    return finish(path, meter);
  }
  const std::uint64_t warmup = plan.request.warmup, trips = warmup + plan.request.iterations;
  if (may_lose_messages(plan.c)) return respond_until_told(path, plan, watch, meter);
  for (std::uint64_t i = 0; i < trips; ++i) {
    if (i == warmup) meter.start();
    turn(path, watch, plan.c.completion, [&] { return path.accepted() > i; });
    post_message(path, watch, plan.c.completion, i);
  }
  RankResult result = finish(path, meter);
  drain(path, plan.c.completion, trips);
  return result;
}

/// Who tells whom what, besides the messages. A NIC's completion of a one-sided operation says that the data
/// is in place; otherwise the responder says so (`answer`), and where it cannot count arrivals it needs to be
/// told when the last message has left (`last_sent`).
struct Tokens {
  bool go = false;  ///< initiator → responder, before the responder's first message
  bool last_sent = false;
  bool answer = false;
};
template <class P>
Tokens tokens_of(const P& path, const LoopPlan& plan) {
  const bool forward = plan.c.direction != Direction::reverse;
  return {.go = plan.c.direction != Direction::forward,
          .last_sent = forward && path.target_must_answer() && !path.counts_arrivals(),
          .answer = !forward || plan.c.direction == Direction::both || path.target_must_answer()};
}

/// Bandwidth: the warm-up is a round of its own, then the measured one. The end of a round cannot be told
/// where messages may be lost, so that those have no warm-up.
inline std::vector<std::uint64_t> bandwidth_rounds(const LoopPlan& plan) {
  if (plan.request.warmup == 0 || may_lose_messages(plan.c)) return {plan.request.iterations};
  return {plan.request.warmup, plan.request.iterations};
}
template <class P>
path::Round bandwidth_round(const P& path, const LoopPlan& plan, bool initiator, std::uint64_t messages) {
  const Tokens tokens = tokens_of(path, plan);
  return {.posts = plan.flow.posts ? messages : 0,
          .accepts = plan.flow.accepts ? messages : 0,
          .token_before = !initiator && tokens.go,
          .token_after = initiator ? tokens.answer : tokens.last_sent};
}

/// Posts and takes all messages of a round; tokens apart.
template <class P>
void move_messages(P& path, const LoopPlan& plan, Watch& watch, const path::Round& round) {
  const std::uint64_t arrivals = path.counts_arrivals() ? round.accepts : 0;
  turn(path, watch, plan.c.completion, [&] {
    while (path.try_post()) {
    }
    return path.done() == round.posts && path.accepted() >= arrivals;
  });
}

/// Clock: from before the first post until the last message is known to be in place at its target.
template <class P>
RankResult initiate_bandwidth(P& path, const LoopPlan& plan, Watch& watch) {
  const Tokens tokens = tokens_of(path, plan);
  Meter meter(plan);
  RankResult result;
  for (const std::uint64_t messages : bandwidth_rounds(plan)) {
    const path::Round round = bandwidth_round(path, plan, true, messages);
    path.start(round);
    meter.start();
    if (tokens.go) path.post_tokens();
    move_messages(path, plan, watch, round);
    if (tokens.last_sent) path.post_tokens();
    if (tokens.answer) turn(path, watch, plan.c.completion, [&] { return path.token_after_arrived(); });
    result = finish(path, meter);
  }
  return result;
}

/// The first round was started before the initiator was told to begin.
template <class P>
RankResult respond_bandwidth(P& path, const LoopPlan& plan, Watch& watch) {
  const Tokens tokens = tokens_of(path, plan);
  Meter meter(plan);
  meter.start();
  if (!tokens.answer) {
    serve_one_sided(path, watch, plan.c.completion);
    RankResult result = finish(path, meter);
    if constexpr (requires { path.lost(); }) {
      take_what_is_under_way(path, plan);
      result.messages_received = path.accepted();
      result.messages_lost = path.lost();
    }
    return result;
  }
  RankResult result;
  const std::vector<std::uint64_t> rounds = bandwidth_rounds(plan);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const path::Round round = bandwidth_round(path, plan, false, rounds[i]);
    if (tokens.go) turn(path, watch, plan.c.completion, [&] { return path.token_before_arrived(); });
    meter.start();
    move_messages(path, plan, watch, round);
    if (tokens.last_sent) turn(path, watch, plan.c.completion, [&] { return path.token_after_arrived(); });
    result = finish(path, meter);
    // The next round's receives must be posted before the initiator learns that it may go on.
    if (i + 1 < rounds.size()) path.start(bandwidth_round(path, plan, false, rounds[i + 1]));
    path.post_tokens();
  }
  // Answers leave in progress(); the control channel speaks once they have arrived.
  turn_until(path, watch, plan.c.completion, [] { return false; });
  return result;
}

}  // namespace gdrbench::measure
