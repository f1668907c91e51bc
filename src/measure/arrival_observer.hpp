#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gdrbench/memory.hpp"
#include "gdrbench/path_proof.hpp"
#include "measure/loops.hpp"

/// Messages that count as arrived once something sees them in memory: the observers, and the loops of latency
/// over them.
namespace gdrbench::measure {

/// Sees messages arrive in the payload's memory, by their last byte, and turns that byte over for the next
/// one: a kernel in GPU memory, the calling thread in host memory. One message may be under way at a time.
class ArrivalObserver {
 public:
  virtual ~ArrivalObserver() = default;
  /// Watches for `messages` messages whose last byte, at `tail`, is `expected`; it is not there yet.
  virtual void open(std::byte* tail, std::byte expected, std::uint64_t messages) = 0;
  /// Messages seen since open(). Throws CudaError when nothing more can be seen.
  virtual std::uint64_t seen() = 0;
  /// No more looking. Throws CudaError.
  virtual void close() = 0;
  /// Who looks: part of a result's proof.
  virtual ObserverProof describe() const = 0;
};

/// The one for memory of this kind. Throws Unavailable, CudaError.
std::unique_ptr<ArrivalObserver> make_arrival_observer(MemoryKind memory, int gpu);

/// A path whose arrivals are counted by a ArrivalObserver. The path's own wheels turn as ever: completions
/// are taken, receives posted again, copies started.
template <class P>
class ObservedPath {
 public:
  ObservedPath(P& path, ArrivalObserver& observer) : path_(path), observer_(observer) {}

  bool progress() {
    const bool moved = path_.progress();
    const std::uint64_t before = seen_;
    seen_ = observer_.seen();
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
  ArrivalObserver& observer_;
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
RankResult run_observed(P& path, ArrivalObserver& observer, const LoopPlan& plan, bool initiator,
                        Watch& watch) {
  ObservedPath<P> seen(path, observer);
  RankResult result = initiator ? initiate_latency(seen, plan, watch) : respond_latency(seen, plan, watch);
  take_late_arrivals(path, plan);
  return result;
}

}  // namespace gdrbench::measure
