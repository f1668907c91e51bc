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
    "In a fix, `{}` stands for the device or port that the finding names.\n";

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

std::string explain_checks() {
  std::string text = head;
  const Check* before = nullptr;
  for (const Check* check : checks()) {
    if (before == nullptr || before->layer != check->layer)
      text += fmt::format("\n## {}\n", title_of(check->layer));
    text += describe(*check);
    before = check;
  }
  return text + "\n## Between both ends\n" + describe(ends_check);
}

}  // namespace gdrbench::doctor
