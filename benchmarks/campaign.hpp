#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/measurement.hpp"

namespace gdrbench::benchmarks {

struct CampaignOptions {
  std::vector<std::string> benchmark_flags;  ///< --benchmark_*; see LibraryFlags
  double time_budget_s = 60;                 ///< for all points together
  std::function<void(std::size_t done, std::size_t total, const std::string& now)>
      progress;  ///< may be empty
};

/// Measures all points, one after another, and adds results, what was skipped, and Google Benchmark's own
/// output to the document. The plan is made here: how many iterations a run of each measurement has follows
/// from a short calibration and the time budget; then come blocks, in each of which every measurement of the
/// point is run once, in random order. A run is one of Google Benchmark's, with fixed iterations and manual
/// time. When the campaign ends early — interrupted, remote lost, budget used up, wrong data — what was
/// measured until then is in the document and the document says why. Returns the error to end with, if there
/// is one. Throws UsageError for flags that make no campaign.
std::exception_ptr run_campaign(std::vector<Point> points, const CampaignOptions& campaign,
                                ResultDocument& document);

}  // namespace gdrbench::benchmarks
