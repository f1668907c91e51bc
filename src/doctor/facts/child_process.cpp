#include "doctor/facts/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t max_message_bytes = 64 << 20;
constexpr const char* malformed = "malformed answer from the child process";
constexpr auto check_interval = 20ms;
constexpr auto reaping_limit = 1s;

std::string signal_name(int number) {
  const char* const name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

// Of what runs before an exec in a program with threads, all is safe in a signal handler.
void become_child(pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPIPE}) std::signal(number, SIG_DFL);
  const int null_device = open("/dev/null", O_RDWR);
  dup2(null_device, STDOUT_FILENO);
  dup2(null_device, STDERR_FILENO);
}

[[noreturn]] void work_in_child(int fd, const std::function<void(const ChildReporter&)>& work) {
  const ChildReporter report(fd);
  try {
    work(report);
    report.finished();
  } catch (const std::exception& fault) {
    report.failed(fault.what());
  }
  _exit(0);
}

class Child {
 public:
  Child(pid_t pid, int fd) : pid_(pid), fd_(fd) { fcntl(fd_, F_SETFL, O_NONBLOCK); }
  ~Child() {
    end();
    close(fd_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Until something can be read, the child is gone, or check_interval is over.
  void wait() const {
    pollfd ready{fd_, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(check_interval / 1ms));
    // Where children of its own hold the pipe open, it stays silent after the child's death. A closed one is
    // always readable.
    if ((ready.revents & POLLHUP) != 0 && (ready.revents & POLLIN) == 0 && !is_gone())
      usleep(static_cast<useconds_t>(check_interval / 1us));
  }

  /// What was received; empty for nothing.
  std::string take() const {
    std::array<char, 65536> bytes{};
    const ssize_t got = read(fd_, bytes.data(), bytes.size());
    return got > 0 ? std::string(bytes.data(), static_cast<std::size_t>(got)) : "";
  }

  /// Left to be reaped: its group stays its own until then.
  bool is_gone() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  /// Kills it and its own children, and reaps it; one that hangs in the kernel is left behind. How it ended.
  std::string end() {
    if (pid_ < 0) return "";
    const pid_t pid = std::exchange(pid_, -1);
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);  // where it had no time yet to make a group
    const auto limit = Clock::now() + reaping_limit;
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = waitpid(pid, &status, WNOHANG)) == 0 && Clock::now() < limit) usleep(1000);
    if (reaped != pid) return fmt::format("process {} hangs in the kernel and cannot be killed", pid);
    if (WIFSIGNALED(status)) return signal_name(WTERMSIG(status));
    return fmt::format("exit status {} without an answer", WEXITSTATUS(status));
  }

 private:
  pid_t pid_;
  int fd_;
};

// Takes whole lines out of what was received; true once the work has finished, failed or sent what is
// malformed.
class AnswerLines {
 public:
  explicit AnswerLines(ChildResult& result) : result_(result) {}

  bool add(const std::string& text) {
    pending_ += text;
    total_ += text.size();
    if (total_ > max_message_bytes) return garbled("the child process sent more than 64 MiB");
    for (std::size_t end = 0; (end = pending_.find('\n')) != std::string::npos;) {
      const json message = json::parse(pending_.substr(0, end), nullptr, false);
      pending_.erase(0, end + 1);
      if (!message.is_object()) return garbled(malformed);
      if (message.contains("finished")) return true;
      if (const auto failed = message.find("failed"); failed != message.end()) {
        result_.end = ChildEnd::failed;
        result_.text = failed->is_string() ? failed->get<std::string>() : "";
        return true;
      }
      const auto answer = message.find("answer");
      if (answer == message.end()) return garbled(malformed);
      result_.answers.push_back(*answer);
    }
    return false;
  }

 private:
  bool garbled(const char* why) {
    result_.end = ChildEnd::garbled;
    result_.text = why;
    return true;
  }

  ChildResult& result_;
  std::string pending_;
  std::size_t total_ = 0;
};

