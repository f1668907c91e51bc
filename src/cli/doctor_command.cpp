#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/doctor_facts.hpp"
#include "cli/fabric.hpp"
#include "cli/output.hpp"
#include "cli/results.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/diagnosis.hpp"
#include "doctor/facts/rdma_ports.hpp"
#include "doctor/record/record.hpp"
#include "doctor/report.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/session.hpp"
#include "gdrbench/size.hpp"
#include "report/doctor_text.hpp"

namespace gdrbench::cli {
namespace {

using nlohmann::json;

struct DoctorFlags {
  std::string host, key_file, fabric = "auto", device, remote_device, size = "64M";
  std::string snapshot, record;
  std::vector<std::string> checks;
  std::optional<int> port, gpu, remote_gpu;
  bool loopback = false, no_probes = false, json = false, verbose = false, strict = false;
  bool list = false, explain = false, facts_for_remote = false;
};

// The report, and what failed on the way to it.
struct Examination {
  doctor::Report report;
  std::exception_ptr failure;
};

void check_usage(const DoctorFlags& flags) {
  if (!flags.snapshot.empty() &&
      (!flags.device.empty() || flags.gpu || !flags.remote_device.empty() || flags.remote_gpu))
    throw UsageError(
        "--snapshot runs no probes: --device, --gpu, --remote-device and --remote-gpu do not apply");
  if (flags.loopback && !flags.host.empty())
    throw UsageError(fmt::format("--loopback has no other end: drop it or '{}'", flags.host));
  if (flags.loopback && flags.no_probes) throw UsageError("--loopback and --no-probes exclude each other");
  if (!flags.snapshot.empty() && (!flags.host.empty() || flags.loopback))
    throw UsageError("--snapshot examines a recording, which has no other end: drop HOST and --loopback");
  if (flags.host.empty() && (flags.port || !flags.key_file.empty()))
    throw UsageError("--port and --key-file apply only with HOST");
  if (flags.record.empty()) return;
  if (!flags.snapshot.empty()) doctor::RecordedTree::require_apart(flags.record, flags.snapshot);
  doctor::RecordedTree::require_free(flags.record);
}

// The doctor looks at the kernel's devices: softverbs is used only if it is asked for.
void prepare_fabric(const DoctorFlags& flags, const Invocation& invocation) {
  const std::optional<FabricKind> fabric = read_fabric(flags.fabric);
  if (fabric == FabricKind::softverbs)
    provide_fabric({.fabric = fabric, .devices = {flags.device, flags.remote_device}}, invocation.argv);
}

ConnectOptions connect_options(const DoctorFlags& flags) {
  ConnectOptions connect;
  const HostPort address = server_address(flags.host, flags.port);
  connect.host = address.host;
  connect.port = address.port;
  connect.key = read_key(flags.key_file);
  return connect;
}

TransferRequest transfer_request(const DoctorFlags& flags) {
  TransferRequest request;
  request.loopback = flags.host.empty();
  if (!request.loopback) request.connect = connect_options(flags);
  request.measure.fabric = read_fabric(flags.fabric);
  request.measure.device = flags.device;
  request.measure.remote_device = flags.remote_device;
  request.measure.gpu = flags.gpu;
  request.measure.remote_gpu = flags.remote_gpu;
  request.measure.loopback = request.loopback;
  return request;
}

std::string this_host() {
  char name[256] = "this host";
  gethostname(name, sizeof name - 1);
  return name;
}

doctor::EndReport end_report(const doctor::Facts& facts, const std::vector<const doctor::Check*>& checks,
                             const std::string& host, const std::string& source) {
  doctor::EndReport end{.host = host,
                        .source = source,
                        .summary = "",
                        .findings = doctor::run_checks(facts, checks),
                        .probes = facts.answers.probes,
                        .not_applicable = {}};
  end.not_applicable = doctor::not_applicable(checks, end.findings);
  end.summary = doctor::summarise(facts, end.findings);
  return end;
}

// The report is shown all the same; a failure before this one decides the exit status.
void try_to_record(const DoctorFlags& flags, const doctor::Facts& facts, Examination& examination) {
  if (flags.record.empty()) return;
  try {
    record_to(flags.record, facts);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& fault) {
    if (examination.failure)
      print_error(fault.what());
    else
      examination.failure = std::current_exception();
  }
}

// A device that is asked for and missing is bad usage, not a finding. The other end checks its own.
void require_devices(const DoctorFlags& flags, const doctor::Answers& answers) {
  require_gpu("--gpu", flags.gpu, answers);
  require_device("--device", flags.device, answers);
  if (!flags.host.empty()) return;
  require_gpu("--remote-gpu", flags.remote_gpu, answers);
  require_device("--remote-device", flags.remote_device, answers);
}

// Tries transfers, and samples the ports' counters around them.
std::string try_transfers(const DoctorFlags& flags, doctor::Facts& facts,
                          std::vector<doctor::ProbeResult>& probes) {
  facts.answers.counters_before = doctor::read_counters(facts.root);
  TransferResults tried = probe_transfers(transfer_request(flags));
  facts.answers.counters_after = doctor::read_counters(facts.root);
  std::move(tried.probes.begin(), tried.probes.end(), std::back_inserter(probes));
  return tried.remote_lost;
}

Examination examine_one(const DoctorFlags& flags, const std::vector<const doctor::Check*>& checks) {
  const std::uint64_t size = parse_size(flags.size);
  Examination examination;
  doctor::Facts facts;
  if (!flags.snapshot.empty()) {
    facts = facts_of_snapshot(flags.snapshot, size);
  } else {
    facts = facts_of_this_machine({.size_bytes = size, .probes = !flags.no_probes});
    require_devices(flags, facts.answers);
    if (!flags.no_probes) try_transfers(flags, facts, facts.answers.probes);
  }
  try_to_record(flags, facts, examination);
  const bool is_recorded = !flags.snapshot.empty();
  examination.report.ends.push_back(end_report(facts, checks, is_recorded ? flags.snapshot : this_host(),
                                               is_recorded ? "snapshot" : "this machine"));
  return examination;
}

// Findings of transfers between the ends, which findings of either end may explain.
std::vector<doctor::Finding> findings_of_transfers(const std::vector<doctor::ProbeResult>& probes,
                                                   const doctor::Report& report,
                                                   const std::vector<const doctor::Check*>& checks) {
  doctor::Facts facts;
  facts.answers.probes = probes;
  std::vector<const doctor::Check*> of_probes;
  std::copy_if(checks.begin(), checks.end(), std::back_inserter(of_probes),
               [](const doctor::Check* check) { return check->layer == doctor::Layer::probe; });
  std::vector<doctor::Finding> findings = doctor::run_checks(facts, of_probes);
  std::vector<doctor::Finding> causes;
  for (const doctor::EndReport& end : report.ends)
    causes.insert(causes.end(), end.findings.begin(), end.findings.end());
  causes.insert(causes.end(), report.between.begin(), report.between.end());
  doctor::explain_probes(findings, causes);
  return findings;
}

json ask_remote(const ConnectOptions& connect, const FactsRequest& request) {
  Session session(connect);
  return session.examine(to_json(request));
}

// With the counters of the remote's ports, which count what was lost on the way to it.
doctor::Facts with_counters_now(doctor::Facts facts, const ConnectOptions& connect,
                                std::uint64_t size_bytes) {
  const RemoteFacts now(ask_remote(connect, {.size_bytes = size_bytes, .probes = false}), size_bytes);
  facts.answers.counters_before = doctor::read_counters(facts.root);
  facts.answers.counters_after = doctor::read_counters(now.facts().root);
  return facts;
}

Examination examine_both(const DoctorFlags& flags, const std::vector<const doctor::Check*>& checks) {
  const FactsRequest request{.size_bytes = parse_size(flags.size), .probes = !flags.no_probes};
  const ConnectOptions connect = connect_options(flags);
  Examination examination;
  const json reported = ask_remote(connect, request);
  doctor::Facts here = facts_of_this_machine(request);
  require_devices(flags, here.answers);
  std::optional<doctor::EndReport> other;
  std::vector<doctor::ProbeResult> transfers;
  try {
    const RemoteFacts there(reported, request.size_bytes);
    const auto report_of = [&](const doctor::Facts& facts) {
      return end_report(facts, checks, reported.value("host", flags.host),
                        fmt::format("responder {}:{}", connect.host, connect.port));
    };
    other = report_of(there.facts());
    examination.report.between = doctor::compare_ends(here, there.facts());
    if (!flags.no_probes) {
      if (const std::string lost = try_transfers(flags, here, transfers); !lost.empty()) throw PeerLost(lost);
      other = report_of(with_counters_now(there.facts(), connect, request.size_bytes));
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {
    examination.failure = std::current_exception();  // what was found before is shown
  }
  try_to_record(flags, here, examination);
  examination.report.ends.push_back(end_report(here, checks, this_host(), "this machine"));
  if (other) examination.report.ends.push_back(*other);
  const std::vector<doctor::Finding> found = findings_of_transfers(transfers, examination.report, checks);
  examination.report.between.insert(examination.report.between.end(), found.begin(), found.end());
  return examination;
}

void print_report(const doctor::Report& report, const DoctorFlags& flags) {
  const bool colours = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  const std::string text =
      flags.json ? doctor::to_json(report).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                 : report::doctor_text(
                       report, {.width = terminal_width(), .colours = colours, .verbose = flags.verbose});
  print_out(text, "the report");
}

int print_text(const std::string& text) {
  print_out(text);
  return static_cast<int>(ExitStatus::done);
}

std::string list_of_checks(const std::vector<const doctor::Check*>& checks) {
  std::string text;
  for (const doctor::Check* check : checks) text += fmt::format("{:<20} {}\n", check->name, check->question);
  return text;
}

int run_doctor(const DoctorFlags& flags, const Invocation& invocation) {
  const std::vector<const doctor::Check*> checks = doctor::select_checks(flags.checks);
  if (flags.list) return print_text(list_of_checks(checks));
  if (flags.explain) return print_text(doctor::explain_checks(checks));
  check_usage(flags);
  const std::uint64_t size = parse_size(flags.size);
  if (size == 0)
    throw UsageError("--size 0: nothing to register; give the GPU memory to be registered at once");
  prepare_fabric(flags, invocation);
  if (flags.facts_for_remote) return print_facts_for_remote({.size_bytes = size, .probes = !flags.no_probes});

  Examination examination = flags.host.empty() ? examine_one(flags, checks) : examine_both(flags, checks);
  throw_if_interrupted();
  examination.report.command = invocation.text;
  examination.report.strict = flags.strict;
  print_report(examination.report, flags);
  if (examination.failure) std::rethrow_exception(examination.failure);
  return static_cast<int>(doctor::exit_status(examination.report));
}

}  // namespace

void add_doctor(CLI::App& app, Action& chosen, const Invocation& invocation) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command =
      app.add_subcommand("doctor", "Why gdr is missing or slow on this node, or between two, and what to do");
  command->add_option("HOST", flags->host,
                      "The other node, where `gdrbench serve` runs: HOST or HOST:PORT; else this node alone");
  command->add_flag("--loopback", flags->loopback, "This node alone, as without HOST");
  command->add_option("--port", flags->port, "TCP port of the server (default 7471)");
  add_file_flag(*command, "--key-file", flags->key_file, "File with the server's key (else GDRBENCH_KEY)");
  command->add_option("--check", flags->checks, "Only these checks, by the names that --list shows")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  command->add_flag("--list", flags->list, "List the checks");
  command->add_flag("--explain", flags->explain, "What each check can find and what to do, as Markdown");
  command->add_option("--size", flags->size, "GPU memory to be registered at once")->capture_default_str();
  command->add_flag("--no-probes", flags->no_probes, "Register and transfer nothing");
  command
      ->add_option("--fabric", flags->fabric,
                   "What probes run on: auto (what the kernel offers, never softverbs), hardware, soft-roce "
                   "or softverbs")
      ->capture_default_str();
  command->add_option("--device", flags->device, "RDMA device for the transfers");
  command->add_option("--remote-device", flags->remote_device, "RDMA device of the other end");
  command->add_option("--gpu", flags->gpu, "GPU for the transfers");
  command->add_option("--remote-gpu", flags->remote_gpu, "GPU of the other end");
  command->add_option("--snapshot", flags->snapshot, "Examine a recorded machine instead of this one")
      ->type_name("FOLDER");
  command
      ->add_option(
          "--record", flags->record,
          "Record this machine (not HOST) into a new folder, without names, addresses and serial numbers")
      ->type_name("FOLDER");
  command->add_flag("--json", flags->json, "The report as JSON");
  command->add_flag("--verbose", flags->verbose, "Show what is in order too, and all evidence");
  command->add_flag("--strict", flags->strict, "Exit with status 1 for warnings too");
  command->add_flag("--facts-for-remote", flags->facts_for_remote)->group("");
  command->footer(
      "First gdrbench doctor; then sudo gdrbench doctor, which sees more (ACS, the kernel log); then, with "
      "gdrbench\n"
      "serve at HOST, gdrbench doctor HOST.\n\n"
      "Exit status: 0 no check failed (the line that begins with gdr: says whether gdr is possible), 1 one "
      "did, or\n"
      "the other end could not be reached, 2 bad usage, 4 the other end was lost, 130 interrupted.");
  command->callback([=, &chosen, &invocation] {
    refuse_benchmark_flags(invocation);
    chosen = [=] { return run_doctor(*flags, invocation); };
  });
}

}  // namespace gdrbench::cli
