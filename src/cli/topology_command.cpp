#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/output.hpp"
#include "cli/results.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/report.hpp"
#include "report/topology_report.hpp"
#include "topology/hwloc_view.hpp"
#include "topology/machine.hpp"
#include "topology/root.hpp"
#include "verbs/device.hpp"

namespace gdrbench::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* endings[] = {".svg", ".png", ".pdf", ".txt"};
constexpr auto patience = 60s;

/// A folder of our own for the files between this process and lstopo.
class Workshop {
 public:
  Workshop() {
    const std::string unique(6, 'X');  // for mkdtemp(3) to replace
    std::string name = (fs::temp_directory_path() / ("gdrbench-picture-" + unique)).string();
    if (mkdtemp(name.data()) == nullptr)
      throw SystemError(errno, fmt::format("making the folder '{}' for lstopo", name), "set TMPDIR");
    folder_ = name;
  }
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  fs::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  fs::path folder_;
};

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Its process, or the errno value with which it could not be started.
int start(const std::vector<std::string>& arguments, const fs::path& errors, pid_t& child) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT, 0600);
  const int fault = posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return fault;
}

// The status of waitpid(2); absent where the process had to be ended.
std::optional<int> wait_for(pid_t child) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (interrupted() || std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      throw_if_interrupted();
      return std::nullopt;
    }
    std::this_thread::sleep_for(5ms);
  }
}

pid_t start_lstopo(const fs::path& document, const fs::path& picture, const fs::path& errors) {
  int fault = 0;
  for (const char* program : {"lstopo", "lstopo-no-graphics"}) {
    pid_t child = 0;
    fault = start({program, "-i", document.string(), "--if", "xml", "--no-legend", picture.string()}, errors,
                  child);
    if (fault == 0) return child;
  }
  if (fault == ENOENT)
    throw Unavailable(
        "lstopo, which draws the picture, is not on the PATH: install hwloc (.svg, .png, .pdf, .txt) or "
        "hwloc-nox (.svg, .txt)");
  throw SystemError(fault, "starting lstopo", "it comes with the package hwloc or hwloc-nox");
}

void check_picture(const fs::path& file) {
  const std::string ending = file.extension();
  if (std::find(std::begin(endings), std::end(endings), ending) == std::end(endings))
    throw UsageError(
        fmt::format("--picture '{}': the name must end in .svg, .png, .pdf or .txt", file.string()));
  gdrbench::check_writable(file);
}

void draw_picture(const std::string& xml, const fs::path& file) {
  const Workshop workshop;
  const fs::path document = workshop / "topology.xml";
  const fs::path errors = workshop / "errors";
  const std::string ending = file.extension();
  const fs::path picture = workshop / ("picture" + ending);
  write_file_atomically(document, xml);
  const std::optional<int> status = wait_for(start_lstopo(document, picture, errors));
  if (!status) throw Error(fmt::format("lstopo drew nothing within {} s", patience.count()));
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0 && fs::exists(picture))
    return write_file_atomically(file, content_of(picture));
  const std::string said = content_of(errors);
  const std::string first = said.substr(0, said.find('\n'));
  if (said.find("not supported") != std::string::npos)
    throw Unavailable(
        fmt::format("this lstopo cannot write {} ({}): install hwloc in place of hwloc-nox, or name a .svg "
                    "or .txt file",
                    ending, first));
  throw Error(fmt::format("lstopo could not draw '{}': {}", file.string(),
                          first.empty() ? fmt::format("wait status {:#x}", *status) : first));
}

struct TopologyFlags {
  bool json = false;
  std::string xml, picture, snapshot;
};

topology::Root root_of(const TopologyFlags& flags) {
  if (flags.snapshot.empty()) return topology::Root();
  return topology::open_recording(flags.snapshot, fmt::format("--snapshot '{}'", flags.snapshot));
}

// Devices that a library brings are in no file.
void add_softverbs(topology::Machine& machine) {
  try {
    for (const verbs::DeviceInfo& device : verbs::list_devices())
      if (device.fabric == FabricKind::softverbs)
        machine.software_nics.push_back(
            {.name = device.name,
             .kind = std::string(to_string(device.fabric)),
             .ports = {{.device = device.name,
                        .number = device.port,
                        .state = device.unusable.empty() ? "ACTIVE" : "DOWN",
                        .link_layer = device.link_layer,
                        .bytes_per_second = static_cast<double>(device.link_bytes_per_second),
                        .netdev = ""}}});
  } catch (const std::exception&) {  // what libibverbs lacks is the doctor's to say
  }
}

int show_topology(const TopologyFlags& flags) {
  const topology::Root root = root_of(flags);
  check_distinct({flags.xml, flags.picture});
  if (!flags.xml.empty()) gdrbench::check_writable(flags.xml);
  if (!flags.picture.empty()) check_picture(flags.picture);
  topology::Machine machine = topology::read_machine(root);
  if (root.is_this_machine()) add_softverbs(machine);
  if (machine.numa_nodes.empty() && !root.is_this_machine())
    throw UsageError(
        fmt::format("--snapshot '{}': hwloc can read neither topology.xml nor sys in it", flags.snapshot));
  const std::string host = root.read("proc/sys/kernel/hostname", 256).text;

  std::exception_ptr failure;
  const auto attempt = [&](const auto& act) {
    try {
      act();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  if (!flags.xml.empty() || !flags.picture.empty()) {
    const std::string xml = topology::hwloc_xml(root);
    if (xml.empty()) throw Error("hwloc finds no topology here, so there is nothing to export");
    if (!flags.xml.empty()) attempt([&] { write_file_atomically(flags.xml, xml); });
    if (!flags.picture.empty()) attempt([&] { draw_picture(xml, flags.picture); });
  }
  attempt([&] {
    // Names in a recorded machine's files need not be UTF-8.
    using Json = nlohmann::ordered_json;
    const std::string text =
        flags.json
            ? report::topology_json(machine, host).dump(2, ' ', false, Json::error_handler_t::replace) + '\n'
            : report::topology_text(machine, host, terminal_width());
    print_out(text, "the topology");
  });
  if (failure) std::rethrow_exception(failure);
  return static_cast<int>(ExitStatus::done);
}

}  // namespace

void add_topology(CLI::App& app, Action& chosen, const Invocation& invocation) {
  auto flags = std::make_shared<TopologyFlags>();
  CLI::App* command = app.add_subcommand(
      "topology", "GPUs, NICs, NVMe devices, what lies between them, and the best NIC of each GPU");
  command->add_flag("--json", flags->json, "JSON on standard output (docs/topology.schema.json)");
  add_file_flag(*command, "--xml", flags->xml, "Write hwloc's XML document, which lstopo and hwloc-* read");
  add_file_flag(*command, "--picture", flags->picture,
                "Have lstopo draw a picture; the name ends in .svg, .png, .pdf or .txt");
  command->add_option("--snapshot", flags->snapshot, "Show the machine recorded in this folder")
      ->type_name("FOLDER");
  command->footer(
      "Exit status: 0 done, 1 writing a file or drawing failed, 2 bad usage, or a place that cannot be "
      "written to,\n3 lstopo is missing or cannot write that format.");
  command->callback([=, &chosen, &invocation] {
    refuse_benchmark_flags(invocation);
    chosen = [=] { return show_topology(*flags); };
  });
}

}  // namespace gdrbench::cli
