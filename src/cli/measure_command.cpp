#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "benchmarks/campaign.hpp"
#include "benchmarks/discovery.hpp"
#include "benchmarks/plan.hpp"
#include "cli/address.hpp"
#include "cli/commands.hpp"
#include "cli/key.hpp"
#include "cli/loopback.hpp"
#include "cli/measure_options.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::cli {
namespace {

struct Command {
  const char* name;
  std::vector<Suite> suites;
  const char* help;
};

/// One line on standard error that is rewritten; nothing when that is no terminal.
class Progress {
 public:
  void operator()(std::size_t done, std::size_t total, const std::string& now) const {
    if (terminal_) fmt::print(stderr, "\r\033[K[{}/{}] {}", done + 1, total, now);
  }
  ~Progress() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
};

ConnectOptions connect_options(const MeasureFlags& flags, const std::optional<LoopbackResponder>& responder) {
  ConnectOptions connect;
  if (responder) {
    connect.port = responder->port();
    connect.key = responder->key();
    return connect;
  }
  if (flags.port != 0 && (flags.port < 1 || flags.port > 65535))
    throw UsageError(fmt::format("--port {}: ports are 1 to 65535", flags.port));
  const HostPort address =
      parse_host(flags.host, flags.port != 0 ? static_cast<std::uint16_t>(flags.port) : default_port);
  connect.host = address.host;
  connect.port = address.port;
  connect.key = read_key(flags.key_file);
  return connect;
}

int measure(const Command& command, const MeasureFlags& flags, const std::string& command_line,
            const std::vector<std::string>& benchmark_flags) {
  if (flags.loopback == !flags.host.empty())
    throw UsageError(flags.loopback
                         ? "give either HOST or --loopback, not both"
                         : fmt::format("no HOST: name the node on which `gdrbench serve` runs, or try "
                                       "`gdrbench {} --loopback` on this machine alone",
                                       command.name));
  benchmarks::MeasureOptions options = read_measure_flags(flags);
  options.suites = command.suites;
  for (const std::string& file : {flags.out, flags.samples})
    if (!file.empty()) check_writable(file);

  std::optional<LoopbackResponder> responder;  // before anything opens a device
  if (flags.loopback) responder.emplace();
  Session session(connect_options(flags, responder));
  ResultDocument document;
  document.command = command_line;
  document.initiator = describe_this_end();
  document.responder = session.peer();
  const benchmarks::Discovery found = benchmarks::discover(session, document.initiator, options);
  document.fabric = found.fabric;
  document.skipped = found.skipped;

  benchmarks::CampaignOutcome outcome;
  {
    const Progress progress;
    outcome = benchmarks::run_campaign(session, benchmarks::plan_points(options, found), options, found,
                                       {.benchmark_flags = benchmark_flags,
                                        .time_budget_s = options.time_budget_s,
                                        .progress = std::ref(progress)},
                                       document);
  }
  const std::string target = flags.loopback ? "--loopback" : flags.host;
  const TableOptions table{.title = fmt::format("gdrbench {} {}", command.name, target),
                           .peer = document.responder.value("host", ""),
                           .result_file = flags.out};
  fmt::print("{}",
             command.suites.size() > 1 ? comparison_table(document, table) : suite_table(document, table));
  if (!found.memory_note.empty()) fmt::print("{}\n", found.memory_note);
  std::fflush(stdout);
  if (!flags.samples.empty()) write_samples(flags.samples, document);
  if (!flags.out.empty()) write_file_atomically(flags.out, to_json(document).dump(2) + "\n");
  if (outcome.failure) std::rethrow_exception(outcome.failure);
  return 0;  // a run that its time budget has cut short did what it was told; the result says that it is incomplete
}

}  // namespace

void add_measure_commands(CLI::App& app, Action& chosen, const std::string& command_line,
                          const std::vector<std::string>& benchmark_flags) {
  const Command commands[] = {
      {"compare",
       {Suite::latency, Suite::bandwidth},
       "The paths side by side: latency, bandwidth and CPU cost"},
      {"latency", {Suite::latency}, "Latency of each path, with percentiles"},
      {"bandwidth", {Suite::bandwidth}, "Bandwidth of each path, each way"},
  };
  for (const Command& command : commands) {
    auto flags = std::make_shared<MeasureFlags>();
    CLI::App* added = app.add_subcommand(command.name, command.help);
    const bool has_bandwidth = command.suites.back() == Suite::bandwidth;
    add_measure_flags(*added, *flags, has_bandwidth);
    added->callback(
        [=, &chosen] { chosen = [=] { return measure(command, *flags, command_line, benchmark_flags); }; });
  }
}

}  // namespace gdrbench::cli
