#include "doctor/steps.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

json attempt(const std::function<json()>& step) {
  try {
    return {{"answer", step()}};
  } catch (const std::exception& fault) {
    return {{"failed", fault.what()}};
  }
}

StepResult result_of(const json& message) {
  if (!message.is_object()) return {.end = End::garbled, .answer = {}, .text = "what came back is no answer"};
  if (const auto answer = message.find("answer"); answer != message.end())
    return {.end = End::finished, .answer = *answer, .text = ""};
  const auto failed = message.find("failed");
  const bool is_told = failed != message.end() && failed->is_string();
  return {.end = End::failed, .answer = {}, .text = is_told ? failed->get<std::string>() : ""};
}

}  // namespace

std::vector<StepResult> run_steps(std::span<const std::function<json()>> steps,
                                  std::chrono::milliseconds patience) {
  std::vector<StepResult> results;
  while (results.size() < steps.size()) {
    const auto left = steps.subspan(results.size());
    const Isolated run = run_isolated(
        [&](const Reporter& report) {
          try {
            for (const auto& step : left) report.answer(attempt(step));
          } catch (const EndOfProcess& last) {
            report.answer({{"answer", last.answer}});
          }
        },
        patience);
    for (const json& message : run.answers)
      if (results.size() < steps.size()) results.push_back(result_of(message));
    const bool went_on = run.end == End::finished && !run.answers.empty();
    if (results.size() == steps.size() || went_on) continue;
    // A child that says it is done without any answer was not ours any more.
    const End end = run.end == End::finished ? End::garbled : run.end;
    results.push_back({.end = end, .answer = {}, .text = run.text});
  }
  return results;
}

}  // namespace gdrbench::doctor
