#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gdrbench/report.hpp"
#include "measure/summary.hpp"
#include "report/figures.hpp"

namespace gdrbench::report {

struct PathPair {
  Path path;
  Path reference;
};
inline constexpr std::array<PathPair, 6> compared_pairs = {{{Path::gdr, Path::rdma},
                                                            {Path::gdr, Path::tcp},
                                                            {Path::rdma, Path::tcp},
                                                            {Path::peer, Path::gdr},
                                                            {Path::peer, Path::rdma},
                                                            {Path::peer, Path::tcp}}};

/// A figure that paths are compared by.
struct ComparedMetric {
  std::string_view name;     ///< in the result file
  std::string_view heading;  ///< in tables
  Suite suite;
  bool larger_is_better;
  std::optional<double> (*value)(const Figures&);
};
std::vector<ComparedMetric> compared_metrics(Suite suite);

/// The case without what differs between the paths of one comparison: path, device settings, GPU, and staging
/// where nothing is staged; baselines are taken as if their payload were where the others have it.
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
  ComparedMetric metric;
  std::vector<Ratio> ratios;
};
/// The smallest measured size from which on, at all larger ones too, `pair.path` beats `pair.reference`: the
/// whole interval of the ratio lies on the better side of 1, or the estimate where there is no interval.
struct Crossover {
  Case series;  ///< its size means nothing
  ComparedMetric metric;
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
