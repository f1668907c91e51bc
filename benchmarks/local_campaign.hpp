#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/campaign.hpp"
#include "gdrbench/report.hpp"

namespace gdrbench::benchmarks {

/// What `iterations` of a local case took: one entry for each of its results.
struct LocalRun {
  double elapsed_s = 0;  ///< all of it; decides how many iterations are enough
  std::vector<LocalRepetition> repetitions;
};
using LocalMeasure = std::function<LocalRun(std::uint64_t iterations)>;

/// Something to be measured without a peer. `prepare` takes what it needs, which goes when the case is over;
/// it throws Unavailable with the reason when this machine lacks it.
struct LocalCase {
  std::string name;                  ///< in Google Benchmark's output: "registration/host/4 KiB"
  std::string skipped_as;            ///< in LocalSkipped: "cuda dmabuf"
  std::vector<LocalResult> results;  ///< still without repetitions
  std::function<LocalMeasure()> prepare;
};

/// Measures them by Google Benchmark, one after another, and adds results, what was skipped and the library's
/// own output to the document. Returns the failure that ended it early, if there was one.
std::exception_ptr run_local(const std::vector<LocalCase>& cases, const CampaignOptions& campaign,
                             ResultDocument& document);

}  // namespace gdrbench::benchmarks
