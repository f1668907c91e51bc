#include "doctor/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "doctor/checks/checks.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::doctor {
namespace {

void replace_all(std::string& text, const std::string& placeholder, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos; at += value.size())
    text.replace(at, placeholder.size(), value);
}

}  // namespace

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

Finding find(const Check& check, std::string_view cause, std::string subject,
             std::vector<Evidence> evidence) {
  const auto found = std::find_if(check.causes.begin(), check.causes.end(),
                                  [cause](const Cause& one) { return one.id == cause; });
  if (found == check.causes.end())
    throw std::logic_error(fmt::format("check {} has no cause '{}'", check.name, cause));
  Finding finding;
  finding.check = check.name;
  finding.cause = found->verdict == Verdict::ok ? "" : found->id;
  finding.verdict = found->verdict;
  finding.text = found->text;
  finding.fix = found->fix;
  replace_all(finding.fix, "{}", subject);
  finding.risk = found->risk;
  finding.subject = std::move(subject);
  finding.evidence = std::move(evidence);
  return finding;
}

Evidence evidence(const topology::Root& root, const std::string& path) {
  const topology::FileText file = root.read(path, 256);
  return {"/" + path, file.present() ? file.text : std::string(to_string(file.state))};
}

Evidence presence(const topology::Root& root, const std::string& path) {
  return {"/" + path, std::string(to_string(root.state(path)))};
}

Evidence probe_evidence(const ProbeResult& probe) {
  // The check that an error names runs beside this one.
  const std::string error = probe.text.substr(0, probe.text.find("; confirm with: "));
  return {probe.what + (probe.device.empty() ? "" : " on " + probe.device),
          error.empty() ? probe.outcome : probe.outcome + ": " + error};
}

Finding named(Finding finding, const std::string& place, const std::string& name) {
  for (std::string* const text : {&finding.text, &finding.fix}) replace_all(*text, place, name);
  return finding;
}

std::vector<const Check*> select_checks(const std::vector<std::string>& names) {
  const auto all = checks();
  std::vector<std::string_view> known;
  for (const Check* check : all) known.push_back(check->name);
  for (const std::string& name : names) {
    if (name == ends_check.name)
      throw UsageError(fmt::format("--check '{}': runs by itself when a HOST is given", name));
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError(
          fmt::format("--check '{}': no such check; available: {}", name, fmt::join(known, ", ")));
  }
  std::vector<const Check*> chosen;
  for (const Check* check : all)
    if (names.empty() || std::find(names.begin(), names.end(), check->name) != names.end())
      chosen.push_back(check);
  return chosen;
}

}  // namespace gdrbench::doctor
