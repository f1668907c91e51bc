#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "doctor/check.hpp"
#include "synthetic/machine.hpp"

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

/// Every byte of a file.
inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Facts facts_in(const std::filesystem::path& folder, Answers answers) {
  const topology::Root root(folder);
  return {.root = root, .machine = topology::read_machine(root), .answers = std::move(answers)};
}

/// The facts of a synthetic machine, which lies in a folder as long as this lives.
class SyntheticFacts {
 public:
  explicit SyntheticFacts(const synthetic::Machine& machine) {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() / fmt::format("gdrbench-facts-{}-{}", getpid(), count++);
    machine.write(folder_);
    facts_.root = topology::Root(folder_);
    facts_.machine = topology::read_machine(facts_.root);
    facts_.answers = machine.answers;
  }
  ~SyntheticFacts() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SyntheticFacts(const SyntheticFacts&) = delete;
  SyntheticFacts& operator=(const SyntheticFacts&) = delete;

  const Facts& operator*() const { return facts_; }
  const Facts* operator->() const { return &facts_; }
  Facts* operator->() { return &facts_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  Facts facts_;
};

/// "check/cause" of all findings that are not "ok".
inline std::set<std::string> findings_of(const Facts& facts) {
  std::set<std::string> findings;
  for (const Check* check : checks())
    for (const Finding& finding : check->run(*check, facts))
      if (finding.verdict != Verdict::ok) findings.insert(finding.check + "/" + finding.cause);
  return findings;
}

/// What one check finds, by its name.
inline std::vector<Finding> findings_of(const std::string& check, const Facts& facts) {
  const Check* const found = select_checks({check}).front();
  return found->run(*found, facts);
}

inline std::vector<Finding> findings_of(const std::string& check, const synthetic::Machine& machine) {
  return findings_of(check, *SyntheticFacts(machine));
}

}  // namespace gdrbench::doctor
