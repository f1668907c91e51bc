#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "doctor/isolated.hpp"

namespace gdrbench::doctor {

/// What came of one step; the answer is null unless it finished.
struct StepResult {
  End end = End::finished;
  nlohmann::json answer;
  std::string text;  ///< as of Isolated
};

/// Thrown by a step that has its answer, and after which the process is of no use to those that follow.
struct EndOfProcess {
  nlohmann::json answer;
};

/// Runs the steps one after another in one child process, as run_isolated does, and goes on in a new one
/// behind a step that took it down: one result a step. A step that throws has failed. `patience` is for each
/// of them.
std::vector<StepResult> run_steps(std::span<const std::function<nlohmann::json()>> steps,
                                  std::chrono::milliseconds patience);

}  // namespace gdrbench::doctor
