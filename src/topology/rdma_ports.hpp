#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace gdrbench::topology {

/// Whether the kernel hangs a software device below a network card's function, as rdma_rxe did before
/// Linux 4.20: then it names its netdev in `parent`.
bool is_soft_roce(const Root& root, const std::string& device);

/// The ports of an RDMA device in /sys/class/infiniband, by number.
std::vector<RdmaPort> read_ports(const Root& root, const std::string& device);

/// The RDMA devices there that are not among the NICs'.
std::vector<SoftwareNic> read_software_nics(const Root& root, const std::vector<Nic>& nics);

}  // namespace gdrbench::topology
