#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>

#include "benchmarks/campaign.hpp"
#include "benchmarks/discovery.hpp"
#include "benchmarks/plan.hpp"
#include "cli/address.hpp"
#include "cli/commands.hpp"
#include "cli/fabric.hpp"
#include "cli/key.hpp"
#include "cli/loopback.hpp"
#include "cli/measure_options.hpp"
#include "cli/results.hpp"
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

bool wants_list(const std::vector<std::string>& benchmark_flags) {
  return std::any_of(benchmark_flags.begin(), benchmark_flags.end(), [](const std::string& flag) {
    return flag == "--benchmark_list_tests" || flag == "--benchmark_list_tests=true";
  });
}

// Takes out the flags by which the library would write a file: it would begin it anew for every point. The
// path, empty when there is none.
std::string take_benchmark_out(std::vector<std::string>& benchmark_flags) {
  std::string path;
  std::erase_if(benchmark_flags, [&](const std::string& flag) {
    constexpr std::string_view out = "--benchmark_out=", format = "--benchmark_out_format=";
    if (flag.starts_with(out)) path = flag.substr(out.size());
    if (flag.starts_with(format) && flag.substr(format.size()) != "json")
      throw UsageError(fmt::format("{}: only json is written; --samples writes CSV", flag));
    return flag.starts_with(out) || flag.starts_with(format);
  });
  return path;
}

// Why a campaign that met no failure still is not what was asked for, if so: a required path that could not
// run at some point, or nothing measured at all.
std::exception_ptr shortfall(const ResultDocument& document, const benchmarks::Discovery& found,
                             const benchmarks::MeasureOptions& options) {
  const auto& skipped = document.skipped;
  const auto required = std::find_if(skipped.begin(), skipped.end(), [&](const SkippedPath& path) {
    return std::find(options.required.begin(), options.required.end(), path.path) != options.required.end();
  });
  if (required != skipped.end())
    return std::make_exception_ptr(Unavailable(fmt::format("--require {}: this path could not run: {}",
                                                           to_string(required->path), required->reason)));
  if (!document.cases.empty() || !document.complete) return nullptr;
  if (skipped.size() > found.skipped.size())
    return std::make_exception_ptr(Unavailable("no case could run: " + skipped.back().reason));
  // Thrown at once: nothing is there that could be handed over.
  throw UsageError(
      "no case was measured: does --benchmark_filter match one, and is --benchmark_repetitions above 0?");
}

// Writes all files that were asked for and the table. The files come first, so that they are kept even where
// standard output is gone; each is tried whatever became of the others. Returns the failure to end with.
std::exception_ptr hand_over(const ResultDocument& document, const Command& command,
                             const MeasureFlags& flags, const std::string& benchmark_out,
                             const std::string& note, std::exception_ptr failure) {
  const auto attempt = [&](const auto& write) {
    try {
      write();
      return true;
    } catch (const std::exception& fault) {
      if (failure)
        fmt::print(stderr, "gdrbench: {}\n", fault.what());
      else
        failure = std::current_exception();
      return false;
    }
  };
  const bool kept =
      !flags.out.empty() && attempt([&] { write_file_atomically(flags.out, as_text(to_json(document))); });
  if (!benchmark_out.empty())
    attempt([&] {
      const nlohmann::ordered_json own{{"context", document.context}, {"benchmarks", document.benchmarks}};
      write_file_atomically(benchmark_out, as_text(own));
    });
  if (!flags.samples.empty()) attempt([&] { write_samples(flags.samples, document); });

  const TableOptions options{
      .title = fmt::format("gdrbench {} {}", command.name, flags.loopback ? "--loopback" : flags.host),
      .peer = document.responder.value("host", ""),
      .result_file = kept ? flags.out : "",
      .note = note};
  attempt([&] {
    const bool side_by_side = command.suites.size() > 1;
    fmt::print("{}", side_by_side ? comparison_table(document, options) : suite_table(document, options));
    if (std::fflush(stdout) != 0) throw SystemError(errno, "writing the table to standard output");
  });
  return failure;
}

FabricRequest fabric_request(const benchmarks::MeasureOptions& options) {
  return {.fabric = options.fabric,
          .devices = {options.device, options.peer_device},
          .uses_verbs = std::any_of(options.paths.begin(), options.paths.end(), uses_verbs)};
}