ChildResult receive(Child& child, std::chrono::milliseconds timeout) {
  ChildResult result;
  AnswerLines lines(result);
  auto deadline = Clock::now() + timeout;
  while (true) {
    throw_if_interrupted();
    const bool was_gone = child.is_gone();
    child.wait();
    const std::string text = child.take();
    if (!text.empty()) deadline = Clock::now() + timeout;
    if (lines.add(text)) return result;
    if (text.empty() && was_gone) {
      result.end = ChildEnd::crashed;
      result.text = child.end();
      return result;
    }
    if (Clock::now() < deadline) continue;
    result.end = ChildEnd::timed_out;
    result.text = fmt::format("no answer within {} s", std::chrono::duration<double>(timeout).count());
    if (const std::string how = child.end(); how.starts_with("process")) result.text += "; " + how;
    return result;
  }
}

// `in_child` does not return.
ChildResult start_child(const std::function<void(int)>& in_child, std::chrono::milliseconds timeout) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw SystemError(errno, "creating a pipe to a child process");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const int errno_value = errno;
    close(ends[0]);
    close(ends[1]);
    throw SystemError(errno_value, "forking a child process");
  }
  if (pid == 0) {
    become_child(parent);
    in_child(ends[1]);
  }
  close(ends[1]);
  Child child(pid, ends[0]);
  return receive(child, timeout);
}

json run_step(const std::function<json()>& step) {
  try {
    return {{"answer", step()}};
  } catch (const std::exception& fault) {
    return {{"failed", fault.what()}};
  }
}

StepResult step_result(const json& message) {
  if (!message.is_object()) return {.end = ChildEnd::garbled, .answer = {}, .text = malformed};
  if (const auto answer = message.find("answer"); answer != message.end())
    return {.end = ChildEnd::finished, .answer = *answer, .text = ""};
  const auto failed = message.find("failed");
  const bool is_told = failed != message.end() && failed->is_string();
  return {.end = ChildEnd::failed, .answer = {}, .text = is_told ? failed->get<std::string>() : ""};
}

}  // namespace

std::string_view outcome(ChildEnd end) {
  switch (end) {
    case ChildEnd::finished:
      return "passed";
    case ChildEnd::crashed:
      return "crashed";
    case ChildEnd::timed_out:
      return "timed out";
    case ChildEnd::failed:
    case ChildEnd::garbled:
      break;
  }
  return "failed";
}

void ChildReporter::line(const json& message) const {
  const std::string text = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t written = write(fd_, text.data() + sent, text.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // the parent is gone
    sent += static_cast<std::size_t>(written);
  }
}

void ChildReporter::answer(const json& value) const {
  line({{"answer", value}});
}

void ChildReporter::failed(const std::string& text) const {
  line({{"failed", text}});
}

void ChildReporter::finished() const {
  line({{"finished", true}});
}

ChildResult run_in_child(const std::function<void(const ChildReporter&)>& work,
                         std::chrono::milliseconds timeout) {
  return start_child([&](int fd) { work_in_child(fd, work); }, timeout);
}

ChildResult run_program(const std::vector<std::string>& arguments, std::chrono::milliseconds timeout) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return start_child(
      [&](int fd) {
        dup2(fd, STDOUT_FILENO);
        execv(argv[0], argv.data());
        _exit(127);
      },
      timeout);
}

std::vector<StepResult> run_steps(std::span<const std::function<json()>> steps,
                                  std::chrono::milliseconds timeout) {
  std::vector<StepResult> results;
  while (results.size() < steps.size()) {
    const auto left = steps.subspan(results.size());
    const ChildResult run = run_in_child(
        [&](const ChildReporter& report) {
          try {
            for (const auto& step : left) report.answer(run_step(step));
          } catch (const EndOfProcess& last) {
            report.answer({{"answer", last.answer}});
          }
        },
        timeout);
    for (const json& message : run.answers)
      if (results.size() < steps.size()) results.push_back(step_result(message));
    const bool went_on = run.end == ChildEnd::finished && !run.answers.empty();
    if (results.size() == steps.size() || went_on) continue;
    // A child that reports its end without any answer was no longer running our steps.
    const ChildEnd end = run.end == ChildEnd::finished ? ChildEnd::garbled : run.end;
    results.push_back({.end = end, .answer = {}, .text = run.text});
  }
  return results;
}

}  // namespace gdrbench::doctor
