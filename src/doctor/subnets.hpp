#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// The IPv4 subnets that netdevs are attached to, from /proc/net/route: addresses themselves are in no file
/// that says whose they are.
namespace gdrbench::doctor {

struct Subnet {
  std::uint32_t address = 0, mask = 0;  ///< in the order of the processor
  friend bool operator<(const Subnet& a, const Subnet& b) {
    return std::tie(a.address, a.mask) < std::tie(b.address, b.mask);
  }
};

/// "10.0.0.0/24".
std::string to_string(const Subnet& subnet);
/// Of RFC 3927, 169.254.0.0/16: distributions give it to interfaces without being asked.
bool is_link_local(std::uint32_t address);

struct AttachedSubnet {
  std::string netdev;
  Subnet subnet;
};

/// The main table's routes without a gateway to more than one address; the kernel makes one for each address.
std::vector<AttachedSubnet> attached_subnets(std::string_view route_table);

/// The same as /proc/net/route would hold them, without a newline at the end.
std::string route_table(const std::vector<AttachedSubnet>& attached);

inline constexpr const char* route_file = "proc/net/route";
inline constexpr std::size_t most_route_bytes = 16 << 20;

}  // namespace gdrbench::doctor
