#pragma once

#include <vector>

#include "benchmarks/discovery.hpp"
#include "benchmarks/measurement.hpp"
#include "benchmarks/options.hpp"

namespace gdrbench::benchmarks {

/// Why no GPU can work beside a transfer over the path, empty when one can. Such cases are not planned.
std::string no_load_reason(Path path, MemoryKind memory);

/// The cases of a point differ in the path alone, where the suite has loads in the load too.
using CasePoint = std::vector<Case>;
/// Every point to measure over the paths that can run, in the order of the table: suite, op, size, direction.
std::vector<CasePoint> plan_cases(const MeasureOptions& options, const Discovery& discovery);

/// The same case with the fields of the other end, as the responder needs it.
Case responder_case(const Case& c, const MeasureOptions& options, const Discovery& discovery);

/// What was discovered for a pair of a NIC and a GPU at each end, and the session that its cases run in.
struct PlacedPair {
  Session* session = nullptr;
  Discovery discovery;
};
/// The points of plan_cases() over one pair; over several, each case on every pair alone, and then on all of
/// them at once.
std::vector<Point> plan_points(const MeasureOptions& options, const std::vector<PlacedPair>& pairs);

}  // namespace gdrbench::benchmarks
