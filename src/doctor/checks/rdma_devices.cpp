#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/host.hpp"
#include "gdrbench/error.hpp"
#include "verbs/port.hpp"

namespace gdrbench::doctor {
namespace {

namespace rdma_devices {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr const char* class_folder = "sys/class/infiniband";
constexpr const char* abi_file = "sys/class/infiniband_verbs/abi_version";
// What libibverbs accepts (IB_USER_VERBS_MIN_ABI_VERSION and _MAX_ of rdma-core).
constexpr std::int64_t oldest_abi = 3, newest_abi = 6;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "libibverbs lists the device and can open it."},
    {"no_rdma", Verdict::fail,
     "There is no RDMA device: no RDMA driver is loaded, and no NIC with a known RDMA driver was found.",
     "use a machine with an RDMA NIC; without one, gdrbench compare --loopback runs on softverbs, a software "
     "NIC whose figures say nothing about RDMA performance"},
    {"no_rdma_nic", Verdict::fail,
     "There is no RDMA device: no NIC of this machine is known to support RDMA.",
     "use a machine with an RDMA NIC; for a virtual machine: have its host pass one through, or a virtual "
     "function of one; for functional tests: soft-RoCE on this NIC; modprobe rdma_rxe && rdma link add rxe0 "
     "type rxe netdev <netdev>"},
    {"only_softverbs", Verdict::info,
     "The kernel has no RDMA device; softverbs, the software NIC, stands in for one. Its figures are "
     "functional only and say nothing about RDMA performance.",
     ""},
    {"nic_without_driver", Verdict::fail,
     "There is no RDMA device, because an RDMA NIC on the PCI bus has no driver.",
     "modprobe \"$(cat /sys/bus/pci/devices/{}/modalias)\"; dmesg | grep {} tells why the driver was "
     "unbound"},
    {"one_nic_without_driver", Verdict::warn,
     "An RDMA NIC on the PCI bus has no driver, while others have: it may have failed to initialise, or was "
     "unbound.",
     "dmesg | grep {} tells why; echo {} >/sys/bus/pci/drivers_probe tries again"},
    {"nic_without_rdma_driver", Verdict::fail,
     "There is no RDMA device: the NIC's network driver is running, but its RDMA driver, <module>, is not "
     "loaded.",
     "modprobe <module>; if it is missing: install the kernel's extra modules or the vendor's driver"},
    {"no_device", Verdict::fail, "The kernel's RDMA modules are loaded, but this process sees no device.",
     "rdma system show; rdma dev show (on the host: a device may be in another network namespace); dmesg | "
     "grep -iE 'mlx|bnxt|irdma|infiniband'"},
    {"no_uverbs", Verdict::fail,
     "The kernel has the device, but programs cannot reach it: the module ib_uverbs is not loaded.",
     "modprobe ib_uverbs"},
    {"abi_not_supported", Verdict::fail,
     "libibverbs does not support the version of the kernel's verbs ABI (it supports 3 to 6), so it lists no "
     "device.",
     "install the rdma-core that matches this kernel and, with MLNX_OFED or DOCA, its modules"},
    {"node_not_mapped", Verdict::fail,
     "The kernel has the device, but <node>, through which programs use it, is missing: usually it is not "
     "mapped into the container.",
     "docker run --device=/dev/infiniband …; Kubernetes: request the RDMA device plugin's resource; outside "
     "a container: udevadm trigger"},
    {"other_node_not_mapped", Verdict::info,
     "<node> is not mapped into this container; other devices are, so the container may be meant to have "
     "only those.",
     ""},
    {"open_denied", Verdict::fail,
     "Permission to open the device is denied: by the mode of <node> (EACCES) or the container's device "
     "cgroup (EPERM).",
     "ls -l <node>; chmod 0666 <node>, or a udev rule; in a container: pass it by --device, which also "
     "allows it in the cgroup",
     "every user of the machine may then use the NIC"},
    {"open_failed", Verdict::fail, "libibverbs lists the device and cannot open it.",
     "dmesg | tail; rdma link show; a reset of the device or a reload of its driver may be needed",
     "a reload of the driver ends all connections through the NIC"},
    {"provider_missing", Verdict::fail,
     "The kernel has the device and its node, but libibverbs does not list it: its provider, libibverbs' "
     "driver for this kind of NIC, is not installed or does not match.",
     "apt-get install ibverbs-providers (RHEL: dnf install libibverbs); in a container: the version that "
     "matches the host's driver; ls /etc/libibverbs.d tells which are installed"},
    {"not_asked", Verdict::unknown, "Whether libibverbs lists the device is unknown: it was not queried.",
     "run gdrbench doctor on the machine itself, without --snapshot and --fabric softverbs (which hides the "
     "kernel's devices)"},
};

constexpr Check check = {
    .name = "rdma_devices",
    .question = "Are there RDMA devices, and may this process use them?",
    .looks_at =
        "/sys/class/infiniband, /sys/class/infiniband_verbs/uverbs*/ibdev, /dev/infiniband/uverbs*, drivers "
        "of NICs on the PCI bus, libibverbs' list, ibv_open_device",
    .layer = Layer::device,
    .causes = causes,
    .run = run};

Evidence driver_of(const topology::PciFunction& nic) {
  return {"/sys/bus/pci/devices/" + nic.address + "/driver", nic.driver.empty() ? "absent" : nic.driver};
}

bool lacks_driver(const topology::Nic& nic) {
  return nic.pci.driver.empty() && !rdma_module(nic.pci).empty();
}

// Preloaded, it hides what libibverbs itself would list.
bool uses_softverbs(const Facts& facts) {
  return std::any_of(facts.answers.rdma.begin(), facts.answers.rdma.end(),
                     [](const RdmaAnswer& one) { return one.fabric == "softverbs"; });
}

// Where the kernel has an RDMA core all the same, nothing is hidden or broken.
std::optional<Finding> without_rdma_nic(const Check& self, const Facts& facts, const Evidence& seen) {
  const std::vector<topology::Nic>& nics = facts.machine.nics;
  const bool is_sure = !nics.empty() && std::all_of(nics.begin(), nics.end(), [](const topology::Nic& nic) {
    return does_no_rdma(nic.pci);
  });
  if (!is_sure) return std::nullopt;
  std::vector<Evidence> all;
  std::string netdev;
  for (const topology::Nic& nic : nics) {
    all.push_back(driver_of(nic.pci));
    if (netdev.empty() && !nic.netdevs.empty()) netdev = nic.netdevs.front();
  }
  all.push_back(seen);
  Finding finding = find(self, "no_rdma_nic", "", std::move(all));
  return netdev.empty() ? finding : named(std::move(finding), "<netdev>", netdev);
}

std::vector<Finding> without_devices(const Check& self, const Facts& facts) {
  Evidence seen = presence(facts.root, class_folder);
  if (facts.root.exists(class_folder)) seen.value = "empty";
  std::vector<Finding> findings;
  for (const topology::Nic& nic : facts.machine.nics) {
    const std::string module = rdma_module(nic.pci);
    if (module.empty()) continue;
    findings.push_back(
        nic.pci.driver.empty()
            ? find(self, "nic_without_driver", nic.pci.address, {driver_of(nic.pci), seen})
            : named(find(self, "nic_without_rdma_driver", nic.pci.address, {driver_of(nic.pci), seen}),
                    "<module>", module));
  }
  if (!findings.empty()) return findings;
  if (uses_softverbs(facts)) return {find(self, "only_softverbs", "", {seen})};
  if (auto finding = without_rdma_nic(self, facts, seen)) return {std::move(*finding)};
  return {find(self, facts.root.exists(class_folder) ? "no_device" : "no_rdma", "", {seen})};
}

const RdmaAnswer* answer_for(const Facts& facts, const std::string& device) {
  const auto found = std::find_if(facts.answers.rdma.begin(), facts.answers.rdma.end(),
                                  [&](const RdmaAnswer& one) { return one.device == device; });
  return found == facts.answers.rdma.end() ? nullptr : &*found;
}

Finding opened(const Check& self, const Facts& facts, const std::string& device, const std::string& node) {
  if (!facts.answers.verbs_queried || uses_softverbs(facts))
    return find(self, "not_asked", device, {presence(facts.root, node)});
  const RdmaAnswer* const answer = answer_for(facts, device);
  if (answer == nullptr)
    return find(self, "provider_missing", device,
                {presence(facts.root, node), {"ibv_get_device_list", "without " + device}});
  const int failure = answer->open_errno.value_or(0);
  const Evidence open{"ibv_open_device of " + device, failure == 0 ? "opened" : errno_name(failure)};
  if (failure == 0) return find(self, "ok", device, {presence(facts.root, node), open});
  const bool denied = failure == EPERM || failure == EACCES;
  return named(find(self, denied ? "open_denied" : "open_failed", device, {open}), "<node>", "/" + node);
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  const std::vector<std::string> devices = root.list(class_folder);
  if (devices.empty()) {
    if (hidden_by_netns(facts)) return {};  // the check of that name tells
    return without_devices(self, facts);
  }
  std::vector<Finding> findings;
  for (const topology::Nic& nic : facts.machine.nics)
    if (lacks_driver(nic))
      findings.push_back(find(self, "one_nic_without_driver", nic.pci.address, {driver_of(nic.pci)}));
  if (const auto abi = root.number(abi_file); abi && (*abi < oldest_abi || *abi > newest_abi)) {
    findings.push_back(find(self, "abi_not_supported", "", {evidence(root, abi_file)}));
    return findings;
  }
  const std::vector<verbs::DeviceNode> nodes = verbs::device_nodes(root.folder());
  const bool any_mapped =
      std::any_of(nodes.begin(), nodes.end(), [](const verbs::DeviceNode& node) { return node.exists; });
  for (const std::string& device : devices) {
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const verbs::DeviceNode& one) { return one.device == device; });
    if (node == nodes.end())
      findings.push_back(
          find(self, "no_uverbs", device, {{"/sys/class/infiniband_verbs", "nothing for " + device}}));
    else if (!node->exists)
      findings.push_back(named(find(self, any_mapped ? "other_node_not_mapped" : "node_not_mapped", device,
                                    {presence(root, node->path)}),
                               "<node>", "/" + node->path));
    else
      findings.push_back(opened(self, facts, device, node->path));
  }
  return findings;
}

}  // namespace rdma_devices

