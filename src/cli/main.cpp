#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/output.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/version.hpp"

namespace {

using namespace gdrbench;

// CLI11 would only say that a subcommand is required.
void check_command(const CLI::App& app, const std::string& name) {
  std::string known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  throw UsageError(fmt::format("unknown command '{}'; use one of: {}", name, known));
}

int run(int argc, char** argv) {
  cli::Invocation invocation{.argv = argv, .text = "gdrbench", .benchmark_flags = {}};
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    invocation.text += " " + argument;
    if (argument.starts_with("--benchmark_")) {
      invocation.benchmark_flags.push_back(argument);
    } else {
      arguments.insert(arguments.begin(), argument);  // CLI11 takes them in reverse order
    }
  }

  CLI::App app{
      "Measures GPUDirect RDMA against CPU-staged transfers between two nodes: TCP with host staging (tcp), "
      "RDMA with\n"
      "host staging (rdma) and GPUDirect RDMA (gdr), side by side over one harness.",
      "gdrbench"};
  app.set_version_flag("--version", fmt::format("gdrbench {} ({})", version, commit));
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 a measurement, verification or connection failed, or output could not be "
      "written,\n"
      "2 bad usage, 3 a required path was unavailable or never measured, 4 the peer was lost, 130 "
      "interrupted.");
  cli::Action chosen;
  cli::add_serve(app, chosen, invocation);
  cli::add_measure_commands(app, chosen, invocation);
  cli::add_p2p(app, chosen, invocation);
  cli::add_registration(app, chosen, invocation);
  cli::add_doctor(app, chosen, invocation);
  cli::add_topology(app, chosen, invocation);
  cli::add_schema(app, chosen);
  for (CLI::App* command : app.get_subcommands({})) cli::refuse_empty_values(*command);
  if (!arguments.empty() && !arguments.back().starts_with("-")) check_command(app, arguments.back());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UsageError(fmt::format("{}; see --help", error.what()));
    std::ostringstream text;  // of --help or --version
    app.exit(error, text, text);
    cli::print_out(text.str());
    return static_cast<int>(ExitStatus::done);
  }
  return chosen();
}

// A descriptor that is closed at the start would be given to the next socket, and output would go there.
void open_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  gdrbench::handle_termination_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes then is an error of the write, which names the file
  try {
    return run(argc, argv);
  } catch (const gdrbench::Error& error) {
    gdrbench::cli::print_error(error.what());
    return static_cast<int>(error.status());
  } catch (const std::exception& error) {
    gdrbench::cli::print_error(error.what());
    return static_cast<int>(gdrbench::ExitStatus::failed);
  }
}
