#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "gdrbench/report.hpp"

namespace gdrbench::cli {

/// JSON as a file holds it. Bytes that are not UTF-8, such as those of an odd file name in the command line,
/// do not cost the file.
std::string as_text(const nlohmann::ordered_json& json);

/// One line on standard error that is rewritten; nothing when that is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void operator()(std::size_t done, std::size_t total, const std::string& now) const;

 private:
  bool terminal_;
};

/// Writes the result file where `out` names one, then prints the table. Throws the failure that the run ended
/// with, if there was one, else what went wrong here.
void hand_over(const ResultDocument& document, const std::string& out, const std::string& table,
               const std::exception_ptr& failure);

}  // namespace gdrbench::cli
