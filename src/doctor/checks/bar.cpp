#include <fmt/format.h>

#include <charconv>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::doctor {
namespace {

struct Window {
  std::uint64_t begin = 0, last = 0, flags = 0;

  bool is_assigned() const {
    constexpr std::uint64_t has_no_address = 0x20000000;  // IORESOURCE_UNSET
    return last != 0 && (flags & has_no_address) == 0;
  }
  std::uint64_t size() const { return is_assigned() ? last - begin + 1 : 0; }
};

// A line of sysfs's `resource`: first address, last address, flags.
bool parse_window(std::string_view line, Window& window) {
  for (std::uint64_t* const value : {&window.begin, &window.last, &window.flags}) {
    const std::size_t digits = line.find("0x");
    if (digits == std::string_view::npos) return false;
    line.remove_prefix(digits + 2);
    const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), *value, 16);
    if (fault != std::errc{}) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  return window.last == 0 || (window.last >= window.begin && window.last - window.begin < ~std::uint64_t{0});
}

// The second memory window. It is line 2, except where the first is a 64-bit one as well (Hopper and later)
// and so takes two lines.
std::optional<Window> read_bar1(const topology::Root& root, const std::string& address) {
  constexpr std::uint64_t is_64_bit = 0x00100000;  // IORESOURCE_MEM_64
  const std::string text = root.read(fmt::format("sys/bus/pci/devices/{}/resource", address), 4096).text;
  std::uint64_t first_flags = 0;
  std::string_view rest = text;
  for (int line = 1; !rest.empty() && line <= 3; ++line) {
    const std::string_view here = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(here.size() + 1, rest.size()));
    Window window;
    if (!parse_window(here, window)) return std::nullopt;
    if (line == 1) first_flags = window.flags;
    const int wanted = (first_flags & is_64_bit) != 0 ? 3 : 2;
    if (line == wanted) return window;
  }
  return std::nullopt;
}

Evidence window_evidence(const std::string& address, const Window& window) {
  return {fmt::format("/sys/bus/pci/devices/{}/resource", address),
          window.size() == 0
              ? "0"
              : fmt::format("{:#x} to {:#x}: {}", window.begin, window.last, format_size(window.size()))};
}

namespace bar1 {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr std::uint64_t classic_bar1_bytes = std::uint64_t{256} << 20;  // without a resizable BAR

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "BAR1 is larger than the memory to be registered."},
    {"too_small", Verdict::fail,
     "BAR1, the window through which a NIC reaches this GPU's memory, is no larger than the memory to be "
     "registered at once, and NVIDIA's driver and other processes need part of it: ibv_reg_mr fails with "
     "EFAULT or ENOMEM.",
     "register less at once (smaller --sizes and --depth), or enable \"Above 4G Decoding\" and \"Resizable "
     "BAR\" in the BIOS and set NVreg_EnableResizableBar=1 (options nvidia … in "
     "/etc/modprobe.d/nvidia.conf), if the GPU supports it; a T4 does not",
     "some BIOSes do not boot with a BAR of that size; keep a way back"},
    {"small", Verdict::info,
     "BAR1 is 256 MiB or less: that, less what NVIDIA's driver uses, is all of this GPU's memory that can be "
     "registered at a time, over all processes."},
    {"unassigned", Verdict::fail,
     "BAR1 has no address assigned: BIOS and kernel found no room for it, and NVIDIA's driver cannot use the "
     "GPU.",
     "enable \"Above 4G Decoding\" in the BIOS; otherwise boot with pci=realloc",
     "pci=realloc moves other devices as well; some may then lack room"},
    {"unknown", Verdict::unknown, "The size of BAR1 cannot be seen.",
     "sudo lspci -vv -s {}: the larger of the first two memory regions; nvidia-smi -q -d MEMORY shows it as "
     "BAR1"},
};

constexpr Check check = {.name = "bar1",
                         .question = "Is the GPU's BAR1 large enough for the memory to be registered?",
                         .looks_at = "/sys/bus/pci/devices/*/resource, the size asked for (--size)",
                         .layer = Layer::platform,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  std::vector<Finding> findings;
  for (const topology::Gpu& gpu : facts.machine.gpus) {
    const std::string& address = gpu.pci.address;
    const std::optional<Window> window = read_bar1(facts.root, address);
    if (!window) {
      findings.push_back(
          find(self, "unknown", address,
               {presence(facts.root, fmt::format("sys/bus/pci/devices/{}/resource", address))}));
      continue;
    }
    std::string_view cause = "ok";
    if (window->size() <= classic_bar1_bytes) cause = "small";
    if (window->size() <= facts.request_bytes) cause = "too_small";
    if (window->size() == 0) cause = "unassigned";
    findings.push_back(
        find(self, cause, address,
             {window_evidence(address, *window), {"to be registered", format_size(facts.request_bytes)}}));
  }
  return findings;
}

}  // namespace bar1

namespace bar_placement {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr std::uint64_t reach_bytes = std::uint64_t{56} << 40;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "BAR1 lies where NICs reach it."},
    {"above_56_tb", Verdict::warn,
     "BAR1 lies above 56 TB, which not every platform and NIC can address: transfers of GPU memory then fail "
     "with status 4 and vendor error 0x51.",
     "if transfers fail: lower \"MMIO High Base\" in the BIOS below 56 TB; gdrbench doctor tries a transfer, "
     "and does not report this where it passes",
     "needs a reboot"},
};

constexpr Check check = {.name = "bar_placement",
                         .question = "Does the GPU's BAR1 lie where NICs reach it?",
                         .looks_at = "/sys/bus/pci/devices/*/resource, transfers that were tried",
                         .layer = Layer::platform,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  std::vector<Finding> findings;
  for (const topology::Gpu& gpu : facts.machine.gpus) {
    const std::optional<Window> window = read_bar1(facts.root, gpu.pci.address);
    if (!window || window->size() == 0) continue;
    const bool is_high = window->last >= reach_bytes && !transfer_passed(facts.answers, gpu.pci.address);
    findings.push_back(find(self, is_high ? "above_56_tb" : "ok", gpu.pci.address,
                            {window_evidence(gpu.pci.address, *window)}));
  }
  return findings;
}

}  // namespace bar_placement

}  // namespace

CheckList bar_checks() {
  static constexpr const Check* list[] = {&bar1::check, &bar_placement::check};
  return list;
}

}  // namespace gdrbench::doctor
