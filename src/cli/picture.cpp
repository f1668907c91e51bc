#include "cli/picture.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/report.hpp"

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

}  // namespace

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

}  // namespace gdrbench::cli
