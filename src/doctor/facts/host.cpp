#include "doctor/facts/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <string_view>

namespace gdrbench::doctor {
namespace {

// What hypervisors call themselves in sys_vendor or product_name.
constexpr std::string_view hypervisors[] = {"QEMU",      "KVM",       "VMware",     "Virtual Machine",
                                            "Xen",       "OpenStack", "Amazon EC2", "Google Compute Engine",
                                            "VirtualBox"};

constexpr std::size_t cpuinfo_bytes = 16 << 10;  // the first processors are enough

// Whether a line of /proc/cpuinfo with this key holds the word.
bool cpu_has(const std::string& cpuinfo, std::string_view key, std::string_view word) {
  std::size_t at = 0;
  while (at < cpuinfo.size()) {
    const std::size_t end = std::min(cpuinfo.find('\n', at), cpuinfo.size());
    const std::string_view line = std::string_view(cpuinfo).substr(at, end - at);
    if (line.starts_with(key)) {
      const std::size_t found = line.find(word);
      if (found != std::string_view::npos && (found == 0 || line[found - 1] == ' ')) return true;
    }
    at = end + 1;
  }
  return false;
}

bool is_metal(const std::string& product) {
  return product.find(".metal") != std::string::npos;  // Amazon's names of machines without a hypervisor
}

// EFA, MANA and pvrdma are functions of their own beside ena, hv_netvsc and vmxnet3.
constexpr std::string_view drivers_without_rdma =
    " 8139cp 8139too alx ath10k_pci ath11k_pci atl1c atlantic bnx2 e1000 e1000e ena forcedeth gve igb "
    "igbvf igc ixgbe ixgbevf iwlwifi ne2k-pci pcnet32 r8125 r8169 sky2 tg3 virtio-pci vmxnet3 ";

}  // namespace

bool is_virtual_machine(const topology::Root& root) {
  if (cpu_has(root.read("proc/cpuinfo", cpuinfo_bytes).text, "flags", "hypervisor")) return true;
  const std::string product = root.read("sys/class/dmi/id/product_name", 256).text;
  if (is_metal(product)) return false;
  const std::string names = root.read("sys/class/dmi/id/sys_vendor", 256).text + "\n" + product;
  return std::any_of(std::begin(hypervisors), std::end(hypervisors),
                     [&](std::string_view name) { return names.find(name) != std::string::npos; });
}

bool is_grace(const topology::Root& root) {
  return cpu_has(root.read("proc/cpuinfo", cpuinfo_bytes).text, "CPU part", "0xd4f");
}

std::optional<Version> version_in(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto [dot, fault] = std::from_chars(text.data(), end, version.major);
  if (fault != std::errc{}) return std::nullopt;
  if (dot != end && *dot == '.') std::from_chars(dot + 1, end, version.minor);
  return version;
}

std::vector<const topology::Nic*> rdma_nics(const topology::Machine& machine) {
  std::vector<const topology::Nic*> nics;
  for (const topology::Nic& nic : machine.nics)
    if (!nic.rdma_devices.empty()) nics.push_back(&nic);
  return nics;
}

bool some_gpu_supports_rdma(const Answers& answers) {
  return answers.gpus.empty() || std::any_of(answers.gpus.begin(), answers.gpus.end(), [](const auto& gpu) {
           return gpu.gpu_direct_rdma.value_or(true);
         });
}

bool dmabuf_works(const Answers& answers) {
  const auto exports = [](const GpuAnswer& gpu) { return gpu.dmabuf.value_or(false); };
  const auto takes = [](const RdmaAnswer& device) {
    return device.fabric != "hardware" || device.dmabuf_probe == EBADF;
  };
  return !answers.gpus.empty() && std::all_of(answers.gpus.begin(), answers.gpus.end(), exports) &&
         std::all_of(answers.rdma.begin(), answers.rdma.end(), takes);
}

bool transfer_passed(const Answers& answers, const std::string& gpu_address) {
  return std::any_of(answers.probes.begin(), answers.probes.end(), [&](const ProbeResult& probe) {
    return probe.gpu == gpu_address && probe.what.starts_with("transfer") && probe.outcome == "passed";
  });
}

std::string line_with(std::string_view text, std::string_view pattern) {
  const std::size_t found = text.find(pattern);
  if (found == std::string_view::npos) return "";
  const std::size_t before = text.rfind('\n', found);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return std::string(text.substr(begin, text.find('\n', found) - begin));
}

std::string rdma_module(const topology::PciFunction& nic) {
  constexpr std::uint16_t mellanox = 0x15b3;
  constexpr std::uint16_t first_mlx5 = 0x1011;  // Connect-IB
  if (nic.vendor == mellanox) return nic.device < first_mlx5 ? "mlx4_ib" : "mlx5_ib";
  if (nic.driver == "bnxt_en") return "bnxt_re";
  if (nic.driver == "ice") return "irdma";
  if (nic.driver == "qede") return "qedr";
  if (nic.driver == "cxgb4") return "iw_cxgb4";
  return "";
}

bool does_no_rdma(const topology::PciFunction& nic) {
  return is_in_list(drivers_without_rdma, nic.driver);
}

bool netns_is_exclusive(const topology::Root& root) {
  return root.read(netns_mode_file, 8).text.starts_with('N');
}

bool hidden_by_netns(const Facts& facts) {
  return netns_is_exclusive(facts.root) && facts.root.list("sys/class/infiniband").empty() &&
         std::any_of(facts.machine.nics.begin(), facts.machine.nics.end(),
                     [](const topology::Nic& nic) { return !rdma_module(nic.pci).empty(); });
}

bool is_in_list(std::string_view list, std::string_view word) {
  return word.find(' ') == std::string_view::npos &&
         list.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

}  // namespace gdrbench::doctor
