#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <utility>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"
#include "doctor/facts/kernel.hpp"
#include "doctor/facts/rdma_ports.hpp"

namespace gdrbench::doctor {
namespace {

namespace soft_roce {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"rxe", Verdict::info,
     "This is soft-RoCE, RoCE v2 in the kernel without a NIC: it has no dma-buf memory regions and no "
     "GPUDirect RDMA, so gdr runs on host memory only, and its figures are functional only and say nothing "
     "about RDMA performance.",
     ""},
    {"siw", Verdict::info,
     "This is siw, iWARP in the kernel without a NIC: it has no write with immediate, no atomics and no "
     "GPUDirect RDMA, and gdrbench does not support iWARP.",
     ""},
    {"two_devices", Verdict::warn,
     "There are several soft-RoCE devices in one network namespace; they cannot reach each other.",
     "loop one of them back to itself (gdrbench compare --loopback --device {} --remote-device {}), or use "
     "two "
     "machines: scripts/softroce-vm --nodes 2"},
    {"small_mtu", Verdict::info,
     "The path MTU of soft-RoCE is the largest power of two, 256 to 4096, up to the netdev's MTU less 80 "
     "bytes. That of <netdev> gives less than 4096; 4200 gives 4096.",
     "ip link set <netdev> mtu 4200"},
    {"no_link", Verdict::info, "The kernel has rdma_rxe, and no soft-RoCE device has been created with it.",
     "scripts/softroce-up up; or: rdma link add rxe0 type rxe netdev <netdev>"},
    {"not_loaded", Verdict::info, "This kernel has the module rdma_rxe, which is not loaded.",
     "scripts/softroce-up up; or: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev <netdev>"},
    {"crc32_missing", Verdict::warn,
     "Adding a soft-RoCE device failed because the kernel has no crc32 algorithm loaded, which rdma_rxe "
     "requests by name only.",
     "modprobe crc32_generic; then rdma link add again"},
    {"add_failed", Verdict::warn, "Adding a soft-RoCE device failed, according to the kernel log.",
     "give rdma link add a netdev that exists, has no soft-RoCE device yet and is no VLAN; rdma link show; "
     "ip link"},
    {"azure_kernel", Verdict::info,
     "This kernel, <release>, is Azure's (also that of GitHub's runners), which has no rdma_rxe in any "
     "package.",
     "scripts/softroce-vm brings a kernel that has it; or gdrbench compare --loopback --fabric softverbs"},
    {"cloud_kernel", Verdict::info,
     "This kernel, <release>, is Debian's cloud kernel, which has no rdma_rxe; the regular one has.",
     "apt-get install linux-image-amd64, then boot it; or scripts/softroce-vm; or gdrbench --fabric "
     "softverbs",
     "a machine that boots another kernel may lack the cloud's drivers"},
    {"extra_modules", Verdict::info,
     "The module rdma_rxe of this kernel is not installed: Ubuntu has it in a package of its own.",
     "apt-get install linux-modules-extra-<release>; or scripts/softroce-vm; or gdrbench compare --loopback "
     "--fabric softverbs"},
    {"no_module", Verdict::info, "This kernel, <release>, has no rdma_rxe (CONFIG_RDMA_RXE).",
     "scripts/softroce-vm brings a kernel that has it; or gdrbench compare --loopback --fabric softverbs"},
    {"modules_hidden", Verdict::unknown,
     "Whether this kernel has rdma_rxe cannot be seen: its files in /lib/modules are not here, as in most "
     "containers.",
     "on the host: modinfo rdma_rxe; or gdrbench compare --loopback --fabric softverbs, which needs no "
     "module"},
};

constexpr Check check = {
    .name = "soft_roce",
    .question = "Without an RDMA NIC: is the kernel's soft-RoCE available, and what does it lack?",
    .looks_at =
        "/lib/modules/<release>/modules.{dep,builtin}, /sys/module, /proc/modules, /proc/crypto, the kernel "
        "log, MTU of the netdev",
    .layer = Layer::device,
    .causes = causes,
    .run = run};

std::string_view why_absent(const std::string& release) {
  if (release.ends_with("-azure") || release.find("-azure-") != std::string::npos) return "azure_kernel";
  if (release.find("-cloud-") != std::string::npos) return "cloud_kernel";
  constexpr std::string_view ubuntu[] = {"-generic", "-lowlatency", "-aws", "-gcp",
                                         "-oracle",  "-kvm",        "-gke"};
  const bool is_ubuntu = std::any_of(std::begin(ubuntu), std::end(ubuntu),
                                     [&](std::string_view flavour) { return release.ends_with(flavour); });
  return is_ubuntu ? "extra_modules" : "no_module";
}

// The last line of the kernel log with one of these signs that comes from rdma_rxe.
std::string logged(const Facts& facts, std::initializer_list<std::string_view> signs) {
  std::istringstream log(facts.answers.kernel_log.value_or(""));
  std::string last;
  for (std::string line; std::getline(log, line);)
    if (line.find("rxe") != std::string::npos &&
        std::any_of(signs.begin(), signs.end(),
                    [&](std::string_view sign) { return line.find(sign) != std::string::npos; }))
      last = line;
  return last;
}

// Whether rdma_rxe would ask this kernel's list of algorithms for crc32 and not find it: from 6.15 on it has
// its own, and from 6.2 on it is silent when it fails.
bool lacks_crc32(const topology::Root& root) {
  int major = 0, minor = 0;
  if (std::sscanf(kernel_release(root).c_str(), "%d.%d", &major, &minor) != 2) return false;
  const topology::FileText crypto = root.read("proc/crypto", 1 << 20);
  if (!crypto.present() || std::pair(major, minor) >= std::pair(6, 15)) return false;
  std::istringstream lines(crypto.text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("name") && line.ends_with(": crc32")) return false;
  return true;
}

std::optional<Finding> failed_addition(const Check& self, const Facts& facts) {
  // The kernel's words differ between versions.
  const std::string crc = logged(facts, {"failed to allocate crc", "failed to init crc32"});
  if (!crc.empty()) return find(self, "crc32_missing", "", {{"kernel log", crc}});
  const std::string other = logged(facts, {"failed to add", "already configured on", "rxe creation"});
  if (other.empty()) return std::nullopt;
  if (other.find("failed to add") != std::string::npos && lacks_crc32(facts.root))
    return find(self, "crc32_missing", "", {{"kernel log", other}, {"/proc/crypto", "without crc32"}});
  return find(self, "add_failed", "", {{"kernel log", other}});
}

std::vector<Finding> without_device(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  if (auto finding = failed_addition(self, facts)) return {std::move(*finding)};
  const std::string release = kernel_release(root);
  const ModuleState module = module_state(root, "rdma_rxe");
  std::vector<Evidence> seen = {{"module rdma_rxe", std::string(to_string(module))},
                                evidence(root, "proc/sys/kernel/osrelease")};
  std::string_view cause = "modules_hidden";
  if (module == ModuleState::loaded || module == ModuleState::builtin) cause = "no_link";
  if (module == ModuleState::available) cause = "not_loaded";
  if (module == ModuleState::absent) cause = why_absent(release);
  return {named(find(self, cause, "", std::move(seen)), "<release>", release)};
}

std::vector<Finding> of_rxe(const Check& self, const topology::Root& root, const RdmaPort& port) {
  std::vector<Finding> findings = {
      find(self, "rxe", port.device, {evidence(root, "sys/class/infiniband/" + port.device + "/node_type")})};
  const std::string netdev = netdev_of(root, port);
  const auto mtu = root.number("sys/class/net/" + netdev + "/mtu");
  if (netdev.empty() || !mtu || *mtu < 0 || path_mtu(*mtu, rxe_overhead_bytes) == 4096) return findings;
  findings.push_back(
      named(find(self, "small_mtu", port.device,
                 {{"/sys/class/net/" + netdev + "/mtu",
                   fmt::format("{} − {} = {}, so {}", *mtu, rxe_overhead_bytes, *mtu - rxe_overhead_bytes,
                               path_mtu(*mtu, rxe_overhead_bytes))}}),
            "<netdev>", netdev));
  return findings;
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const std::vector<RdmaPort> ports = rdma_ports(facts.root);
  std::vector<Finding> findings;
  std::vector<std::string> rxe_devices;
  for (const RdmaPort& port : ports) {
    if (port.transport == Transport::soft_iwarp) findings.push_back(find(self, "siw", port.device, {}));
    if (port.transport != Transport::soft_roce) continue;
    rxe_devices.push_back(port.device);
    for (Finding& finding : of_rxe(self, facts.root, port)) findings.push_back(std::move(finding));
  }
  if (rxe_devices.size() > 1)
    findings.push_back(find(self, "two_devices", rxe_devices.front(),
                            {{"/sys/class/infiniband", fmt::format("{}", fmt::join(rxe_devices, ", "))}}));
  // With a NIC nobody needs it.
  const bool has_nic = std::any_of(facts.machine.nics.begin(), facts.machine.nics.end(),
                                   [](const topology::Nic& nic) { return !rdma_module(nic.pci).empty(); });
  if (ports.empty() && !has_nic) return without_device(self, facts);
  return findings;
}

}  // namespace soft_roce

}  // namespace

CheckList soft_roce_checks() {
  static constexpr const Check* list[] = {&soft_roce::check};
  return list;
}

}  // namespace gdrbench::doctor
