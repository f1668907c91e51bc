#include <fmt/format.h>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"

namespace gdrbench::doctor {
namespace {

// The first driver with open kernel modules, which dma-buf export needs; nvidia-peermem is older (470).
constexpr Version first_with_dmabuf{.major = 515};

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "NVIDIA's open kernel modules are loaded."},
    {"proprietary", Verdict::info,
     "NVIDIA's proprietary kernel modules are loaded: they export no dma-bufs, so only nvidia-peermem "
     "serves."},
    {"too_old", Verdict::warn,
     "NVIDIA's driver is older than 515, the first that exports GPU memory as dma-buf.",
     "update NVIDIA's driver and choose its open kernel modules (for Turing and later GPUs)",
     "programs that use the GPUs have to end before"},
    {"flavour_unknown", Verdict::unknown, "Whether NVIDIA's open kernel modules are loaded cannot be seen.",
     "cat /proc/driver/nvidia/version outside the container"},
};

// What follows the words "Kernel Module" or, of the open ones, "x86_64": the first number with a dot.
std::optional<Version> driver_version(const std::string& text) {
  for (std::size_t at = 0; at < text.size() && text[at] != '\n';) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.find('.') != std::string::npos)
      if (const std::optional<Version> version = version_in(word)) return version;
    at = end == text.size() || text[end] == '\n' ? end : end + 1;
  }
  return std::nullopt;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (facts.machine.gpus.empty()) return {};
  const topology::FileText version = facts.root.read("proc/driver/nvidia/version", 4 << 10);
  if (!version.present()) {
    // Without the driver at all, that is the finding of another check.
    if (!facts.root.exists("sys/module/nvidia")) return {};
    return {find(self, "flavour_unknown", "", {evidence(facts.root, "proc/driver/nvidia/version")})};
  }
  const std::vector<Evidence> seen = {
      {"/proc/driver/nvidia/version", version.text.substr(0, version.text.find('\n'))}};
  const std::optional<Version> number = driver_version(version.text);
  if (number && *number < first_with_dmabuf) return {find(self, "too_old", "", seen)};
  const bool is_open = version.text.find("Open Kernel Module") != std::string::npos;
  return {find(self, is_open ? "ok" : "proprietary", "", seen)};
}

}  // namespace

const Check driver_check = {.name = "driver",
                            .question = "Which of NVIDIA's kernel modules are loaded, open or proprietary?",
                            .looks_at = "/proc/driver/nvidia/version",
                            .layer = Layer::driver,
                            .causes = causes,
                            .run = run};

}  // namespace gdrbench::doctor
