#include "doctor/report.hpp"

#include "doctor/diagnosis.hpp"
#include "gdrbench/version.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

constexpr int schema_version = 1;

json list(const std::vector<Finding>& findings) {
  json array = json::array();
  for (const Finding& finding : findings) array.push_back(to_json(finding));
  return array;
}

Verdict worst_of(const Report& report) {
  Verdict found = worst(report.between);
  for (const EndReport& end : report.ends) found = std::max(found, worst(end.findings));
  return found;
}

json to_json(const EndReport& end) {
  Answers only_probes;
  only_probes.probes = end.probes;
  return {{"host", end.host},
          {"source", end.source},
          {"summary", end.summary},
          {"counts", counts(end.findings)},
          {"findings", list(end.findings)},
          {"probes", to_json(only_probes)["probes"]},
          {"not_applicable", end.not_applicable}};
}

}  // namespace

ExitStatus exit_status(const Report& report) {
  const Verdict least = report.strict ? Verdict::warn : Verdict::fail;
  return worst_of(report) >= least ? ExitStatus::failed : ExitStatus::done;
}

json counts(const std::vector<Finding>& findings) {
  json by_verdict;
  for (const Verdict verdict : {Verdict::ok, Verdict::info, Verdict::unknown, Verdict::warn, Verdict::fail})
    by_verdict[std::string(to_string(verdict))] = 0;
  for (const Finding& finding : findings) {
    json& count = by_verdict[std::string(to_string(finding.verdict))];
    count = count.get<int>() + 1;
  }
  return by_verdict;
}

json to_json(const Report& report) {
  json ends = json::array();
  for (const EndReport& end : report.ends) ends.push_back(to_json(end));
  return {{"schema", schema_version},
          {"version", version},
          {"commit", commit},
          {"command", report.command},
          {"verdict", to_string(worst_of(report))},
          {"exit_status", static_cast<int>(exit_status(report))},
          {"ends", ends},
          {"between", list(report.between)}};
}

}  // namespace gdrbench::doctor
