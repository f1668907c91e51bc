#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/plan.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::benchmarks {

struct CampaignOptions {
  std::vector<std::string> benchmark_flags;  ///< --benchmark_*, passed through to Google Benchmark
  double time_budget_s = 60;                 ///< for all points together
  std::function<void(std::size_t done, std::size_t total, const std::string& now)>
      progress;  ///< may be empty
};

/// Measures all points by Google Benchmark and fills the document's cases, context and benchmarks. When it
/// ends early — interrupted, peer lost, budget used up, wrong data — what was measured until then is in the
/// document and the document says why; `failure` is then the error to end with, if there is one.
struct CampaignOutcome {
  std::exception_ptr failure;
};
CampaignOutcome run_campaign(Session& session, const std::vector<Point>& points,
                             const MeasureOptions& options, const Discovery& discovery,
                             const CampaignOptions& campaign, ResultDocument& document);

}  // namespace gdrbench::benchmarks
