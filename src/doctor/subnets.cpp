#include "doctor/subnets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <bit>
#include <sstream>

namespace gdrbench::doctor {
namespace {

constexpr const char* head =
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT";

// Of linux/route.h.
constexpr std::uint32_t is_up = 0x1, has_gateway = 0x2, is_host = 0x4, is_rejected = 0x200;

bool is_contiguous(std::uint32_t mask) {
  return std::countl_one(mask) == std::popcount(mask);
}

}  // namespace

std::string to_string(const Subnet& subnet) {
  return fmt::format("{}.{}.{}.{}/{}", subnet.address >> 24, subnet.address >> 16 & 255,
                     subnet.address >> 8 & 255, subnet.address & 255, std::popcount(subnet.mask));
}

bool is_link_local(std::uint32_t address) {
  return address >> 16 == 0xa9fe;
}

std::vector<AttachedSubnet> attached_subnets(std::string_view route_table) {
  std::vector<AttachedSubnet> attached;
  std::istringstream lines{std::string(route_table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string netdev, references, uses, metric;
    std::uint32_t destination = 0, gateway = 0, flags = 0, mask = 0;
    fields >> netdev >> std::hex >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    if (!fields) continue;  // the head, too
    // The kernel writes the bytes of the network as a number of the processor.
    const Subnet subnet{.address = ntohl(destination), .mask = ntohl(mask)};
    const bool is_subnet = subnet.mask != 0 && ~subnet.mask != 0 && is_contiguous(subnet.mask);
    if ((flags & is_up) != 0 && (flags & (has_gateway | is_host | is_rejected)) == 0 && is_subnet)
      attached.push_back({std::move(netdev), subnet});
  }
  return attached;
}

std::string route_table(const std::vector<AttachedSubnet>& attached) {
  std::string text = head;
  for (const auto& [netdev, subnet] : attached)
    text += fmt::format("\n{}\t{:08X}\t00000000\t{:04X}\t0\t0\t0\t{:08X}\t0\t0\t0", netdev,
                        htonl(subnet.address), is_up, htonl(subnet.mask));
  return text;
}

}  // namespace gdrbench::doctor
