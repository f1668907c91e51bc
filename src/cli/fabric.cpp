#include "cli/fabric.hpp"

#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "gdrbench/error.hpp"
#include "gdrbench/report.hpp"
#include "verbs/device.hpp"

namespace gdrbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view library_name = "libgdrbench_softverbs.so";
constexpr const char* preload = "LD_PRELOAD";
// Marks the process that was executed anew, and holds what LD_PRELOAD was before. A loader that ignores
// LD_PRELOAD (file capabilities, another architecture) thus leads to an error and not to an endless loop.
constexpr const char* preload_before = "GDRBENCH_LD_PRELOAD_BEFORE";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_softverbs_loaded() {
  const auto matches = [](dl_phdr_info* object, std::size_t, void*) -> int {
    return fs::path(object->dlpi_name).filename().native().starts_with(library_name);
  };
  return dl_iterate_phdr(matches, nullptr) != 0;
}

// Whether this process was executed anew. What it executes itself shall not inherit the preload.
bool restore_preload() {
  if (std::getenv(preload_before) == nullptr) return false;
  const std::string before = environment(preload_before);
  if (before.empty())
    unsetenv(preload);
  else
    setenv(preload, before.c_str(), 1);
  unsetenv(preload_before);
  return true;
}

fs::path this_program() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    throw Unavailable(
        fmt::format("reading /proc/self/exe, to load softverbs: {}; mount /proc", errno_name(error.value())));
  return program;
}

fs::path softverbs_library(const fs::path& program) {
  const fs::path built = program.parent_path();
  const fs::path installed = (built / GDRBENCH_LIBRARY_FOLDER).lexically_normal();
  for (const fs::path& folder : {built, installed}) {
    std::error_code absent;
    if (!fs::exists(folder / library_name, absent)) continue;
    fs::path library = folder / library_name;
    if (library.native().find_first_of(" :$") != std::string::npos)
      throw Unavailable(fmt::format(
          "preloading {}: LD_PRELOAD cannot hold a path with a space, ':' or '$'; build or install "
          "gdrbench elsewhere",
          library.native()));
    return library;
  }
  throw Unavailable(
      fmt::format("softverbs, the software NIC, is not there: {} is neither in {} nor in {}; build it (cmake "
                  "--build BUILD_FOLDER --target gdrbench_softverbs) or install gdrbench",
                  library_name, built.native(), installed.native()));
}

[[noreturn]] void execute_anew(const fs::path& program, const fs::path& library, char** argv) {
  const std::string before = environment(preload);
  const std::string libraries = library.native() + (before.empty() ? "" : ":" + before);
  setenv(preload_before, before.c_str(), 1);
  setenv(preload, libraries.c_str(), 1);
  execv(program.c_str(), argv);
  throw SystemError(errno, fmt::format("executing {} with LD_PRELOAD={}", program.native(), libraries),
                    "was the program replaced while it ran?");
}

bool has_usable_device() {
  const std::vector<verbs::DeviceInfo> devices = verbs::list_devices();
  return std::any_of(devices.begin(), devices.end(),
                     [](const verbs::DeviceInfo& device) { return device.unusable.empty(); });
}

bool is_softverbs_asked_for(const FabricRequest& request) {
  if (request.fabric) return request.fabric == FabricKind::softverbs;
  return std::any_of(request.devices.begin(), request.devices.end(),
                     [](const std::string& name) { return name.starts_with("softverbs"); });
}

// A device that is named is wanted for itself.
bool may_stand_in(const FabricRequest& request) {
  const auto is_unnamed = [](const std::string& name) { return name.empty(); };
  return !request.fabric && std::all_of(request.devices.begin(), request.devices.end(), is_unnamed);
}

}  // namespace

std::optional<FabricKind> read_fabric(const std::string& name) {
  if (name == "auto") return std::nullopt;
  if (name == "none")
    throw UsageError(
        "--fabric none: RDMA is left out by --paths tcp; else use one of: auto, hardware, soft-roce, "
        "softverbs");
  try {
    return from_name<FabricKind>(name);
  } catch (const UsageError&) {
    throw UsageError(fmt::format("--fabric '{}': use one of: auto, hardware, soft-roce, softverbs", name));
  }
}

std::string provide_fabric(const FabricRequest& request, char** argv) {
  const bool executed_anew = restore_preload();
  if (!request.uses_verbs || is_softverbs_loaded()) return "";
  const bool asked_for = is_softverbs_asked_for(request);
  // Devices are closed again when this is known: a fork that follows does not inherit them.
  if (!asked_for && (!may_stand_in(request) || has_usable_device())) return "";
  try {
    const fs::path program = this_program();
    const fs::path library = softverbs_library(program);
    if (executed_anew)
      throw Unavailable(fmt::format(
          "preloading {}: the program runs without it; see the loader's message above, build both for this "
          "machine, and drop file capabilities and setuid from the program, with which LD_PRELOAD is ignored",
          library.native()));
    execute_anew(program, library, argv);
  } catch (const Unavailable& why) {
    if (asked_for) throw;
    return why.what();
  }
}

std::string offered_devices(const std::string& no_softverbs) {
  const std::vector<verbs::DeviceInfo> devices = verbs::list_devices();
  std::string text = devices.empty() ? verbs::no_device_reason() : "";
  for (const verbs::DeviceInfo& device : devices)
    text += fmt::format("{} {} ({}{}{})", text.empty() ? "RDMA device" : ",", device.name,
                        to_string(device.fabric), is_functional(device.fabric) ? ", functional" : "",
                        device.unusable.empty() ? "" : "; unusable: " + device.unusable);
  return no_softverbs.empty() ? text : text + "; " + no_softverbs;
}

}  // namespace gdrbench::cli
