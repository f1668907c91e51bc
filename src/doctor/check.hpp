#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.hpp"
#include "doctor/finding.hpp"

namespace gdrbench::doctor {

/// One thing that a check can find. The texts are those that users see, in reports and in
/// docs/troubleshooting.md alike; `{}` in the fix stands for the subject's name.
struct Cause {
  std::string_view id;  ///< "not_loaded"; "ok" for the sentence when all is well
  Verdict verdict;
  std::string_view text;
  std::string_view fix = "";
  std::string_view risk = "";
};

/// From what lies deepest: of several failures the one that explains the others comes first in a report.
enum class Layer { platform, kernel, driver, device, port, process, performance, probe };

struct Check {
  std::string_view name;      ///< "peermem"
  std::string_view question;  ///< "Can the RDMA driver ask NVIDIA's driver for GPU memory?"
  std::string_view looks_at;  ///< the sources, for the documentation
  Layer layer;
  std::span<const Cause> causes;
  std::vector<Finding> (*run)(const Check& self, const Facts& facts);
};

/// The finding for a cause of the check; throws std::logic_error for an identifier that it lacks.
Finding find(const Check& check, std::string_view cause, std::string subject, std::vector<Evidence> evidence);

/// All checks, in the order of their layers.
std::span<const Check* const> checks();

}  // namespace gdrbench::doctor
