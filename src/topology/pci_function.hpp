#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/root.hpp"

namespace gdrbench::topology {

/// What a function's PCI configuration space tells of peer-to-peer traffic. The kernel shows users without
/// CAP_SYS_ADMIN the first 64 bytes alone, which hold none of it.
struct PciConfig {
  /// A control register of a capability, and where it lies in configuration space.
  struct Register {
    int offset = 0;
    std::uint16_t value = 0;
  };

  FileState state = FileState::absent;          ///< of sysfs's `config`
  bool has_capabilities = false;                ///< more than the header was readable
  bool has_extended_capabilities = false;       ///< the 4096 bytes of PCI Express were readable
  std::uint16_t vendor = 0, device = 0;         ///< of the header, 0 where unreadable
  std::optional<Register> device_control;       ///< PCI Express capability
  std::optional<Register> access_control;       ///< ACS: absent where the function has none, or unreadable
  std::optional<Register> address_translation;  ///< ATS: likewise
};

/// Bits of those registers (PCI Express Base Specification 5.0, 7.5.3.4, 7.7.8.3, 10.5.1.3).
constexpr std::uint16_t relaxed_ordering_enabled = 0x0010;
constexpr std::uint16_t peer_to_peer_redirected = 0x002c;  ///< request, completion redirect; egress control
constexpr std::uint16_t address_translation_enabled = 0x8000;

/// By libpci, from the root's sysfs. Never throws; what cannot be read is absent.
PciConfig read_pci_config(const Root& root, const std::string& address);

/// The name of a PCI device by libpci's list (pci.ids), "MT2910 Family [ConnectX-7]"; empty where the list
/// has none, or is not installed. Asks no network. Not for several threads at once.
std::string pci_model(std::uint16_t vendor, std::uint16_t device);

/// The name that NVIDIA's driver has for the GPU at this PCI address, "NVIDIA H200"; empty without the
/// driver.
std::string driver_model(const Root& root, const std::string& address);

}  // namespace gdrbench::topology
