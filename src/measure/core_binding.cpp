#include "measure/core_binding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "topology/cores.hpp"

namespace gdrbench::measure {

namespace {

using topology::common_cores;
using topology::count_cores;

// A thread that polls, at each end when both are on this node, and room for what else the process does.
constexpr int fewest_cores = 4;

bool are_all(const std::string& some, const std::string& all) {
  return common_cores(some, all) == common_cores(all, all);
}

std::string places(const CoreQuestion& question) {
  if (question.nic_cores.empty()) return question.gpu;
  if (question.gpu_cores.empty()) return question.nic;
  if (common_cores(question.nic_cores, question.gpu_cores).empty())
    return fmt::format("{}, not to {}", question.nic, question.gpu);
  return fmt::format("{} and {}", question.nic, question.gpu);
}

std::string no_place(const CoreQuestion& question) {
  if (question.nic.empty()) return "there is no NIC or GPU to be next to";
  return fmt::format("{} has no place on the PCI buses{}", question.nic,
                     question.gpu.empty() ? "" : ", and that of " + question.gpu + " is not known");
}

// Read once: cases are opened one after another, and devices stay where they are.
const topology::Machine& this_machine() {
  static const topology::Machine machine = topology::read_machine(topology::Root());
  return machine;
}

std::string gpu_address(const Case& c) {
  return c.memory == MemoryKind::host ? "" : gpu_summary(c.gpu).pci_address;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// One in software sends through the NIC of a netdev of its ports, if that is one.
const topology::Nic* nic_of(const topology::Machine& machine, const std::string& device) {
  std::vector<std::string> netdevs;
  for (const topology::SoftwareNic& software : machine.software_nics)
    if (software.name == device)
      for (const topology::RdmaPort& port : software.ports) netdevs.push_back(port.netdev);
  for (const topology::Nic& nic : machine.nics)
    if (has(nic.rdma_devices, device) ||
        std::any_of(netdevs.begin(), netdevs.end(),
                    [&](const std::string& netdev) { return has(nic.netdevs, netdev); }))
      return &nic;
  return nullptr;
}

// Without a look at the machine where nothing depends on it.
CoreQuestion question_of(const Case& c) {
  const std::string allowed = topology::allowed_cores();
  return core_question(c, c.bind == BindBy::none ? topology::Machine() : this_machine(),
                       c.bind == BindBy::none ? "" : gpu_address(c), allowed);
}

}  // namespace

CoreChoice choose_cores(const CoreQuestion& question) {
  const auto not_bound = [&](const std::string& why) {
    return CoreChoice{.bound = false, .cores = question.allowed_cores, .why = "not bound: " + why};
  };
  if (question.bind == BindBy::none) return not_bound("--bind none");
  const std::string near = topology::cores_next_to_both(question.nic_cores, question.gpu_cores);
  if (near.empty()) return not_bound(no_place(question));
  if (question.machine_cores.empty() || question.allowed_cores.empty())
    return not_bound("the cores of this machine are not known");
  if (!are_all(question.allowed_cores, question.machine_cores))
    return not_bound(fmt::format("this process was given cores {} before", question.allowed_cores));
  if (are_all(near, question.allowed_cores)) return not_bound("all cores are equally near");
  const std::string usable = common_cores(near, question.allowed_cores);
  if (const int count = count_cores(usable); count < fewest_cores)
    return not_bound(fmt::format("{} of this process's cores {} next to {}, and an end needs {}", count,
                                 count == 1 ? "is" : "are", places(question), fewest_cores));
  return {.bound = true, .cores = usable, .why = "next to " + places(question)};
}

CoreQuestion core_question(const Case& c, const topology::Machine& machine, const std::string& gpu_address,
                           const std::string& allowed_cores) {
  CoreQuestion question{.bind = c.bind,
                        .nic = c.verbs.device,
                        .nic_cores = "",
                        .gpu = "",
                        .gpu_cores = "",
                        .machine_cores = machine.cores,
                        .allowed_cores = allowed_cores};
  if (const topology::Nic* const nic = nic_of(machine, c.verbs.device)) question.nic_cores = nic->pci.cores;
  if (c.memory == MemoryKind::host) return question;
  question.gpu = fmt::format("GPU {}", c.gpu);
  for (const topology::Gpu& gpu : machine.gpus)
    if (gpu.pci.address == gpu_address) question.gpu_cores = gpu.pci.cores;
  return question;
}

CoreBinding::CoreBinding(const Case& c) : choice_(choose_cores(question_of(c))) {
  if (!choice_.bound) return;
  try {
    binding_ = std::make_unique<topology::ThreadBinding>(choice_.cores);
  } catch (const SystemError& refused) {
    choice_ = {.bound = false,
               .cores = topology::allowed_cores(),
               .why = fmt::format("not bound: {}", refused.what())};
  }
}

void CoreBinding::renew() {
  if (binding_) binding_->renew();
}

BindingProof CoreBinding::describe() const {
  return {.cores = choice_.cores, .why = choice_.why};
}

}  // namespace gdrbench::measure
