#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Work that goes through a driver runs in a process of its own: it may crash, hang or write what it likes.
namespace gdrbench::doctor {

/// The way back to the process that started the work: one JSON value a line.
class Reporter {
 public:
  explicit Reporter(int fd) : fd_(fd) {}
  void answer(const nlohmann::json& value) const;
  /// The work ended by an exception; nothing follows.
  void failed(const std::string& text) const;
  /// The work is done; nothing follows.
  void finished() const;
  int fd() const { return fd_; }

 private:
  void line(const nlohmann::json& message) const;
  int fd_;
};

enum class End { finished, failed, crashed, timed_out, garbled };

/// "passed", "failed", "crashed", "timed out", "failed": the words of ProbeAnswer::outcome.
std::string_view outcome(End end);

struct Isolated {
  End end = End::finished;
  std::vector<nlohmann::json> answers;  ///< all that came before the end
  std::string text;                     ///< "SIGSEGV", the exception's text, … ; empty when it finished
};

/// Runs `work` in a forked child that ends within `patience` of its last answer, whatever it does: it and its
/// own children are killed then. Nothing of it is heard but its answers. Fork before this process uses CUDA,
/// an RDMA device or threads, unless the work executes another program at once. Throws SystemError where no
/// process can be made, Interrupted.
Isolated run_isolated(const std::function<void(const Reporter&)>& work, std::chrono::milliseconds patience);

/// The same for a program that writes what a Reporter writes to its standard output. The first argument is
/// its path.
Isolated run_program(const std::vector<std::string>& arguments, std::chrono::milliseconds patience);

}  // namespace gdrbench::doctor
