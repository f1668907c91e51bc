#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "synthetic/machine.hpp"

namespace gdrbench::synthetic {

/// A machine and all findings of the doctor on it that are not "ok": "check/cause", once however many
/// subjects have it.
struct Scenario {
  std::string name;  ///< "dgx_without_peermem"
  std::function<Machine()> make;
  std::set<std::string> findings;
};

inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

/// All of the lists below.
std::vector<Scenario> all_scenarios();

/// Machines without a fault; the doctor may have a remark.
std::vector<Scenario> healthy_machines();
/// CPUs, PCI buses, links, the kernel log.
std::vector<Scenario> platform_faults();
/// GPUs, CUDA, NVIDIA's driver, and the ways to register GPU memory.
std::vector<Scenario> gpu_faults();
/// RDMA devices, their nodes, what libibverbs says of them, network namespaces, limits of the process.
std::vector<Scenario> rdma_device_faults();
/// State of ports, GIDs, MTU, counters.
std::vector<Scenario> rdma_port_faults();
/// Machines without a NIC.
std::vector<Scenario> soft_roce_faults();
/// Machines on which a probe failed.
std::vector<Scenario> probe_faults();

// What the faults are made of: changes to a machine. Addresses are those of dgx().

inline constexpr const char* first_gpu = "0000:1b:00.0";
inline constexpr const char* second_gpu = "0000:bb:00.0";
inline constexpr const char* first_nic = "0000:1c:00.0";   // mlx5_0 with eth0
inline constexpr const char* second_nic = "0000:bc:00.0";  // mlx5_1 with eth1

Machine changed(Machine machine, const std::function<void(Machine&)>& change);
/// A machine that differs from dgx() by one change; "dgx_" goes before its name.
Scenario fault(const std::string& name, std::function<void(Machine&)> change, std::set<std::string> findings);
/// The machine of this name; throws std::logic_error for one that there is not.
Machine machine_named(const std::string& name);

void remove_gpus(Machine& machine);
/// CUDA has no GPU, for this reason.
void silence_cuda(Machine& machine, const std::string& why);
void bind_gpus_to(Machine& machine, const std::string& driver);
void remove_driver(Machine& machine);
void remove_peermem(Machine& machine);
/// First and last address of the GPU's second memory window.
void set_bar1(Machine& machine, const std::string& address, std::uint64_t first, std::uint64_t last);
/// A NIC without RDMA.
void make_plain_nic(Machine& machine, const std::string& address, const std::string& rdma_device);
/// Without the RDMA device of a NIC: as when its RDMA driver is not loaded.
void remove_rdma_device(Machine& machine, const std::string& device, const std::string& nic);
/// dgx() without NICs, and without any sign of RDMA.
Machine without_nics();
/// sysfs's folder of port 1 of an RDMA device.
std::string port_folder(const Machine& machine, const std::string& device);

}  // namespace gdrbench::synthetic
