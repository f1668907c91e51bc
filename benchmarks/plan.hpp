#pragma once

#include <vector>

#include "benchmarks/discovery.hpp"
#include "benchmarks/options.hpp"

namespace gdrbench::benchmarks {

/// Cases that differ in the path alone, for overlap in the load too. Their repetitions are interleaved, so
/// that drift hits all paths alike.
using Point = std::vector<Case>;

/// Why no GPU can work beside a transfer over the path, empty when one can. Such cases are not planned.
std::string no_load_reason(Path path, MemoryKind memory);

/// Every point to measure over the paths that can run, in the order of the table: suite, op, size, direction.
std::vector<Point> plan_points(const MeasureOptions& options, const Discovery& discovery);

/// The same case with the fields of the other end, as the responder needs it.
Case responder_case(const Case& c, const MeasureOptions& options, const Discovery& discovery);

}  // namespace gdrbench::benchmarks
