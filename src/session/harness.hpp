#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gdrbench/end_info.hpp"
#include "measure/runner.hpp"

namespace gdrbench::session {

/// Where a rank stands among those of its case.
struct RankNumber {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 2;
};

/// "initiator", "responder"; of more than two ranks "rank 2 (responder)".
inline std::string role_name(const Case& c, RankNumber number) {
  const auto& roles = spec(c.suite).roles;
  const std::string role(number.rank < roles.size() ? roles[number.rank] : roles.back());
  return number.ranks <= 2 ? role : "rank " + std::to_string(number.rank) + " (" + role + ")";
}

/// What a session needs of the measuring side; tests bring their own.
struct Harness {
  std::function<std::unique_ptr<measure::Runner>(const Case&, RankNumber, measure::Payload&)> make_runner;
  std::function<std::uint64_t(const Case&)> payload_bytes;
  std::function<std::uint64_t(const Case&)> bounce_bytes;
  std::function<EndInfo()> describe_end;
};

}  // namespace gdrbench::session
