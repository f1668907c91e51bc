#include "doctor/report.hpp"

#include <fmt/format.h>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/diagnosis.hpp"
#include "gdrbench/version.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;

constexpr int schema_version = 1;

json findings_json(const std::vector<Finding>& findings) {
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
          {"findings", findings_json(end.findings)},
          {"probes", to_json(only_probes)["probes"]},
          {"not_applicable", end.not_applicable}};
}

constexpr const char* troubleshooting_head = R"(# Troubleshooting

What `gdrbench doctor` looks at, what it can find, and what to do. This page is the output of
`gdrbench doctor --explain`: change the texts in `src/doctor/checks`, not here.

Verdicts: **fail** – GPUDirect RDMA or RDMA cannot work because of this; **warn** – it works, but slowly, at a
risk, or in one of two ways only; **info** – worth knowing; **unknown** – it could not be seen; **ok**. Checks come
in the order of the layers that they look at: what lies deeper explains what fails above it.
In a fix, `{}` stands for the device or port that the finding names, and `<netdev>` and the like for what only you
know. The word after a verdict is the finding's `cause` in `--json`. Scripts are in gdrbench's source folder.
)";

constexpr const char* symptom_table = R"(
## By symptom

| what you see | begin with |
|---|---|
| registering GPU memory fails with EFAULT | registration, peermem, dmabuf, bar1 |
| completion status 4 with vendor error 0x51, hangs, zeros | acs, iommu, virtual_machine, bar_placement |
| registering fails with ENOMEM | memlock, rdma_cgroup; does another program hold many memory regions? |
| status 12 (RETRY_EXC) | gids, ports, ends, counters; is UDP port 4791 open? |
| ETIMEDOUT in the transition of a queue pair to RTR | gids, arp |
| RDMA CM rejects or does not resolve, or packets arrive at the wrong port, on nodes with several ports | arp |
| no RDMA device, or not in a container | rdma_devices, netns |
| gdr works and is slow | distance, acs, relaxed_ordering, pcie_link, mtu, counters |

`gdrbench doctor --check NAME[,NAME]` runs these checks only, `--explain --check NAME` prints their part of this page.
)";

const char* title_of(Layer layer) {
  switch (layer) {
    case Layer::platform:
      return "Platform: CPUs, PCI buses, firmware";
    case Layer::kernel:
      return "Kernel";
    case Layer::driver:
      return "Drivers and their modules";
    case Layer::device:
      return "Devices";
    case Layer::port:
      return "Ports and networks";
    case Layer::process:
      return "Limits of the process";
    case Layer::performance:
      return "Performance";
    case Layer::probe:
      break;
  }
  return "Probes: what was tried";
}

// A fence longer than any run of backticks in the text.
std::string code_span(std::string_view text) {
  std::size_t max_run = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    max_run = std::max(max_run, run);
  }
  const std::string fence(max_run + 1, '`');
  const char* const pad = max_run > 0 ? " " : "";
  return fence + pad + std::string(text) + pad + fence;
}

std::string describe(const Cause& cause) {
  std::string text = fmt::format("- **{}** `{}` – {}\n", to_string(cause.verdict), cause.id, cause.text);
  if (!cause.fix.empty()) text += fmt::format("  - fix: {}\n", code_span(cause.fix));
  if (!cause.risk.empty()) text += fmt::format("  - risk: {}\n", cause.risk);
  return text;
}

std::string describe(const Check& check) {
  std::string text =
      fmt::format("\n### {}\n\n{} Looks at: {}.\n\n", check.name, check.question, check.looks_at);
  for (const Cause& cause : check.causes) text += describe(cause);
  return text;
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
          {"between", findings_json(report.between)}};
}

std::string explain_checks(std::span<const Check* const> chosen) {
  const bool is_whole = chosen.size() == checks().size();
  std::string text = is_whole ? std::string(troubleshooting_head) + symptom_table : "";
  const Check* before = nullptr;
  for (const Check* check : chosen) {
    if (is_whole && (before == nullptr || before->layer != check->layer))
      text += fmt::format("\n## {}\n", title_of(check->layer));
    text += describe(*check);
    before = check;
  }
  return is_whole ? text + "\n## Between both ends\n" + describe(ends_check) : text;
}

}  // namespace gdrbench::doctor
