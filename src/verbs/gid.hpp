#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gdrbench::verbs {

/// The 128-bit address of a port, in network byte order. Ends exchange these bytes, never table indexes.
using GidBytes = std::array<std::uint8_t, 16>;

enum class GidType { infiniband, roce_v1, roce_v2 };

/// One filled slot of a port's GID table.
struct GidEntry {
  GidBytes gid{};
  GidType type = GidType::infiniband;
  int index = 0;                     ///< slot in the port's table
  std::uint32_t netdev_ifindex = 0;  ///< 0: none
};

/// Index of the GID to use: RoCE v2 IPv4-mapped, then v2 global IPv6, v2 unique-local (fc00::/7), v2
/// link-local (fe80::/10), then v1; the lowest index among equals. InfiniBand ports have one kind and give
/// their first.
std::optional<int> choose_gid(std::span<const GidEntry> table);

/// 32 hexadecimal digits.
std::string to_hex(const GidBytes& gid);
/// Throws Error when the text is not 32 hexadecimal digits.
GidBytes gid_from_hex(std::string_view text);

/// ::ffff:a.b.c.d
bool is_ipv4_mapped(const GidBytes& gid);
/// fe80::/10
bool is_link_local(const GidBytes& gid);
/// "10.0.0.5" for a mapped address, else IPv6 notation.
std::string to_ip(const GidBytes& gid);

}  // namespace gdrbench::verbs
