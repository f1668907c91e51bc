#pragma once

#include <string>
#include <vector>

#include "machines/faults.hpp"
#include "machines/machine.hpp"

/// What rdma_faults() is made of.
namespace gdrbench::machines {

/// Devices, their nodes, what libibverbs says of them, network namespaces, limits of the process.
std::vector<Known> device_faults();
/// State of ports, GIDs, MTU, counters.
std::vector<Known> port_faults();
/// Machines without a NIC.
std::vector<Known> soft_roce_faults();

/// The address of dgx()'s two NICs, mlx5_0 with eth0 and mlx5_1 with eth1.
inline constexpr const char* first_nic = "0000:1c:00.0";
inline constexpr const char* second_nic = "0000:bc:00.0";

/// Without the RDMA device of a NIC: what a NIC has whose RDMA driver is not loaded.
void remove_rdma_device(Machine& machine, const std::string& device, const std::string& nic);
/// dgx() without NICs, and without any sign of RDMA.
Machine without_nics();

/// sysfs's folder of port 1 of an RDMA device.
std::string port_folder(const Machine& machine, const std::string& device);

}  // namespace gdrbench::machines
