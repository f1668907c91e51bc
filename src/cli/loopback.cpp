#include "cli/loopback.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cli/output.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::cli {
namespace {

[[noreturn]] void serve_one(int report_fd, const std::string& key, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it died before the line above
  std::signal(SIGINT,
              SIG_IGN);  // a terminal's Ctrl-C is the parent's to act on, which then ends this process
  int status = 1;
  try {
    ServeOptions options;
    options.port = 0;
    options.key = key;
    options.max_queue_pairs = 8192;  // both ends are one user's
    Server server(options);
    const std::uint16_t port = server.port();
    if (write(report_fd, &port, sizeof port) == sizeof port) {
      close(report_fd);
      server.run(1);
      status = 0;
    }
  } catch (const std::exception& error) {
    print_error(fmt::format("responder: {}", error.what()));
  }
  _exit(status);
}

}  // namespace

LoopbackResponder::LoopbackResponder() : key_(make_key()) {
  int ends[2];
  if (pipe(ends) != 0) throw SystemError(errno, "making a pipe to the responder");
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0) throw SystemError(errno, "starting the responder by fork");
  if (child_ == 0) {
    close(ends[0]);
    serve_one(ends[1], key_, parent);
  }
  close(ends[1]);
  const ssize_t got = read(ends[0], &port_, sizeof port_);
  close(ends[0]);
  if (got != sizeof port_)
    throw Error("the responder on this machine ended before it could answer; see its error above");
}

int LoopbackResponder::killed_by() {
  for (int waited_ms = 0; child_ > 0 && waited_ms < 200; waited_ms += 10) {
    int status = 0;
    if (waitpid(child_, &status, WNOHANG) == child_) {
      child_ = -1;
      return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    usleep(10'000);
  }
  return 0;
}

LoopbackResponder::~LoopbackResponder() {
  if (child_ < 0) return;
  // It has normally ended by itself after its one client.
  for (const int signal : {0, SIGTERM, SIGKILL}) {
    if (signal != 0) kill(child_, signal);
    for (int waited_ms = 0; waited_ms < 1000; waited_ms += 10) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) return;
      usleep(10'000);
    }
  }
}

}  // namespace gdrbench::cli
