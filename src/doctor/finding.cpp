#include "doctor/finding.hpp"

namespace gdrbench::doctor {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::info:
      return "info";
    case Verdict::unknown:
      return "unknown";
    case Verdict::warn:
      return "warn";
    case Verdict::fail:
      break;
  }
  return "fail";
}

nlohmann::json to_json(const Finding& finding) {
  nlohmann::json evidence = nlohmann::json::array();
  for (const Evidence& one : finding.evidence)
    evidence.push_back({{"source", one.source}, {"value", one.value}});
  return {{"check", finding.check},
          {"cause", finding.cause},
          {"subject", finding.subject},
          {"verdict", to_string(finding.verdict)},
          {"evidence", evidence},
          {"text", finding.text},
          {"fix", finding.fix},
          {"risk", finding.risk},
          {"explained_by", finding.explained_by}};
}

}  // namespace gdrbench::doctor
