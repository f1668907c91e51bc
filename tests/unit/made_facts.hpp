#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "doctor/facts.hpp"
#include "machines/machine.hpp"

namespace gdrbench::doctor {

/// What the doctor knows of a made machine, which lies in a folder as long as this lives.
class MadeFacts {
 public:
  explicit MadeFacts(const machines::Machine& made) {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() / fmt::format("gdrbench-facts-{}-{}", getpid(), count++);
    made.write(folder_);
    facts_.root = topology::Root(folder_);
    facts_.machine = topology::read_machine(facts_.root);
    facts_.answers = made.answers;
  }
  ~MadeFacts() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  MadeFacts(const MadeFacts&) = delete;
  MadeFacts& operator=(const MadeFacts&) = delete;

  const Facts& operator*() const { return facts_; }
  const Facts* operator->() const { return &facts_; }

 private:
  std::filesystem::path folder_;
  Facts facts_;
};

}  // namespace gdrbench::doctor
