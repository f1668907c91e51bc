#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "doctor/check.hpp"
#include "machines/machine.hpp"

namespace gdrbench::doctor {

/// A name in the folder for temporary files, free at first, and removed with all that a test puts there.
class TestFolder {
 public:
  explicit TestFolder(const std::string& name = "doctor")
      : path_(std::filesystem::temp_directory_path() / fmt::format("gdrbench-{}-{}", name, getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline Facts facts_in(const std::filesystem::path& folder, Answers answers) {
  const topology::Root root(folder);
  return {.root = root, .machine = topology::read_machine(root), .answers = std::move(answers)};
}

/// "check/cause" of all findings that are not "ok".
inline std::set<std::string> findings_of(const Facts& facts) {
  std::set<std::string> findings;
  for (const Check* check : checks())
    for (const Finding& finding : check->run(*check, facts))
      if (finding.verdict != Verdict::ok) findings.insert(finding.check + "/" + finding.cause);
  return findings;
}

}  // namespace gdrbench::doctor
