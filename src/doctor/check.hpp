#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts/facts.hpp"

namespace gdrbench::doctor {

/// In order of severity: the worst of a report gives its exit status.
enum class Verdict { ok, info, unknown, warn, fail };

/// "ok", "info", "unknown", "warn", "fail".
std::string_view to_string(Verdict verdict);

/// Where a check looked, and what it saw there.
struct Evidence {
  std::string source;  ///< "/sys/module/nvidia_peermem/version", "CUDA", "ibv_reg_dmabuf_mr(fd -1) on mlx5_0"
  std::string value;   ///< "absent", "1", "EBADF"
};

/// What a check has to say of one thing.
struct Finding {
  std::string check;    ///< "peermem"
  std::string cause;    ///< identifier within the check, "not_loaded"; empty for ok
  std::string subject;  ///< "GPU 0000:bb:00.0", "mlx5_0 port 1"; empty for the machine
  Verdict verdict = Verdict::ok;
  std::vector<Evidence> evidence;
  std::string text;  ///< the cause, or what is in order, in a sentence
  std::string fix;   ///< command or setting; empty where none is needed
  std::string risk;  ///< what the fix risks; empty where nothing
  /// The finding that this one follows from, "peermem/not_loaded", where it is a symptom of that.
  std::string explained_by{};
};

nlohmann::json to_json(const Finding& finding);

/// One thing that a check can find: what the evidence means, the fix, and what the fix risks. The texts are
/// those of reports and of docs/troubleshooting.md; `{}` in the fix stands for the subject's name.
struct Cause {
  std::string_view id;  ///< "not_loaded"; "ok" for the sentence when nothing is wrong
  Verdict verdict;
  std::string_view text;
  std::string_view fix = "";
  std::string_view risk = "";
};

/// From the bottom up: of several failures the one that explains the others comes first in a report.
enum class Layer { platform, kernel, driver, device, port, process, performance, probe };

/// A row of the doctor. What `run` may look at are facts alone, so that a recording gives the same findings;
/// what it reads has to be among the recorded files (record/record.cpp).
struct Check {
  std::string_view name;      ///< "peermem"
  std::string_view question;  ///< "Can GPU memory be registered as dma-buf?"
  std::string_view looks_at;  ///< the sources of its evidence, for the documentation
  Layer layer;
  std::span<const Cause> causes;
  std::vector<Finding> (*run)(const Check& self, const Facts& facts);
};

/// The finding for a cause of the check; throws std::logic_error for an identifier that it lacks.
Finding find(const Check& check, std::string_view cause, std::string subject, std::vector<Evidence> evidence);

/// All checks, in the order of their layers.
std::span<const Check* const> checks();

/// The checks of these names, in their own order; all of them for no names. Throws UsageError that lists the
/// names there are.
std::vector<const Check*> select_checks(const std::vector<std::string>& names);

/// A file of the root and its text, or why there is none.
Evidence evidence(const topology::Root& root, const std::string& path);

/// Whether a file, folder or device node is there.
Evidence presence(const topology::Root& root, const std::string& path);
/// What was probed, and how it ended.
Evidence probe_evidence(const ProbeResult& probe);

/// The finding with a name in place of the placeholder in its text and fix: "<netdev>".
Finding named(Finding finding, const std::string& place, const std::string& name);

}  // namespace gdrbench::doctor
