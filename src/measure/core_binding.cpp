#include "measure/core_binding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "topology/machine.hpp"

namespace gdrbench::measure {
namespace {

// Read once: cases are opened one after another, and devices stay where they are.
const topology::Machine& this_machine() {
  static const topology::Machine machine = topology::read_machine(topology::Root());
  return machine;
}

template <class Devices>
std::string cores_next_to(const Devices& devices, const std::string& address) {
  for (const auto& device : devices)
    if (device.pci.address == address) return device.pci.cores;
  return "";
}

CoreQuestion question_of(const Case& c) {
  CoreQuestion question{.bind = c.bind,
                        .nic = c.verbs.device,
                        .nic_cores = "",
                        .gpu = "",
                        .gpu_cores = "",
                        .machine_cores = "",
                        .allowed_cores = topology::allowed_cores()};
  if (c.bind == BindBy::none) return question;
  const topology::Machine& machine = this_machine();
  question.machine_cores = machine.cores;
  question.nic_cores = cores_next_to(machine.nics, topology::rdma_pci_address(c.verbs.device));
  if (c.memory == MemoryKind::host) return question;
  question.gpu = fmt::format("GPU {}", c.gpu);
  question.gpu_cores = cores_next_to(machine.gpus, gpu_summary(c.gpu).pci_address);
  return question;
}

}  // namespace

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

nlohmann::json CoreBinding::describe() const {
  return {{"cores", choice_.cores}, {"binding", choice_.why}};
}

}  // namespace gdrbench::measure
