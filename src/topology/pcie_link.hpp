#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/root.hpp"

namespace gdrbench::topology {

/// Speed of a PCIe link: what it was trained to, and what the function at this end of it could do. 0 where
/// sysfs does not tell.
struct PcieLink {
  double transfers_per_second = 0;  ///< of a lane: 32e9 for "32.0 GT/s PCIe"
  int lanes = 0;
  double max_transfers_per_second = 0;
  int max_lanes = 0;
  bool operator==(const PcieLink&) const = default;
};

/// The link of a function on the way: of a root port and of a switch's lower port it is the one below, of all
/// others the one above.
struct Hop {
  std::string address;  ///< "0000:b9:01.0"
  PcieLink link;
  bool operator==(const Hop&) const = default;
};

/// What the function's folder in sysfs says of its link.
PcieLink read_link(const Root& root, const std::string& address);

/// Payload that so many lanes carry one way, framing and headers not counted: 8b/10b coding up to 5 GT/s,
/// 128b/130b up to 32 GT/s, flits with 236 of 256 bytes from 64 GT/s on (PCI Express Base Specification 6.0).
/// 0 where one of them is 0.
double link_bytes_per_second(double transfers_per_second, int lanes);
/// Now, and at most.
double bytes_per_second(const PcieLink& link);
double max_bytes_per_second(const PcieLink& link);

/// Of two functions' ways, the links that data from one to the other passes: those below what the ways share.
std::vector<Hop> hops_between(const std::vector<Hop>& here, const std::vector<Hop>& there);
/// The one with the least bandwidth now, of equals the first; absent where none is known.
std::optional<Hop> narrowest(const std::vector<Hop>& hops);

/// "32.0 GT/s x16", with ", at most 32.0 GT/s x16" where that is more; "unknown".
std::string to_string(const PcieLink& link);

}  // namespace gdrbench::topology