namespace netns {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "All network namespaces share the RDMA devices."},
    {"exclusive", Verdict::info,
     "Each network namespace has its own RDMA devices (netns mode exclusive): a container sees only those "
     "that were moved into it.",
     ""},
    {"hidden", Verdict::fail,
     "No RDMA device is in this network namespace: the netns mode is exclusive, so the host's devices are "
     "hidden here.",
     "on the host: rdma dev set <device> netns <namespace>; or rdma system set netns shared, for which no "
     "other network namespace may exist; or run in the host's network (docker run --network host)",
     "a device that is moved is gone from the host until the container ends"},
};

constexpr Check check = {.name = "netns",
                         .question = "Are the host's RDMA devices visible in this network namespace?",
                         .looks_at = "/sys/module/ib_core/parameters/netns_mode, /sys/class/infiniband",
                         .layer = Layer::device,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::FileText mode = facts.root.read(netns_mode_file, 8);
  if (mode.text.empty()) return {};
  const Evidence seen = evidence(facts.root, netns_mode_file);
  if (!netns_is_exclusive(facts.root)) return {find(self, "ok", "", {seen})};
  return {find(self, hidden_by_netns(facts) ? "hidden" : "exclusive", "",
               {seen, presence(facts.root, "sys/class/infiniband")})};
}

}  // namespace netns

