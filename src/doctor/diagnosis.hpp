#pragma once

#include <span>
#include <string>
#include <vector>

#include "doctor/check.hpp"

namespace gdrbench::doctor {

/// What they find, root causes first: by layer, then the worst; infos after all that needs an action. A
/// check that throws is reported as unknown. A failed probe that another finding explains is marked as
/// explained by it.
std::vector<Finding> run_checks(const Facts& facts, std::span<const Check* const> checks);

/// Marks the failed probes among `findings` that one of `causes` explains.
void explain_probes(std::vector<Finding>& findings, const std::vector<Finding>& causes);

/// Names of those checks that found nothing to look at.
std::vector<std::string> not_applicable(std::span<const Check* const> checks,
                                        const std::vector<Finding>& findings);

/// "gdr: missing because …": in a sentence, what the findings come to.
std::string summarise(const Facts& facts, const std::vector<Finding>& findings);

/// ok for none.
Verdict worst(const std::vector<Finding>& findings);

}  // namespace gdrbench::doctor
