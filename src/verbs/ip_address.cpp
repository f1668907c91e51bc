#include "verbs/ip_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "gdrbench/error.hpp"
#include "verbs/sysfs.hpp"

namespace gdrbench::verbs {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

// IPv4 alone: an IPoIB interface without it is set up by hand anyway, and then has it.
std::string ipoib_address(const Device& device) {
  const std::vector<std::string> names = netdevs(device.name());
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) throw SystemError(errno, "list the addresses of the network interfaces");
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(first);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if (std::find(names.begin(), names.end(), entry->ifa_name) == names.end()) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    std::array<char, INET_ADDRSTRLEN> text{};
    return inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  }
  throw Unavailable(
      fmt::format("rdma_cm needs an IPv4 address on an IPoIB interface of {}: there is none", device.name()));
}

}  // namespace

IpAddress ip_address(const Device& device, const GidEntry& gid) {
  if (gid.type == GidType::infiniband) return {.ip = ipoib_address(device)};
  return {.ip = to_ip(gid.gid), .scope = is_link_local(gid.gid) ? gid.netdev_ifindex : 0};
}

sockaddr_storage socket_address(const IpAddress& address, std::uint16_t port) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, address.ip.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&storage, &v4, sizeof v4);
  } else if (inet_pton(AF_INET6, address.ip.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_scope_id = address.scope;
    std::memcpy(&storage, &v6, sizeof v6);
  } else {
    throw Error(fmt::format("'{}' is no IP address", address.ip));
  }
  return storage;
}

}  // namespace gdrbench::verbs
