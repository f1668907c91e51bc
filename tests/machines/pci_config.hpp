#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gdrbench::machines {

/// What a function's PCI configuration space tells.
struct PciConfig {
  std::uint16_t vendor = 0, device = 0;
  std::uint32_t class_code = 0;  ///< 24 bits
  bool is_bridge = false;
  std::optional<std::uint16_t> acs_control = std::nullopt;  ///< absent: no ACS capability
  std::uint16_t device_control = 0;                         ///< PCIe capability; bit 4: relaxed ordering
  std::optional<std::uint16_t> ats_control = std::nullopt;  ///< absent: no ATS capability
};

/// The 4096 bytes of sysfs's `config`, with a PCIe capability and, if asked for, one of ACS.
std::string config_space(const PciConfig& config);

}  // namespace gdrbench::machines
