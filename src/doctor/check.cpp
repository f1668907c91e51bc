#include "doctor/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace gdrbench::doctor {
namespace {

std::string with_subject(std::string_view fix, const std::string& subject) {
  std::string text(fix);
  for (std::size_t at = 0; (at = text.find("{}", at)) != std::string::npos; at += subject.size())
    text.replace(at, 2, subject);
  return text;
}

}  // namespace

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
  finding.fix = with_subject(found->fix, subject);
  finding.risk = found->risk;
  finding.subject = std::move(subject);
  finding.evidence = std::move(evidence);
  return finding;
}

}  // namespace gdrbench::doctor
