#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "machines/faults.hpp"
#include "machines/machine.hpp"

/// Single changes to a machine that several faults of CPUs, PCI buses, GPUs and NVIDIA's driver share.
namespace gdrbench::machines {

Machine changed(Machine machine, const std::function<void(Machine&)>& change);
/// A machine that differs from dgx() in one thing; "dgx_" goes before its name.
Known fault(const std::string& name, std::function<void(Machine&)> change, std::set<std::string> findings);

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

/// What is wrong with GPUs, CUDA and NVIDIA's driver.
std::vector<Known> gpu_faults();
/// What is wrong with the ways to register GPU memory.
std::vector<Known> registration_faults();

}  // namespace gdrbench::machines
