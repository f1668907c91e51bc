#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/campaign.hpp"
#include "benchmarks/discovery.hpp"
#include "benchmarks/plan.hpp"
#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/fabric.hpp"
#include "cli/loopback.hpp"
#include "cli/measure_options.hpp"
#include "cli/results.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::cli {
namespace {

struct Command {
  std::string_view name;
  std::vector<Suite> suites;
  std::string_view help;
};

ConnectOptions connect_options(const MeasureFlags& flags, const std::optional<LoopbackResponder>& responder) {
  ConnectOptions connect;
  if (responder) {
    connect.port = responder->port();
    connect.key = responder->key();
    return connect;
  }
  const HostPort address = server_address(flags.host, flags.port);
  connect.host = address.host;
  connect.port = address.port;
  connect.key = read_key(flags.key_file);
  return connect;
}

// Why a campaign that met no failure still is not what was asked for, if so: a required path that could not
// run at some point or was never measured, or nothing measured at all.
std::exception_ptr shortfall(const ResultDocument& document, const benchmarks::Discovery& found,
                             const benchmarks::MeasureOptions& options) {
  const auto& skipped = document.skipped;
  const auto is_required = [&](const SkippedPath& path) {
    return std::find(options.required.begin(), options.required.end(), path.path) != options.required.end();
  };
  if (const auto required = std::find_if(skipped.begin(), skipped.end(), is_required);
      required != skipped.end())
    return std::make_exception_ptr(Unavailable(fmt::format("--require {}: this path could not run: {}",
                                                           to_string(required->path), required->reason)));
  const auto& idle = document.load_skipped;
  if (const auto required = std::find_if(idle.begin(), idle.end(), is_required); required != idle.end())
    return std::make_exception_ptr(Unavailable(fmt::format("--require {}: this path ran without a load: {}",
                                                           to_string(required->path), required->reason)));
  if (document.cases.empty() && document.complete) {
    if (skipped.size() > found.skipped.size())
      return std::make_exception_ptr(Unavailable("no case could run: " + skipped.back().reason));
    // Thrown at once: nothing is there that could be handed over.
    throw UsageError(
        "no case was measured: does --benchmark_filter match one, and is --benchmark_repetitions above 0?");
  }
  for (const Path path : options.required)
    if (std::none_of(document.cases.begin(), document.cases.end(),
                     [&](const CaseResult& result) { return result.test_case.path == path; }))
      return std::make_exception_ptr(Unavailable(
          fmt::format("--require {}: nothing of this path was measured: {}", to_string(path),
                      document.complete ? "does --benchmark_filter match it?" : document.incomplete_reason)));
  return document.cases.empty() ? nothing_measured(document) : nullptr;
}

FabricRequest fabric_request(const benchmarks::MeasureOptions& options) {
  return {.fabric = options.fabric,
          .devices = {options.device, options.remote_device},
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
  add(found.device_note);
  if (loopback && found.memory != MemoryKind::host && found.gpu == found.remote_gpu)
    add("both ends on one GPU: no place to measure staged latency");
  return note;
}

// A path that one of several pairs cannot take is left out of all: what is compared is the same path on each.
void keep_common_paths(std::vector<benchmarks::PlacedPair>& pairs) {
  for (const benchmarks::PlacedPair& pair : pairs)
    for (const SkippedPath& skipped : pair.discovery.skipped)
      for (benchmarks::PlacedPair& other : pairs)
        if (std::erase(other.discovery.paths, skipped.path) > 0)
          other.discovery.skipped.push_back(
              {skipped.path, fmt::format("{}: {}", pair.discovery.device, skipped.reason)});
}

int measure(const Command& command, const MeasureFlags& flags, const Invocation& invocation) {
  if (flags.loopback == !flags.host.empty())
    throw UsageError(flags.loopback
                         ? "give either HOST or --loopback, not both"
                         : fmt::format("no HOST: name the node on which `gdrbench serve` runs, or try "
                                       "`gdrbench {} --loopback` on this machine alone",
                                       command.name));
  if (flags.loopback && (flags.port || !flags.key_file.empty()))
    throw UsageError("--port and --key-file name a server; --loopback starts one of its own");
  benchmarks::MeasureOptions options = read_measure_flags(flags);
  options.suites = command.suites;
  std::vector<std::string> benchmark_flags = invocation.benchmark_flags;
  const ResultFiles files{
      .out = flags.out, .benchmark_out = take_benchmark_out(benchmark_flags), .samples = flags.samples};
  const std::string no_softverbs = provide_fabric(fabric_request(options), invocation.argv);
  check_writable(files);

  std::optional<LoopbackResponder> responder;  // before anything opens a device
  if (flags.loopback) responder.emplace();
  Session session(connect_options(flags, responder));
  ResultDocument document;
  document.command = invocation.text;
  EndInfo here = describe_this_end();
  if (!no_softverbs.empty()) {
    std::string& reason = here.rdma.unavailable;
    reason = reason.empty() ? no_softverbs : reason + "; " + no_softverbs;
  }
  document.ranks = {std::move(here), session.remote()};
  const std::vector<benchmarks::MeasureOptions> by_pair =
      benchmarks::options_by_pair(document.ranks.front(), document.ranks.back(), options);
  std::vector<Session> joined;  // one for each further pair, so that all can run at once
  for (std::size_t i = 1; i < by_pair.size(); ++i) joined.push_back(session.join());
  std::vector<benchmarks::PlacedPair> pairs;
  for (std::size_t i = 0; i < by_pair.size(); ++i) {
    Session& own = i == 0 ? session : joined[i - 1];
    pairs.push_back({&own, benchmarks::discover(own, document.ranks.front(), by_pair[i])});
  }
  keep_common_paths(pairs);
  const benchmarks::Discovery& found = pairs.front().discovery;
  document.fabric = found.fabric;
  document.skipped = found.skipped;
  document.load_skipped = found.load_skipped;

  std::exception_ptr failure;
  {
    const ProgressLine progress;
    failure = benchmarks::run_campaign(benchmarks::plan_points(options, pairs),
                                       {.benchmark_flags = benchmark_flags,
                                        .time_budget_s = options.time_budget_s,
                                        .progress = std::ref(progress)},
                                       document);
  }
  if (wants_list(benchmark_flags)) return end_list();
  const auto table = [&](const std::string& kept) {
    const TableOptions shown{
        .title = fmt::format("gdrbench {} {}", command.name, flags.loopback ? "--loopback" : flags.host),
        .remote = document.ranks.back().host,
        .result_file = kept,
        .note = table_note(found, flags.loopback)};
    return command.suites.size() > 1 ? comparison_table(document, shown) : suite_table(document, shown);
  };
  hand_over(document, files, table, failure ? failure : shortfall(document, found, options));
  // A run that its time budget has cut short did what it was told, if it measured anything; the result says
  // that it is incomplete.
  return static_cast<int>(ExitStatus::done);
}

}  // namespace

void add_measure_commands(CLI::App& app, Action& chosen, const Invocation& invocation) {
  std::vector<Command> commands = {{"compare",
                                    {Suite::latency, Suite::bandwidth},
                                    "The paths side by side: latency, bandwidth and CPU cost"}};
  for (const SuiteSpec& suite : all_suites) commands.push_back({suite.name, {suite.suite}, suite.help});
  for (const Command& command : commands) {
    auto flags = std::make_shared<MeasureFlags>();
    CLI::App* added = app.add_subcommand(std::string(command.name), std::string(command.help));
    add_measure_flags(*added, *flags, command.suites);
    added->callback([=, &chosen] { chosen = [=] { return measure(command, *flags, invocation); }; });
  }
}

}  // namespace gdrbench::cli
