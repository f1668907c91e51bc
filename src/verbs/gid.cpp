#include "verbs/gid.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

// Smaller is better.
int rank(const GidEntry& entry) {
  if (entry.type == GidType::infiniband) return 0;
  if (entry.type == GidType::roce_v1) return 5;
  if (is_ipv4_mapped(entry.gid)) return 1;
  if (is_link_local(entry.gid)) return 4;
  if ((entry.gid[0] & 0xfe) == 0xfc) return 3;
  return 2;
}

}  // namespace

std::optional<int> choose_gid(std::span<const GidEntry> table) {
  const auto best = std::min_element(table.begin(), table.end(), [](const GidEntry& a, const GidEntry& b) {
    return std::pair(rank(a), a.index) < std::pair(rank(b), b.index);
  });
  if (best == table.end()) return std::nullopt;
  return best->index;
}

std::string to_hex(const GidBytes& gid) {
  std::string text;
  for (const std::uint8_t byte : gid) text += fmt::format("{:02x}", byte);
  return text;
}

GidBytes gid_from_hex(std::string_view text) {
  GidBytes gid{};
  bool valid = text.size() == 2 * gid.size();
  for (std::size_t i = 0; valid && i < gid.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, gid[i], 16);
    valid = error == std::errc{} && end == digits + 2;
  }
  if (!valid) throw Error(fmt::format("GID '{}' is not 32 hexadecimal digits", text));
  return gid;
}

bool is_ipv4_mapped(const GidBytes& gid) {
  constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(prefix.begin(), prefix.end(), gid.begin());
}

bool is_link_local(const GidBytes& gid) {
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

std::string to_ip(const GidBytes& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_ipv4_mapped(gid))
    inet_ntop(AF_INET, &gid[12], text.data(), text.size());
  else
    inet_ntop(AF_INET6, gid.data(), text.data(), text.size());
  return text.data();
}

}  // namespace gdrbench::verbs
