#include "nic.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace gdrbench::conformance {
namespace {

using DeviceList = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;

ibv_context* open(const std::string& name) {
  const DeviceList list(ibv_get_device_list(nullptr), &ibv_free_device_list);
  for (ibv_device** device = list.get(); device != nullptr && *device != nullptr; ++device)
    if (name == ibv_get_device_name(*device)) return made(ibv_open_device(*device), "ibv_open_device");
  throw std::runtime_error("no RDMA device '" + name + "', which RDMA_DEVICE names: see ibv_devices");
}

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), gid.raw);
}

bool is_readable(int fd, int timeout_ms) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

}  // namespace

std::string device_name() {
  if (const char* const named = std::getenv("RDMA_DEVICE"); named != nullptr) return named;
  const DeviceList list(ibv_get_device_list(nullptr), &ibv_free_device_list);
  return list && *list ? ibv_get_device_name(*list) : "";
}

Nic::Nic() : context(open(device_name())), pd(made(ibv_alloc_pd(context.get()), "ibv_alloc_pd")) {
  succeed(ibv_query_device(context.get(), &attributes), "ibv_query_device");
  succeed(ibv_query_port(context.get(), port_number, &port), "ibv_query_port");
  bool found = false;
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context.get(), port_number, static_cast<std::uint32_t>(index), &entry, 0) != 0)
      continue;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || (found && !is_ipv4(entry.gid))) continue;
    gid_index = index;
    gid = entry.gid;
    found = true;
    if (is_ipv4(gid)) break;
  }
  if (!found)
    throw std::runtime_error(device_name() + " has no RoCE v2 GID at port 1: give its netdev an address");
}

ibv_ah_attr Nic::self() const {
  ibv_ah_attr address{};
  address.is_global = 1;
  address.port_num = port_number;
  address.grh.dgid = gid;
  address.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
  address.grh.hop_limit = 64;
  return address;
}

void Conformance::SetUp() {
  if (device_name().empty()) GTEST_SKIP() << "libibverbs finds no RDMA device";
  nic_.emplace();
}

std::optional<ibv_async_event> next_event(const Nic& nic) {
  ibv_async_event event{};
  if (!is_readable(nic.context->async_fd, 20'000)) return std::nullopt;
  if (ibv_get_async_event(nic.context.get(), &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  return event;
}

bool event_waits(const Nic& nic) {
  return is_readable(nic.context->async_fd, 0);
}

}  // namespace gdrbench::conformance
