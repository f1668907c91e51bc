#pragma once

#include <cstdint>
#include <string>

namespace gdrbench::topology {

/// The name of a PCI device by libpci's list (pci.ids), "MT2910 Family [ConnectX-7]"; empty where the list
/// has none, or is not installed. Asks no network. Not for several threads at once.
std::string pci_model(std::uint16_t vendor, std::uint16_t device);

}  // namespace gdrbench::topology
