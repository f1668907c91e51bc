#include "report/comparison.hpp"

#include <algorithm>
#include <iterator>

namespace gdrbench::report {
namespace {

bool beats(Metric metric, const measure::RatioEstimate& ratio) {
  const auto [low, high] = ratio.interval.value_or(
      measure::RatioEstimate::Interval{.low = ratio.estimate, .high = ratio.estimate});
  return spec(metric).larger_is_better ? low > 1 : high < 1;
}

const Ratio* find_ratio(const PointComparison& point, const PathPair& pair) {
  for (const Ratio& ratio : point.ratios)
    if (ratio.pair == pair) return &ratio;
  return nullptr;
}

Case without_size(Case c) {
  c.size_bytes = 0;
  return c;
}

// All points of one metric that differ by nothing but the size.
struct Series {
  Case series;
  Metric metric;
  std::vector<const PointComparison*> ascending;
};

std::vector<Series> series_of(const std::vector<PointComparison>& points) {
  std::vector<Series> all;
  for (const PointComparison& point : points) {
    const Case series = without_size(point.point);
    auto found = std::find_if(all.begin(), all.end(), [&](const Series& known) {
      return known.series == series && known.metric == point.metric;
    });
    if (found == all.end()) found = all.insert(all.end(), {series, point.metric, {}});
    found->ascending.push_back(&point);
  }
  for (Series& series : all)
    std::sort(series.ascending.begin(), series.ascending.end(),
              [](const auto* a, const auto* b) { return a->point.size_bytes < b->point.size_bytes; });
  return all;
}

std::vector<Crossover> crossovers(const std::vector<PointComparison>& points) {
  std::vector<Crossover> result;
  for (const Series& series : series_of(points)) {
    for (const PathPair& pair : compared_pairs()) {
      Crossover crossover{series.series, series.metric, pair, 0, std::nullopt};
      for (const PointComparison* point : series.ascending) {
        const Ratio* ratio = find_ratio(*point, pair);
        if (ratio == nullptr) continue;
        ++crossover.sizes;
        if (!beats(series.metric, ratio->value))
          crossover.from_bytes.reset();
        else if (!crossover.from_bytes)
          crossover.from_bytes = point->point.size_bytes;
      }
      if (crossover.sizes > 0) result.push_back(crossover);
    }
  }
  return result;
}

}  // namespace

Case as_seen_by(Case c, Path path) {
  c.path = path;
  if (is_baseline(path)) c.memory = MemoryKind::host;
  // The chunk size of `auto` follows the message size, which is no other series.
  c.staging = {.variant = is_staged(path) ? c.staging.variant : StagingOptions{}.variant};
  c.verbs = {};
  c.gpu = 0;
  return c;
}

std::vector<PathPair> compared_pairs() {
  std::vector<PathPair> pairs;
  for (auto path = std::rbegin(all_paths); path != std::rend(all_paths); ++path)
    for (const Path reference : path->compared_with) pairs.push_back({path->path, reference});
  return pairs;
}

Points::Points(const ResultDocument& document) {
  const auto add = [&](bool staged) {
    for (const CaseResult& result : document.cases) {
      const Case& c = result.test_case;
      if (is_staged(c.path) != staged || result.repetitions.empty() || !at(c, c.path).empty()) continue;
      measured_.push_back({as_seen_by(c, c.path), figures(result)});
      const bool known = std::any_of(points_.begin(), points_.end(), [&](const Case& point) {
        return as_seen_by(point, c.path) == as_seen_by(c, c.path);
      });
      if (!known) points_.push_back(c);
    }
  };
  // Staged cases say more about a point (its staging) than direct ones, which then find it known.
  add(true);
  add(false);
  std::stable_sort(points_.begin(), points_.end(),
                   [](const Case& a, const Case& b) { return a.suite < b.suite; });
}

std::span<const Figures> Points::at(const Case& point, Path path) const {
  const Case wanted = as_seen_by(point, path);
  for (const Measured& measured : measured_)
    if (measured.test_case == wanted) return measured.repetitions;
  return {};
}

bool Points::ran(Path path) const {
  return std::any_of(measured_.begin(), measured_.end(),
                     [&](const Measured& measured) { return measured.test_case.path == path; });
}

Comparison compare(const Points& points) {
  Comparison result;
  for (const Case& point : points.all()) {
    for (const Metric metric : spec(point.suite).metrics) {
      PointComparison compared{point, metric, {}};
      for (const PathPair& pair : compared_pairs()) {
        const auto ratio =
            measure::paired_ratio(values_of(points.at(point, pair.path), figure_of(metric)),
                                  values_of(points.at(point, pair.reference), figure_of(metric)));
        if (ratio) compared.ratios.push_back({pair, *ratio});
      }
      if (!compared.ratios.empty()) result.points.push_back(std::move(compared));
    }
  }
  result.crossovers = crossovers(result.points);
  return result;
}

}  // namespace gdrbench::report
