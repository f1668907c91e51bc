#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What goes through a driver runs in a child process: it may crash, hang or write what it likes.
namespace gdrbench::doctor {

/// From the child to the process that started it: one JSON value a line.
class ChildReporter {
 public:
  explicit ChildReporter(int fd) : fd_(fd) {}
  void answer(const nlohmann::json& value) const;
  /// The work ended with an exception; nothing follows.
  void failed(const std::string& text) const;
  /// The work is done; nothing follows.
  void finished() const;
  int fd() const { return fd_; }

 private:
  void line(const nlohmann::json& message) const;
  int fd_;
};

enum class ChildEnd { finished, failed, crashed, timed_out, garbled };

/// "passed", "failed", "crashed", "timed out", "failed": the words of ProbeResult::outcome.
std::string_view outcome(ChildEnd end);

struct ChildResult {
  ChildEnd end = ChildEnd::finished;
  std::vector<nlohmann::json> answers;  ///< all that came before the end
  std::string text;                     ///< "SIGSEGV", the exception's text, … ; empty when it finished
};

/// Runs `work` in a forked child that ends within `timeout` of its last answer, whatever it does: it and its
/// own children are killed then. Its output is discarded, except for its answers. Fork before this process
/// uses CUDA, an RDMA device or threads, unless the work executes another program at once. Throws SystemError
/// where no process can be created, Interrupted.
ChildResult run_in_child(const std::function<void(const ChildReporter&)>& work,
                         std::chrono::milliseconds timeout);

/// The same for a program that writes what a ChildReporter writes to its standard output. The first argument
/// is its path.
ChildResult run_program(const std::vector<std::string>& arguments, std::chrono::milliseconds timeout);

/// What came of one step; the answer is null unless it finished.
struct StepResult {
  ChildEnd end = ChildEnd::finished;
  nlohmann::json answer;
  std::string text;  ///< as in ChildResult
};

/// Thrown by a step with its answer, after which the process cannot run those that follow.
struct EndOfProcess {
  nlohmann::json answer;
};

/// Runs the steps one after another in one child process, as run_in_child does, and goes on in a new one
/// after a step that ended it: one result a step. A step that throws has failed. `timeout` is for each
/// of them.
std::vector<StepResult> run_steps(std::span<const std::function<nlohmann::json()>> steps,
                                  std::chrono::milliseconds timeout);

}  // namespace gdrbench::doctor
