#include "doctor/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gdrbench::doctor {
namespace {

std::string qualified_name(const Finding& finding) {
  return finding.check + "/" + finding.cause;
}

Layer layer_of(const Finding& finding) {
  for (const Check* check : checks())
    if (check->name == finding.check) return check->layer;
  return Layer::performance;
}

// What is wrong with these keeps GPU memory from a NIC, and host memory not.
bool is_of_gpus(const Finding& finding) {
  constexpr std::array of_gpus = {"bar1", "bar_placement", "dmabuf", "driver", "gpu", "peermem"};
  return finding.subject.find("GPU") != std::string::npos || finding.subject == "CUDA" ||
         std::find(of_gpus.begin(), of_gpus.end(), finding.check) != of_gpus.end();
}

// Whether `cause` can be why a probe failed. Subjects of probes: "gdr", "mlx5_0 and GPU 0000:bb:00.0".
bool may_explain(const Finding& cause, const Finding& probe) {
  if (probe.subject == "tcp") return false;
  if (probe.subject == "gdr") return true;
  const bool with_gpu = probe.subject.find("GPU") != std::string::npos;
  if (!with_gpu && is_of_gpus(cause)) return false;
  if (cause.subject.empty() || probe.subject == "rdma") return true;
  // By a device or address that both name: "GPU 0000:1b:00.0 with mlx5_0, …", "mlx5_0 port 1".
  std::string word;
  for (const char c : cause.subject + " ") {
    if (c != ' ' && c != ',') {
      word += c;
      continue;
    }
    const bool names_something = word.find_first_of("0123456789") != std::string::npos && word.size() > 3;
    if (names_something && probe.subject.find(word) != std::string::npos) return true;
    word.clear();
  }
  return false;
}

std::vector<Finding> run_one(const Check& check, const Facts& facts) {
  try {
    return check.run(check, facts);
  } catch (const std::exception& fault) {
    Finding finding;
    finding.check = check.name;
    finding.cause = "not_done";
    finding.verdict = Verdict::unknown;
    finding.text = fmt::format("The check itself failed: {}.", fault.what());
    finding.fix = "report this, with the folder that gdrbench doctor --record FOLDER makes";
    return {finding};
  }
}

bool has_gpu(const Facts& facts) {
  return !facts.machine.gpus.empty() || !facts.answers.gpus.empty();
}

bool has_rdma(const Facts& facts) {
  return !facts.answers.rdma.empty() || !facts.root.list("sys/class/infiniband").empty();
}

bool passed_gdr_on_gpus(const Answers& answers) {
  bool found = false;
  for (const ProbeResult& probe : answers.probes) {
    if (!probe.what.starts_with("transfer gdr ")) continue;
    if (probe.outcome != "passed" || probe.gpu.empty()) return false;
    found = true;
  }
  return found;
}

bool was_gdr_tried(const Answers& answers) {
  return std::any_of(answers.probes.begin(), answers.probes.end(), [](const ProbeResult& probe) {
    return probe.what.starts_with("transfer gdr ") && probe.outcome != "not run";
  });
}

std::size_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(
      findings.begin(), findings.end(), [verdict](const Finding& one) { return one.verdict == verdict; }));
}

}  // namespace

void explain_probes(std::vector<Finding>& findings, const std::vector<Finding>& causes) {
  for (Finding& probe : findings) {
    if (probe.verdict != Verdict::fail || layer_of(probe) != Layer::probe) continue;
    for (const Verdict verdict : {Verdict::fail, Verdict::warn}) {
      const auto cause = std::find_if(causes.begin(), causes.end(), [&](const Finding& one) {
        return one.verdict == verdict && layer_of(one) < Layer::performance && may_explain(one, probe);
      });
      if (cause == causes.end()) continue;
      probe.explained_by = qualified_name(*cause);
      break;
    }
  }
}

std::vector<Finding> run_checks(const Facts& facts, std::span<const Check* const> checks) {
  std::vector<Finding> findings;
  for (const Check* check : checks) {
    std::vector<Finding> found = run_one(*check, facts);
    std::move(found.begin(), found.end(), std::back_inserter(findings));
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    // What needs no action stands after all that does.
    const bool is_harmless_a = a.verdict <= Verdict::info, is_harmless_b = b.verdict <= Verdict::info;
    const Layer layer_a = layer_of(a), layer_b = layer_of(b);
    if (is_harmless_a != is_harmless_b) return is_harmless_b;
    return layer_a != layer_b ? layer_a < layer_b : a.verdict > b.verdict;
  });
  explain_probes(findings, std::vector<Finding>(findings));
  return findings;
}

std::vector<std::string> not_applicable(std::span<const Check* const> checks,
                                        const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Check* check : checks)
    if (std::none_of(findings.begin(), findings.end(),
                     [check](const Finding& one) { return one.check == check->name; }))
      names.emplace_back(check->name);
  return names;
}

std::string summarise(const Facts& facts, const std::vector<Finding>& findings) {
  if (!has_gpu(facts) && !has_rdma(facts))
    return "gdr: not possible here: no NVIDIA GPU and no RDMA device were found";
  const auto fails = [](const Finding& one) {
    return one.verdict == Verdict::fail && one.explained_by.empty() && one.subject != "tcp";
  };
  const auto root = std::find_if(findings.begin(), findings.end(), fails);
  const std::string cause = root == findings.end()
                                ? ""
                                : fmt::format("{}{}{}: {}", root->check, root->subject.empty() ? "" : ", ",
                                              root->subject, root->text);
  const bool works = passed_gdr_on_gpus(facts.answers);
  if (works && !cause.empty()) return "gdr: works for 4 KiB; other transfers may fail because of " + cause;
  // One device's fault need not be that of the others.
  const bool is_certain = was_gdr_tried(facts.answers) || cause.empty() || root->subject.empty() ||
                          facts.root.list("sys/class/infiniband").size() < 2;
  if (!cause.empty())
    return fmt::format("gdr: {} because of {}", is_certain ? "missing" : "may be missing", cause);
  if (!has_gpu(facts)) return "gdr: not possible here: no NVIDIA GPU was found";
  if (!has_rdma(facts)) return "gdr: not possible here: no RDMA device was found";
  const std::size_t warnings = count_of(findings, Verdict::warn),
                    unknowns = count_of(findings, Verdict::unknown);
  std::string text = works ? "gdr: works" : "gdr: no obstacle was found";
  if (!was_gdr_tried(facts.answers)) text += "; it was not tried";
  if (warnings > 0) text += fmt::format("; {} could make it slow or fragile", warnings);
  if (unknowns > 0) text += fmt::format("; {} could not be seen", unknowns);
  return text;
}

Verdict worst(const std::vector<Finding>& findings) {
  Verdict found = Verdict::ok;
  for (const Finding& finding : findings) found = std::max(found, finding.verdict);
  return found;
}

}  // namespace gdrbench::doctor
