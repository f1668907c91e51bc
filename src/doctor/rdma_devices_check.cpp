#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/rdma_nics.hpp"
#include "gdrbench/error.hpp"
#include "verbs/sysfs.hpp"

namespace gdrbench::doctor {
namespace {

constexpr const char* class_folder = "sys/class/infiniband";
constexpr const char* abi_file = "sys/class/infiniband_verbs/abi_version";
// What libibverbs accepts (IB_USER_VERBS_MIN_ABI_VERSION and _MAX_ of rdma-core).
constexpr std::int64_t oldest_abi = 3, newest_abi = 6;

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "libibverbs offers the device and can open it."},
    {"no_rdma", Verdict::fail,
     "There is no RDMA device: no RDMA driver is loaded, and no NIC is seen whose RDMA driver is known.",
     "use a machine with an RDMA NIC; without one, gdrbench compare --loopback runs on softverbs, a NIC in "
     "software that is no measure of RDMA"},
    {"no_rdma_nic", Verdict::fail, "There is no RDMA device: no NIC of this machine is known to do RDMA.",
     "use a machine with an RDMA NIC; for a virtual machine: have its host pass one through, or a virtual "
     "function of one; for functional tests: soft-RoCE on this NIC; modprobe rdma_rxe && rdma link add rxe0 "
     "type rxe netdev <netdev>"},
    {"only_softverbs", Verdict::info,
     "The kernel has no RDMA device; softverbs, the NIC in software, stands in for one. Its figures show "
     "that "
     "things work and are no measure of RDMA.",
     ""},
    {"nic_without_driver", Verdict::fail,
     "There is no RDMA device, because an RDMA NIC on the PCI bus has no driver.",
     "modprobe \"$(cat /sys/bus/pci/devices/{}/modalias)\"; dmesg | grep {} tells why the driver let go of "
     "it"},
    {"one_nic_without_driver", Verdict::warn,
     "An RDMA NIC on the PCI bus has no driver, while others have: it may have failed at start, or was "
     "unbound.",
     "dmesg | grep {} tells why; echo {} >/sys/bus/pci/drivers_probe tries again"},
    {"nic_without_rdma_driver", Verdict::fail,
     "There is no RDMA device: the NIC runs its network driver, but the RDMA driver that belongs to it, "
     "<module>, is not loaded.",
     "modprobe <module>; where it is missing: install the kernel's extra modules or the vendor's driver"},
    {"no_device", Verdict::fail,
     "The kernel's RDMA modules are loaded, but they show no device to this process.",
     "rdma system show; rdma dev show (on the host: a device may be in another network namespace); dmesg | "
     "grep -iE 'mlx|bnxt|irdma|infiniband'"},
    {"no_uverbs", Verdict::fail,
     "The kernel has the device, but gives programs no way to it: the module ib_uverbs is not loaded.",
     "modprobe ib_uverbs"},
    {"abi_not_supported", Verdict::fail,
     "The kernel's verbs interface has a version that libibverbs does not take (it takes 3 to 6), so it "
     "offers no device.",
     "install the rdma-core that belongs to this kernel and, with MLNX_OFED or DOCA, to its modules"},
    {"node_not_mapped", Verdict::fail,
     "The kernel has the device, but <node>, through which programs use it, is not here: most often it is "
     "not mapped into the container.",
     "docker run --device=/dev/infiniband …; Kubernetes: ask for the RDMA device plugin's resource; outside "
     "a container: udevadm trigger"},
    {"other_node_not_mapped", Verdict::info,
     "<node> is not mapped into this container; other devices are, so the container may be meant to have "
     "only those.",
     ""},
    {"open_denied", Verdict::fail,
     "The device may not be opened: the mode of <node> (EACCES) or the container's device cgroup (EPERM) "
     "forbids it.",
     "ls -l <node>; chmod 0666 <node>, or a udev rule; in a container: pass it by --device, which also "
     "opens the cgroup",
     "every user of the machine may then use the NIC"},
    {"open_failed", Verdict::fail, "libibverbs lists the device and cannot open it.",
     "dmesg | tail; rdma link show; a reset of the device or a reload of its driver may be needed",
     "a reload of the driver ends all connections through the NIC"},
    {"provider_missing", Verdict::fail,
     "The kernel has the device and its node is here, but libibverbs does not offer it: the provider, the "
     "part of libibverbs for this kind of NIC, is not installed or does not fit.",
     "apt-get install ibverbs-providers (RHEL: dnf install libibverbs); in a container: the version that "
     "fits the host's driver; ls /etc/libibverbs.d tells which are there"},
    {"not_asked", Verdict::unknown, "Whether libibverbs offers the device is not known: it was not asked.",
     "run gdrbench doctor on the machine itself, without --snapshot and --fabric softverbs (which hides the "
     "kernel's devices)"},
};

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
  if (!facts.answers.verbs_asked || uses_softverbs(facts))
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

}  // namespace

const Check rdma_devices_check = {
    .name = "rdma_devices",
    .question = "Are there RDMA devices, and may this process use them?",
    .looks_at =
        "/sys/class/infiniband, /sys/class/infiniband_verbs/uverbs*/ibdev, /dev/infiniband/uverbs*, "
        "drivers of NICs on the PCI bus, libibverbs' list, ibv_open_device",
    .layer = Layer::device,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
