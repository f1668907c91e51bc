#include "synthetic/faults.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "synthetic/healthy.hpp"

namespace gdrbench::synthetic {
namespace {

std::vector<std::string> gpus_of(const Machine& machine) {
  std::vector<std::string> addresses;
  for (const doctor::GpuAnswer& gpu : machine.answers.gpus) addresses.push_back(gpu.pci_address);
  return addresses;
}

}  // namespace

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all = healthy_machines();
  for (const auto& list : {gpu_faults(), platform_faults(), rdma_device_faults(), rdma_port_faults(),
                           soft_roce_faults(), probe_faults()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

Machine changed(Machine machine, const std::function<void(Machine&)>& change) {
  change(machine);
  return machine;
}

Scenario fault(const std::string& name, std::function<void(Machine&)> change,
               std::set<std::string> findings) {
  return {"dgx_" + name, [change = std::move(change)] { return changed(dgx(), change); },
          std::move(findings)};
}

void remove_gpus(Machine& machine) {
  for (const std::string& address : gpus_of(machine)) {
    machine.tree.remove(machine.folder_of(address));
    machine.tree.remove("sys/bus/pci/devices/" + address);
  }
  silence_cuda(machine, "the CUDA driver finds no GPU");
}

void silence_cuda(Machine& machine, const std::string& why) {
  machine.answers.gpus.clear();
  machine.answers.cuda_unavailable = why;
}

void bind_gpus_to(Machine& machine, const std::string& driver) {
  machine.tree.folder("sys/bus/pci/drivers/" + driver);
  // By their class, since CUDA may not answer for them any more.
  for (const std::string& address : machine.addresses())
    if (machine.tree.text(machine.folder_of(address) + "/class") == "0x030200")
      machine.tree.link(machine.folder_of(address) + "/driver", "sys/bus/pci/drivers/" + driver);
}

void remove_driver(Machine& machine) {
  remove_peermem(machine);
  machine.tree.remove("proc/driver");
  machine.tree.remove("sys/module/nvidia");
  machine.remove_module("nvidia");
  for (const char* node : {"nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"})
    machine.tree.remove(std::string("dev/") + node);
  for (const std::string& address : machine.addresses())
    if (machine.tree.target(machine.folder_of(address) + "/driver") == "sys/bus/pci/drivers/nvidia")
      machine.tree.remove(machine.folder_of(address) + "/driver");
}

void remove_peermem(Machine& machine) {
  machine.tree.remove("sys/module/nvidia_peermem");
  machine.remove_module("nvidia_peermem");
}

void set_bar1(Machine& machine, const std::string& address, std::uint64_t first, std::uint64_t last) {
  machine.tree.file(machine.folder_of(address) + "/resource",
                    fmt::format("{:#018x} {:#018x} 0x0000000000040200\n{:#018x} {:#018x} {:#018x}",
                                0xcf000000, 0xcfffffff, first, last, last == 0 ? 0 : 0x14220c));
}

void make_plain_nic(Machine& machine, const std::string& address, const std::string& rdma_device) {
  machine.tree.remove("sys/class/infiniband/" + rdma_device);
  machine.tree.remove(machine.folder_of(address) + "/infiniband");
  for (const char* uverbs : {"uverbs0", "uverbs1"})
    if (const std::string folder = fmt::format("{}/infiniband_verbs/{}", machine.folder_of(address), uverbs);
        machine.tree.contains(folder + "/ibdev")) {
      machine.tree.remove(folder);
      machine.tree.remove(fmt::format("sys/class/infiniband_verbs/{}", uverbs));
      machine.tree.remove(fmt::format("dev/infiniband/{}", uverbs));
    }
  std::erase_if(machine.answers.rdma,
                [&](const doctor::RdmaAnswer& device) { return device.device == rdma_device; });
}

Machine machine_named(const std::string& name) {
  for (const Scenario& scenario : all_scenarios())
    if (scenario.name == name) return scenario.make();
  throw std::logic_error("no machine " + name);
}

void remove_rdma_device(Machine& machine, const std::string& device, const std::string& nic) {
  const std::string pci = machine.folder_of(nic);
  machine.tree.remove(pci + "/infiniband");
  machine.tree.remove(pci + "/infiniband_verbs");
  machine.tree.remove("sys/class/infiniband/" + device);
  const std::string node = device == "mlx5_0" ? "uverbs0" : "uverbs1";
  machine.tree.remove("sys/class/infiniband_verbs/" + node);
  machine.tree.remove("dev/infiniband/" + node);
  std::erase_if(machine.answers.rdma, [&](const doctor::RdmaAnswer& one) { return one.device == device; });
}

std::string port_folder(const Machine& machine, const std::string& device) {
  return machine.tree.target("sys/class/infiniband/" + device) + "/ports/1";
}

Machine without_nics() {
  Machine machine = dgx();
  for (const char* nic : {first_nic, second_nic}) {
    machine.tree.remove(machine.folder_of(nic));
    machine.tree.remove(std::string("sys/bus/pci/devices/") + nic);
  }
  for (const char* path : {"sys/class/infiniband", "sys/class/infiniband_verbs", "sys/class/net",
                           "sys/class/misc", "sys/module/ib_core", "dev/infiniband"})
    machine.tree.remove(path);
  for (const char* module : {"mlx5_core", "mlx5_ib", "ib_uverbs", "rdma_ucm"}) machine.remove_module(module);
  machine.answers.rdma.clear();
  return machine;
}

}  // namespace gdrbench::synthetic
