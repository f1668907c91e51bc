#include "report/doctor_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error_text.hpp"
#include "report/text_table.hpp"

namespace gdrbench::report {
namespace {

using doctor::EndReport;
using doctor::Finding;
using doctor::Verdict;

constexpr std::size_t margin = 9;  // of the column of verdicts
constexpr std::size_t max_value_chars = 320;
constexpr std::size_t max_evidence = 4;

const char* colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "32";
    case Verdict::info:
      return "36";
    case Verdict::unknown:
      return "35";
    case Verdict::warn:
      return "33";
    case Verdict::fail:
      break;
  }
  return "31;1";
}

std::string coloured(const std::string& text, Verdict verdict, const DoctorTextOptions& options) {
  return options.colours ? fmt::format("\033[{}m{}\033[0m", colour_of(verdict), text) : text;
}

std::string upper(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return shown;
}

std::string paragraph(const std::string& label, const std::string& text, const DoctorTextOptions& options) {
  const std::string lead = fmt::format("{:{}}{:<6}", "", margin, label);
  return wrap(lead, words(printable(text)), {.separator = " ", .indent = margin + 6, .width = options.width});
}

// One command or remark a line, so that a command can be copied as a whole.
std::string fix_lines(const std::string& fix, const DoctorTextOptions& options) {
  constexpr std::string_view separator = "; ";
  std::string text, label = "fix";
  for (std::size_t begin = 0; begin <= fix.size();) {
    const std::size_t end = std::min(fix.find(separator, begin), fix.size());
    text += paragraph(label, fix.substr(begin, end - begin), options);
    label.clear();
    begin = end + separator.size();
  }
  return text;
}

std::string sentence(const std::string& text, const DoctorTextOptions& options) {
  return wrap(std::string(margin, ' '), words(printable(text)),
              {.separator = " ", .indent = margin, .width = options.width});
}

// A fault that several things have alike: all but subjects and evidence is the same.
struct Block {
  Finding finding;  // the first of them
  std::vector<std::string> subjects;
  std::vector<std::vector<doctor::Evidence>> evidence;  // of each
};

bool are_alike(const Finding& a, const Finding& b) {
  const auto told = [](const Finding& one) {
    return std::tie(one.check, one.cause, one.verdict, one.text, one.fix, one.risk, one.explained_by);
  };
  return told(a) == told(b);
}

std::vector<Block> blocks_of(const std::vector<Finding>& findings) {
  std::vector<Block> blocks;
  for (const Finding& finding : findings) {
    auto block = std::find_if(blocks.begin(), blocks.end(),
                              [&](const Block& one) { return are_alike(one.finding, finding); });
    if (block == blocks.end())
      block = blocks.insert(block, {.finding = finding, .subjects = {}, .evidence = {}});
    if (!finding.subject.empty()) block->subjects.push_back(finding.subject);
    block->evidence.push_back(finding.evidence);
  }
  return blocks;
}