// What a reader of the table has to know to judge its figures.
std::string table_note(const benchmarks::Discovery& found, bool loopback) {
  std::string note;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) note += (note.empty() ? "" : "; ") + part;
  };
  if (is_functional(found.fabric.kind))
    add(fmt::format(
        "{} is a NIC in software: its figures show that the paths work, and are no measure of RDMA",
        to_string(found.fabric.kind)));
  add(found.memory_note);
  if (loopback && found.memory != MemoryKind::host && found.gpu == found.peer_gpu)
    add("both ends on one GPU: no place to measure staged latency");
  return note;
}

int measure(const Command& command, const MeasureFlags& flags, const Invocation& invocation) {
  if (flags.loopback == !flags.host.empty())
    throw UsageError(flags.loopback
                         ? "give either HOST or --loopback, not both"
                         : fmt::format("no HOST: name the node on which `gdrbench serve` runs, or try "
                                       "`gdrbench {} --loopback` on this machine alone",
                                       command.name));
  if (flags.loopback && (flags.port != 0 || !flags.key_file.empty()))
    throw UsageError("--port and --key-file name a server; --loopback starts one of its own");
  benchmarks::MeasureOptions options = read_measure_flags(flags);
  options.suites = command.suites;
  std::vector<std::string> benchmark_flags = invocation.benchmark_flags;
  const std::string benchmark_out = take_benchmark_out(benchmark_flags);
  if (!flags.out.empty() && (flags.out == flags.samples || flags.out == benchmark_out))
    throw UsageError(fmt::format("{}: two results cannot go to one file", flags.out));
  const std::string no_softverbs = provide_fabric(fabric_request(options), invocation.argv);
  for (const std::string& file : {flags.out, flags.samples, benchmark_out})
    if (!file.empty()) check_writable(file);

  std::optional<LoopbackResponder> responder;  // before anything opens a device
  if (flags.loopback) responder.emplace();
  Session session(connect_options(flags, responder));
  ResultDocument document;
  document.command = invocation.text;
  document.initiator = describe_this_end();
  if (!no_softverbs.empty()) {
    nlohmann::json& reason = document.initiator["rdma"]["unavailable"];
    const auto known = reason.get<std::string>();
    reason = known.empty() ? no_softverbs : known + "; " + no_softverbs;
  }
  document.responder = session.peer();
  const benchmarks::Discovery found = benchmarks::discover(session, document.initiator, options);
  document.fabric = found.fabric;
  document.skipped = found.skipped;

  benchmarks::CampaignOutcome outcome;
  {
    const ProgressLine progress;
    outcome = benchmarks::run_campaign(session, benchmarks::plan_points(options, found), options, found,
                                       {.benchmark_flags = benchmark_flags,
                                        .time_budget_s = options.time_budget_s,
                                        .progress = std::ref(progress)},
                                       document);
  }
  if (wants_list(benchmark_flags)) return 0;  // the library has printed it
  const std::exception_ptr failure =
      hand_over(document, command, flags, benchmark_out, table_note(found, flags.loopback),
                outcome.failure ? outcome.failure : shortfall(document, found, options));
  if (failure) std::rethrow_exception(failure);
  // A run that its time budget has cut short did what it was told; the result says that it is incomplete.
  return static_cast<int>(ExitStatus::done);
}

}  // namespace

void add_measure_commands(CLI::App& app, Action& chosen, const Invocation& invocation) {
  const Command commands[] = {
      {"compare",
       {Suite::latency, Suite::bandwidth},
       "The paths side by side: latency, bandwidth and CPU cost"},
      {"latency", {Suite::latency}, "Latency of each path, with percentiles"},
      {"bandwidth", {Suite::bandwidth}, "Bandwidth of each path, each way"},
      {"visible", {Suite::visible}, "Latency until a running kernel on the receiving GPU sees the data"},
      {"overlap", {Suite::overlap}, "What GPU work and a transfer lose to each other"},
  };
  for (const Command& command : commands) {
    auto flags = std::make_shared<MeasureFlags>();
    CLI::App* added = app.add_subcommand(command.name, command.help);
    add_measure_flags(*added, *flags, command.suites);
    added->callback([=, &chosen] { chosen = [=] { return measure(command, *flags, invocation); }; });
  }
}

}  // namespace gdrbench::cli
