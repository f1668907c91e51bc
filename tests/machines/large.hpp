#pragma once

#include "machines/machine.hpp"

namespace gdrbench::machines {

/// As dgx(), with two PCIe switches at each socket; below each four GPUs, four ConnectX-7 and an NVMe device.
Machine large();

/// A machine without GPU and NIC, as most are.
Machine plain();

/// An NVMe device with one disk.
void add_nvme(Machine& machine, const Way& way, int numa_node, const std::string& disk);

/// A device of rdma_rxe over a netdev.
void add_rxe(Machine& machine, const std::string& name, const std::string& netdev);

}  // namespace gdrbench::machines
