#pragma once

#include <string>

#include "doctor/facts.hpp"

/// What is known of NICs that have no RDMA device to be seen.
namespace gdrbench::doctor {

/// The module that makes RDMA devices of a NIC, "mlx5_ib", where vendor and network driver leave no doubt;
/// else empty.
std::string rdma_module(const topology::PciFunction& nic);

/// Whether no RDMA driver makes a device of what the function's network driver drives: virtio's, and those of
/// plain Ethernet and wireless cards. False in doubt.
bool does_no_rdma(const topology::PciFunction& nic);

/// Whether ib_core gives each network namespace RDMA devices of its own; false where it does not tell.
bool netns_is_exclusive(const topology::Root& root);
inline constexpr const char* netns_mode_file = "sys/module/ib_core/parameters/netns_mode";

/// Whether the machine has an RDMA NIC whose device is in another network namespace.
bool hidden_by_netns(const Facts& facts);

}  // namespace gdrbench::doctor
