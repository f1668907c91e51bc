#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "gdrbench/report.hpp"

namespace gdrbench::cli {

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

/// Where results go besides standard output; empty: nowhere.
struct ResultFiles {
  std::string out;            ///< the result file
  std::string benchmark_out;  ///< Google Benchmark's part of it alone
  std::string samples;
};

/// Takes out the flags by which Google Benchmark would write a file: it would begin it anew for every point.
/// The path, empty when there is none.
std::string take_benchmark_out(std::vector<std::string>& benchmark_flags);

/// Whether Google Benchmark only lists the cases.
bool wants_list(const std::vector<std::string>& benchmark_flags);

/// The end of a run that did: that list is all there is to print. Returns the exit status; throws
/// SystemError.
int end_list();

/// The failure of a run that ended, without another one, before it had measured anything.
std::exception_ptr nothing_measured(const ResultDocument& document);

/// Throws UsageError where two of these, however spelled or linked, are one file. Empty names are none.
void check_distinct(const std::vector<std::string>& files);

/// Tries ahead of a run that each can be written, and to a file of its own. Throws UsageError.
void check_writable(const ResultFiles& files);

/// Writes the files and prints what `table` makes of the result file's name (empty when it was not kept). The
/// files come first, so that they are kept even where standard output is gone; each is tried whatever became
/// of the others. Throws the failure that the run ended with, if there was one, else the first one here.
void hand_over(const ResultDocument& document, const ResultFiles& files,
               const std::function<std::string(const std::string& kept)>& table, std::exception_ptr failure);

}  // namespace gdrbench::cli