namespace rdma_cm {

std::vector<Finding> run(const Check& self, const Facts& facts);

constexpr const char* node = "dev/infiniband/rdma_cm";
constexpr const char* registered = "sys/class/misc/rdma_cm";  // there as soon as rdma_ucm runs

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "rdma_cm can be used."},
    {"not_loaded", Verdict::warn,
     "The module rdma_ucm is not loaded: programs that connect by rdma_cm (gdrbench --connect rdma_cm, "
     "perftest -R, NVMe over RDMA tools, many MPIs) cannot; only the control channel is left.",
     "modprobe rdma_ucm"},
    {"node_not_mapped", Verdict::warn,
     "/dev/infiniband/rdma_cm is not mapped into this container: programs cannot connect by rdma_cm; only "
     "the control channel is left.",
     "docker run --device=/dev/infiniband/rdma_cm …; outside a container: udevadm trigger"},
};

constexpr Check check = {.name = "rdma_cm",
                         .question = "Can programs connect by rdma_cm?",
                         .looks_at = "/dev/infiniband/rdma_cm, /sys/class/misc/rdma_cm",
                         .layer = Layer::device,
                         .causes = causes,
                         .run = run};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  if (root.list("sys/class/infiniband").empty()) return {};
  std::vector<Evidence> seen = {presence(root, node)};
  if (root.exists(node)) return {find(self, "ok", "", std::move(seen))};
  seen.push_back(presence(root, registered));
  return {find(self, root.exists(registered) ? "node_not_mapped" : "not_loaded", "", std::move(seen))};
}

}  // namespace rdma_cm

}  // namespace

CheckList rdma_devices_checks() {
  static constexpr const Check* list[] = {&rdma_devices::check, &netns::check, &rdma_cm::check};
  return list;
}

}  // namespace gdrbench::doctor
