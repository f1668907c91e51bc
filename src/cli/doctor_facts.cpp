#include "cli/doctor_facts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fields.hpp"
#include "cli/output.hpp"
#include "doctor/collect.hpp"
#include "doctor/isolated.hpp"
#include "doctor/record.hpp"
#include "doctor/registration_probes.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"
#include "topology/recording.hpp"

namespace gdrbench::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto probe_patience = 20s;
constexpr std::size_t most_answer_bytes = 16 << 20;

doctor::Facts facts_of(const topology::Root& root, doctor::Answers answers, std::uint64_t size_bytes) {
  return {.root = root,
          .machine = topology::read_machine(root),
          .answers = std::move(answers),
          .request_bytes = size_bytes};
}

// A recording with a bad file still has all the others.
doctor::Answers answers_in(const topology::Root& root) {
  const topology::FileText file = root.read("answers.json", most_answer_bytes);
  if (!file.present()) return {};
  try {
    return doctor::answers_from_json(parse_bounded(file.text));
  } catch (const std::exception& fault) {
    print_error(fmt::format("{}/answers.json: {}; going on without what drivers said", root.folder().native(),
                            fault.what()));
    return {};
  }
}

fs::path make_folder() {
  std::string name = (fs::temp_directory_path() / "gdrbench-peer-").native() + std::string(6, 'X');
  if (mkdtemp(name.data()) == nullptr)
    throw SystemError(errno, "making a folder " + name,
                      "name one with room by the environment variable TMPDIR");
  return name;
}

}  // namespace

doctor::Facts facts_of_this_machine(const FactsRequest& request) {
  doctor::Answers answers = doctor::collect_answers({});
  if (request.probes) {
    const auto tried = doctor::probe_registrations(answers, probe_patience);
    answers.probes.insert(answers.probes.end(), tried.begin(), tried.end());
  }
  return facts_of(topology::Root(), std::move(answers), request.size_bytes);
}

doctor::Facts facts_of_snapshot(const fs::path& folder, std::uint64_t size_bytes) {
  const topology::Root root =
      topology::open_recording(folder, fmt::format("--snapshot '{}'", folder.native()));
  return facts_of(root, answers_in(root), size_bytes);
}

json to_json(const FactsRequest& request) {
  return {{"size_bytes", request.size_bytes}, {"probes", request.probes}};
}

json examine_this_machine(const std::string& fabric, const json& request) {
  const auto size = request.find("size_bytes"), probes = request.find("probes");
  if (size == request.end() || !size->is_number_unsigned() || probes == request.end() ||
      !probes->is_boolean())
    throw UsageError("examine.request: size_bytes and probes are due");
  std::vector<std::string> arguments = {
      "/proc/self/exe", "doctor", "--facts-for-peer", "--size", std::to_string(size->get<std::uint64_t>()),
      "--fabric",       fabric};
  if (!probes->get<bool>()) arguments.emplace_back("--no-probes");
  const doctor::Isolated run = doctor::run_program(arguments, examination_limit);
  if (run.end == doctor::End::finished && !run.answers.empty()) return run.answers.front();
  throw Error(fmt::format("examining this machine {}: {}", doctor::outcome(run.end), run.text));
}

int print_facts_for_peer(const FactsRequest& request) {
  const doctor::Reporter report(STDOUT_FILENO);
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

PeerFacts::PeerFacts(const json& told, std::uint64_t size_bytes) : folder_(make_folder()) {
  try {
    const auto tree = told.is_object() ? told.find("tree") : told.end();
    const auto answers = told.is_object() ? told.find("answers") : told.end();
    if (tree == told.end() || !tree->is_object() || answers == told.end())
      throw Error("what the other end tells of its machine is odd");
    doctor::tree_from_json(*tree).write(folder_);
    facts_ = facts_of(topology::open_recording(folder_, "what the other end tells of its machine"),
                      doctor::answers_from_json(*answers), size_bytes);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

PeerFacts::~PeerFacts() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace gdrbench::cli
