#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "doctor/check.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::doctor {

/// What was found of one machine.
struct EndReport {
  std::string host;
  std::string source;  ///< "this machine", "responder node-b:7471", "snapshot FOLDER"
  std::string summary;
  std::vector<Finding> findings;  ///< root causes first
  std::vector<ProbeResult> probes;
  std::vector<std::string> not_applicable;  ///< names of checks that found nothing to look at
};

struct Report {
  std::string command;  ///< the command line
  std::vector<EndReport> ends;
  std::vector<Finding> between;  ///< what the two ends have wrong together
  bool strict = false;           ///< warnings count as failures
};

/// done (0) where nothing failed, failed (1) where something did.
ExitStatus exit_status(const Report& report);

/// Findings of a report by verdict, {"ok": 3, …}.
nlohmann::json counts(const std::vector<Finding>& findings);

/// docs/doctor.schema.json checks it.
nlohmann::json to_json(const Report& report);

/// Checks with their questions, sources and causes, in Markdown; all of them are docs/troubleshooting.md.
std::string explain_checks(std::span<const Check* const> chosen);

}  // namespace gdrbench::doctor
