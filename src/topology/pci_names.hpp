#pragma once

#include <cstdint>
#include <string>

#include "topology/root.hpp"

namespace gdrbench::topology {

/// The name of a PCI device by libpci's list (pci.ids), "MT2910 Family [ConnectX-7]"; empty where the list
/// has none, or is not installed. Asks no network. Not for several threads at once.
std::string pci_model(std::uint16_t vendor, std::uint16_t device);

/// The name that NVIDIA's driver has for the GPU at this PCI address, "NVIDIA H200"; empty without the
/// driver.
std::string driver_model(const Root& root, const std::string& address);

}  // namespace gdrbench::topology
