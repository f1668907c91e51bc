#include "measure/core_binding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"

namespace gdrbench::measure {
namespace {

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
