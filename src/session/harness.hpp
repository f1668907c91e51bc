#pragma once

#include <functional>
#include <memory>

#include "gdrbench/end_info.hpp"
#include "measure/runner.hpp"

namespace gdrbench::session {

/// What a session needs of the measuring side; tests bring their own.
struct Harness {
  std::function<std::unique_ptr<measure::Runner>(const Case&, measure::Role, measure::Payload&)> make_runner;
  std::function<std::uint64_t(const Case&)> payload_bytes;
  std::function<std::uint64_t(const Case&)> bounce_bytes;
  std::function<EndInfo()> describe_end;
};

}  // namespace gdrbench::session