// The first of each subject, then the second of each, so that a few lines tell something of many; what
// several have in common once.
std::vector<doctor::Evidence> evidence_of(const Block& block) {
  std::vector<doctor::Evidence> all;
  std::set<std::pair<std::string, std::string>> known;
  std::size_t rows = 0;
  for (const auto& one : block.evidence) rows = std::max(rows, one.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (const auto& one : block.evidence)
      if (i < one.size() && known.emplace(one[i].source, one[i].value).second) all.push_back(one[i]);
  return all;
}

// In one line; what is too long ends after a word.
std::string value_text(std::string value, const DoctorTextOptions& options) {
  for (std::size_t at = 0; (at = value.find('\n', at)) != std::string::npos; at += 3)
    value.replace(at, 1, " / ");
  std::string whole = printable(value);
  if (options.verbose || whole.size() <= max_value_chars) return whole;
  const std::string cut = printable(value, max_value_chars);
  const std::size_t space = cut.rfind(' ');
  return space == std::string::npos ? cut : cut.substr(0, space) + " …";
}

std::string evidence_text(const Block& block, const DoctorTextOptions& options) {
  std::string text;
  const std::vector<doctor::Evidence> evidence = evidence_of(block);
  const std::size_t shown = options.verbose ? evidence.size() : std::min(evidence.size(), max_evidence);
  for (std::size_t i = 0; i < shown; ++i)
    text += paragraph(
        "seen", fmt::format("{}: {}", evidence[i].source, value_text(evidence[i].value, options)), options);
  if (const std::size_t more = evidence.size() - shown; more > 0)
    text += paragraph("", fmt::format("and {} more; --verbose shows them", more), options);
  return text;
}

// "FAIL     bar1 · 0000:1b:00.0, 0000:bb:00.0"
std::string title_text(const Block& block, const DoctorTextOptions& options) {
  const Finding& finding = block.finding;
  std::vector<std::string> pieces;
  for (const std::string& subject : block.subjects) {
    const std::string shown = printable(subject) + (&subject == &block.subjects.back() ? "" : ",");
    if (margin + display_width(shown) <= options.width)
      pieces.push_back(shown);
    else  // a line would not hold it
      for (std::string& word : words(shown)) pieces.push_back(std::move(word));
  }
  const std::string lead = fmt::format("{:<{}}{}{}", upper(to_string(finding.verdict)), margin, finding.check,
                                       pieces.empty() ? "" : " · ");
  const std::string text = wrap(lead, pieces, {.separator = " ", .indent = margin, .width = options.width});
  // Colours have no width, so they come after the wrapping.
  return coloured(text.substr(0, margin), finding.verdict, options) + text.substr(margin);
}

std::string block_text(const Block& block, const DoctorTextOptions& options) {
  const Finding& finding = block.finding;
  std::string text = "\n" + title_text(block, options);
  if (!finding.explained_by.empty())
    text += sentence(fmt::format("Follows from {}.", finding.explained_by), options);
  text += sentence(finding.text, options);
  text += evidence_text(block, options);
  // The fix of what it follows from comes first.
  if (!finding.explained_by.empty()) return text;
  if (!finding.fix.empty()) text += fix_lines(finding.fix, options);
  if (!finding.risk.empty()) text += paragraph("risk", finding.risk, options);
  return text;
}

// "2 fail, 1 warn, 12 ok", the worst first.
std::string count_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Verdict verdict : {Verdict::fail, Verdict::warn, Verdict::unknown, Verdict::info, Verdict::ok}) {
    const auto count = std::count_if(findings.begin(), findings.end(),
                                     [&](const Finding& f) { return f.verdict == verdict; });
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(verdict));
  }
  return text.empty() ? "no findings" : text;
}

// "acs", or "probe_transfer (tcp)" where the check has more to say of something else.
std::string name_when_fine(const Finding& fine, const std::vector<Finding>& findings) {
  const bool is_all = std::all_of(findings.begin(), findings.end(), [&](const Finding& one) {
    return one.check != fine.check || one.verdict == Verdict::ok;
  });
  return is_all || fine.subject.empty() ? fine.check
                                        : fmt::format("{} ({})", fine.check, printable(fine.subject));
}

std::string name_line(const std::string& word, const std::vector<std::string>& names,
                      const DoctorTextOptions& options) {
  return wrap(fmt::format("{:<{}}", word, margin), names,
              {.separator = " ", .indent = margin, .width = options.width});
}

// The checks that found nothing but good, in a line.
std::string fine_text(const std::vector<Finding>& findings, const DoctorTextOptions& options) {
  std::vector<std::string> names;
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::ok) continue;
    const std::string name = name_when_fine(finding, findings);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "";
  const std::string text = name_line("OK", names, options);
  return "\n" + coloured(text.substr(0, margin), Verdict::ok, options) + text.substr(margin);
}

std::string findings_text(const std::vector<Finding>& findings, const DoctorTextOptions& options) {
  std::string text;
  for (const Block& block : blocks_of(findings))
    if (options.verbose || block.finding.verdict != Verdict::ok) text += block_text(block, options);
  return options.verbose ? text : text + fine_text(findings, options);
}

std::string end_text(const EndReport& end, const DoctorTextOptions& options) {
  std::string text =
      fmt::format("{} ({}): {}\n", printable(end.host), printable(end.source), count_text(end.findings));
  text += wrap("", words(printable(end.summary)), {.separator = " ", .indent = 2, .width = options.width});
  text += findings_text(end.findings, options);
  if (!end.not_applicable.empty()) text += "\n" + name_line("N/A", end.not_applicable, options);
  return text;
}

}  // namespace

std::string doctor_text(const doctor::Report& report, const DoctorTextOptions& options) {
  std::string text;
  for (const EndReport& end : report.ends) text += (text.empty() ? "" : "\n") + end_text(end, options);
  if (report.ends.size() > 1)
    text += fmt::format("\nBetween both ends: {}\n", count_text(report.between)) +
            findings_text(report.between, options);
  return text;
}

}  // namespace gdrbench::report
