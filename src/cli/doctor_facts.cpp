#include "cli/doctor_facts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fields.hpp"
#include "base/system.hpp"
#include "cli/output.hpp"
#include "doctor/facts/child_process.hpp"
#include "doctor/facts/facts.hpp"
#include "doctor/probes/registration.hpp"
#include "doctor/record/anonymise.hpp"
#include "doctor/record/record.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/session.hpp"
#include "topology/root.hpp"

namespace gdrbench::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto registration_timeout = 20s;
constexpr std::size_t max_answer_bytes = 16 << 20;

doctor::Facts facts_from(const topology::Root& root, doctor::Answers answers, std::uint64_t size_bytes) {
  return {.root = root,
          .machine = topology::read_machine(root),
          .answers = std::move(answers),
          .request_bytes = size_bytes};
}

// A recording with one malformed file still has all the others.
doctor::Answers answers_in(const topology::Root& root) {
  const topology::FileText file = root.read("answers.json", max_answer_bytes);
  if (!file.present()) return {};
  try {
    return doctor::answers_from_json(parse_bounded(file.text));
  } catch (const std::exception& fault) {
    print_error(fmt::format("{}/answers.json: {}; going on without the answers of drivers",
                            root.folder().native(), fault.what()));
    return {};
  }
}

fs::path make_remote_folder() {
  std::string name = (fs::temp_directory_path() / "gdrbench-remote-").native() + std::string(6, 'X');
  if (mkdtemp(name.data()) == nullptr)
    throw SystemError(errno, "creating folder " + name, "set TMPDIR to a folder on a disk with free space");
  return name;
}

}  // namespace

doctor::Facts facts_of_this_machine(const FactsRequest& request) {
  doctor::Answers answers = doctor::collect_answers({});
  if (request.probes) {
    const auto tried = doctor::probe_registrations(answers, registration_timeout);
    answers.probes.insert(answers.probes.end(), tried.begin(), tried.end());
  }
  return facts_from(topology::Root(), std::move(answers), request.size_bytes);
}

doctor::Facts facts_of_snapshot(const fs::path& folder, std::uint64_t size_bytes) {
  const topology::Root root =
      topology::open_recording(folder, fmt::format("--snapshot '{}'", folder.native()));
  return facts_from(root, answers_in(root), size_bytes);
}

json to_json(const FactsRequest& request) {
  return {{"size_bytes", request.size_bytes}, {"probes", request.probes}};
}

json examine_this_machine(const std::string& fabric, const json& request) {
  const auto size = request.find("size_bytes"), probes = request.find("probes");
  if (size == request.end() || !size->is_number_unsigned() || probes == request.end() ||
      !probes->is_boolean())
    throw UsageError("examine.request: size_bytes and probes are required");
  std::vector<std::string> arguments = {
      "/proc/self/exe", "doctor", "--facts-for-remote", "--size", std::to_string(size->get<std::uint64_t>()),
      "--fabric",       fabric};
  if (!probes->get<bool>()) arguments.emplace_back("--no-probes");
  const doctor::ChildResult run = doctor::run_program(arguments, examination_limit);
  if (run.end == doctor::ChildEnd::finished && !run.answers.empty()) return run.answers.front();
  throw Error(fmt::format("examining this machine {}: {}", doctor::outcome(run.end), run.text));
}

int print_facts_for_remote(const FactsRequest& request) {
  const doctor::ChildReporter report(STDOUT_FILENO);
  try {
    const doctor::Facts facts = facts_of_this_machine(request);
    std::string host(256, '\0');
    gethostname(host.data(), host.size() - 1);
    report.answer({{"host", host.c_str()},
                   {"answers", doctor::to_json(facts.answers)},
                   {"tree", doctor::to_json(doctor::record(facts.root, facts.answers))}});
    report.finished();
    return 0;
  } catch (const std::exception& fault) {
    report.failed(fault.what());
    return static_cast<int>(ExitStatus::failed);
  }
}

RemoteFacts::RemoteFacts(const json& reported, std::uint64_t size_bytes) : folder_(make_remote_folder()) {
  try {
    const auto tree = reported.is_object() ? reported.find("tree") : reported.end();
    const auto answers = reported.is_object() ? reported.find("answers") : reported.end();
    if (tree == reported.end() || !tree->is_object() || answers == reported.end())
      throw Error("malformed facts from the remote end");
    doctor::tree_from_json(*tree).write(folder_);
    facts_ = facts_from(topology::open_recording(folder_, "the facts of the remote end"),
                        doctor::answers_from_json(*answers), size_bytes);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

RemoteFacts::~RemoteFacts() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void record_to(const std::string& folder, const doctor::Facts& facts) {
  const doctor::RecordedTree tree =
      doctor::anonymise(doctor::record(facts.root, facts.answers), doctor::private_names(facts.root));
  throw_if_interrupted();
  {
    // A second signal would end the process at once, and a recording in part, beside its place, would stay.
    const HeldSignals held(HeldSignals::Which::ending);
    tree.write(folder);
  }
  print_error(
      fmt::format("recorded {} files into {}; read its README before you share it\n"
                  "  gdrbench doctor --snapshot {} examines it",
                  tree.entries().size(), folder, folder));
  throw_if_interrupted();
}

}  // namespace gdrbench::cli
