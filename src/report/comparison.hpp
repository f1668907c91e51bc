#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gdrbench/report.hpp"
#include "measure/summary.hpp"
#include "report/figures.hpp"

namespace gdrbench::report {

struct PathPair {
  Path path;
  Path reference;
  bool operator==(const PathPair&) const = default;
};
/// Every path with each that it is compared with, most direct path first.
std::vector<PathPair> compared_pairs();

/// What a case of `path` at the point of `c` looks like, without what is each rank's own: device settings,
/// GPU, and staging where nothing is staged. Baselines have their payload in host memory.
Case as_seen_by(Case c, Path path);

/// The points at which paths were measured, and the figures of each path there. Pairs of NIC and GPU are
/// points of their own, alone and together.
class Points {
 public:
  explicit Points(const ResultDocument& document);

  /// One case for each point, latency before bandwidth, else in the order measured; its path means nothing.
  const std::vector<Case>& all() const { return points_; }
  /// The repetitions of the path at the point; empty when it did not run there.
  std::span<const Figures> at(const Case& point, Path path) const;
  bool ran(Path path) const;

 private:
  struct Measured {
    Case test_case;
    std::vector<Figures> repetitions;
  };
  std::vector<Measured> measured_;
  std::vector<Case> points_;
};

struct Ratio {
  PathPair pair;
  measure::RatioEstimate value;
};
struct PointComparison {
  Case point;
  Metric metric;
  std::vector<Ratio> ratios;
};
/// The smallest measured size from which on, at all larger ones too, `pair.path` beats `pair.reference`: the
/// whole interval of the ratio lies on the better side of 1, or the estimate where there is no interval.
struct Crossover {
  Case series;  ///< its size means nothing
  Metric metric;
  PathPair pair;
  std::size_t sizes = 0;  ///< at which both ran
  std::optional<std::uint64_t> from_bytes;
};
struct Comparison {
  std::vector<PointComparison> points;
  std::vector<Crossover> crossovers;
};
Comparison compare(const Points& points);

}  // namespace gdrbench::report
