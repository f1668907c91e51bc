#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "measure/loops.hpp"
#include "measure/sight.hpp"

/// The visible suite: the loops of latency, where a message counts as arrived once it is seen in memory.
namespace gdrbench::measure {

/// A path whose arrivals are counted by a Sight. The path's own wheels turn as ever: completions are taken,
/// receives posted again, copies started.
template <class P>
class Seen {
 public:
  Seen(P& path, Sight& sight) : path_(path), sight_(sight) {}

  bool progress() {
    const bool moved = path_.progress();
    const std::uint64_t before = seen_;
    seen_ = sight_.seen();
    return moved || seen_ != before;
  }
  std::uint64_t accepted() const { return seen_; }

  bool try_post() { return path_.try_post(); }
  std::uint64_t posted() const { return path_.posted(); }
  std::uint64_t done() const { return path_.done(); }
  bool accepts_passively() const { return path_.accepts_passively(); }
  void wait(int extra_fd, int timeout_ms) { path_.wait(extra_fd, timeout_ms); }
  const std::string& failure() const { return path_.failure(); }
  std::optional<StageTimes> stages() const { return path_.stages(); }

 private:
  P& path_;
  Sight& sight_;
  std::uint64_t seen_ = 0;
};

/// What has been seen may not have been completed yet; the next run must not meet what is left of this one.
template <class P>
void take_late_arrivals(P& path, const LoopPlan& plan) {
  if (!path.counts_arrivals()) return;
  Watch quiet(-1, std::chrono::seconds(5));
  const std::uint64_t due = latency_round(plan).accepts;
  turn(path, quiet, plan.c.completion, [&] { return path.accepted() == due; });
}

template <class P>
RankResult run_visible(P& path, Sight& sight, const LoopPlan& plan, bool initiator, Watch& watch) {
  Seen<P> seen(path, sight);
  RankResult result = initiator ? initiate_latency(seen, plan, watch) : respond_latency(seen, plan, watch);
  take_late_arrivals(path, plan);
  return result;
}

}  // namespace gdrbench::measure
