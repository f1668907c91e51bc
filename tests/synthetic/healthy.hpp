#pragma once

#include "synthetic/machine.hpp"

namespace gdrbench::synthetic {

/// Two sockets; behind each a PCIe switch with a GPU and a ConnectX-7, as in a DGX.
Machine dgx();

/// Two sockets without PCIe switches: GPU and ConnectX-7 of a socket below different root ports of one host
/// bridge, and a second GPU below another host bridge.
Machine two_socket();

/// Two Grace-Hopper modules with 64 KiB pages: every device below a host bridge of its own, the NIC of the
/// first module serving both.
Machine grace();

/// GPU and NIC handed to a virtual machine, with ATS on: one flat bus, which is not that of the host.
Machine virtual_machine();

/// As dgx(), with two PCIe switches at each socket; below each four GPUs, four ConnectX-7 and an NVMe device.
Machine large();

/// A machine without GPU and NIC, as most are.
Machine plain();

/// An NVMe device with one disk.
void add_nvme(Machine& machine, const Way& way, int numa_node, const std::string& disk);

/// A device of rdma_rxe over a netdev.
void add_rxe(Machine& machine, const std::string& name, const std::string& netdev);

}  // namespace gdrbench::synthetic
