#include "doctor/explain.hpp"

#include <fmt/format.h>

#include "doctor/check.hpp"
#include "doctor/ends.hpp"

namespace gdrbench::doctor {
namespace {

constexpr const char* head =
    "# Troubleshooting\n\n"
    "What `gdrbench doctor` looks at, what it can find, and what to do. This page is the output of\n"
    "`gdrbench doctor --explain`: change the texts in `src/doctor`, not here.\n\n"
    "Verdicts: **fail** – GPUDirect RDMA or RDMA cannot work because of this; **warn** – it works, but "
    "slowly, at "
    "a\nrisk, or in one of two ways only; **info** – worth knowing; **unknown** – it could not be seen; "
    "**ok**. "
    "Checks come\nin the order of the layers that they look at: what lies deeper explains what fails above "
    "it.\n"
    "In a fix, `{}` stands for the device or port that the finding names, and `<netdev>` and the like for "
    "what "
    "only you\nknow. The word after a verdict is the finding's `cause` in `--json`. Scripts are in "
    "gdrbench's "
    "source folder.\n";

constexpr const char* symptoms =
    "\n## By symptom\n\n"
    "| what you see | begin with |\n|---|---|\n"
    "| registering GPU memory fails with EFAULT | registration, peermem, dmabuf, bar1 |\n"
    "| completion status 4 with vendor error 0x51, hangs, zeros | acs, iommu, virtual_machine, bar_placement "
    "|\n"
    "| registering fails with ENOMEM | memlock, rdma_cgroup; does another program hold many memory regions? "
    "|\n"
    "| status 12 (RETRY_EXC) | gids, ports, ends, counters; is UDP port 4791 open? |\n"
    "| ETIMEDOUT when a queue pair goes to RTR | gids, arp |\n"
    "| RDMA CM rejects or does not resolve, or packets come to the wrong port, on nodes with several ports | "
    "arp |\n"
    "| no RDMA device, or not in a container | rdma_devices, netns |\n"
    "| gdr works and is slow | distance, acs, relaxed_ordering, pcie_link, mtu, counters |\n\n"
    "`gdrbench doctor --check NAME[,NAME]` makes some checks alone, `--explain --check NAME` prints their "
    "part "
    "of this page.\n";

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

// A fence longer than any run of back quotes in the text.
std::string code(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const char* const pad = longest > 0 ? " " : "";
  return fence + pad + std::string(text) + pad + fence;
}

std::string describe(const Cause& cause) {
  std::string text = fmt::format("- **{}** `{}` – {}\n", to_string(cause.verdict), cause.id, cause.text);
  if (!cause.fix.empty()) text += fmt::format("  - fix: {}\n", code(cause.fix));
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

std::string explain_checks(std::span<const Check* const> chosen) {
  const bool is_whole = chosen.size() == checks().size();
  std::string text = is_whole ? std::string(head) + symptoms : "";
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
