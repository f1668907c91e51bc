#include "base/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/case_fields.hpp"
#include "base/end_fields.hpp"

namespace gdrbench {
namespace {

using nlohmann::json;

constexpr std::uint64_t max_bytes_in_flight = std::uint64_t{1} << 50;

// Others are divided by it: a denormal number would make them infinite.
void check_elapsed(double seconds, const char* name) {
  constexpr double clock_resolution_s = 1e-9;
  if (seconds != 0 && seconds < clock_resolution_s)
    throw UsageError(fmt::format("{}: {} is below the clock's resolution of 1 ns", name, seconds));
}

}  // namespace

json to_json(const Case& c) {
  return value_to_json<json>(c);
}

Case case_from_json(const json& j) {
  Case c = value_from_json<Case>(j, "case", {});
  constexpr std::array<std::uint32_t, 6> mtus{0, 256, 512, 1024, 2048, 4096};
  if (std::find(mtus.begin(), mtus.end(), c.verbs.path_mtu) == mtus.end())
    throw UsageError("case.verbs.path_mtu: not one of 0, 256, 512, 1024, 2048, 4096");
  if (c.size_bytes > max_bytes_in_flight / c.depth / c.queue_pairs)
    throw UsageError(fmt::format("case.size_bytes: {} messages of {} bytes in flight are more than {} bytes",
                                 std::uint64_t{c.depth} * c.queue_pairs, c.size_bytes, max_bytes_in_flight));
  return c;
}

json to_json(const RunRequest& request) {
  return value_to_json<json>(request);
}

RunRequest request_from_json(const json& j) {
  return value_from_json<RunRequest>(j, "run", {});
}

json to_json(const RankResult& result) {
  return value_to_json<json>(result);
}

RankResult rank_result_from_json(const json& j) {
  RankResult result = value_from_json<RankResult>(j, "result", {});
  check_elapsed(result.elapsed_s, "result.elapsed_s");
  check_elapsed(result.cpu.elapsed_s, "result.cpu.elapsed_s");
  return result;
}

json to_json(const EndInfo& end) {
  return value_to_json<json>(end);
}

EndInfo end_info_from_json(const json& j) {
  return value_from_json<EndInfo>(j, "end", {});
}

json to_json(const PathProof& proof) {
  return value_to_json<json>(proof);
}

PathProof path_proof_from_json(const json& j) {
  return value_from_json<PathProof>(j, "proof", {});
}

}  // namespace gdrbench
