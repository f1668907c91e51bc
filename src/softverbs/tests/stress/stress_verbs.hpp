#pragma once

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "stress_plan.hpp"

/// Verbs objects that end themselves, and the way of a queue pair to RTS.
namespace gdrbench::softverbs {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Context = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>>;

inline constexpr std::uint32_t queue_depth = 2 * max_depth;  ///< work requests
inline constexpr std::uint8_t max_rd_atomic = 16;

[[noreturn]] inline void fail(const std::string& tried, int error) {
  throw std::runtime_error(fmt::format("{}: {} ({})", tried, strerrorname_np(error), strerror(error)));
}

template <class T>
T* check_made(T* object, const char* tried) {
  if (object == nullptr) fail(tried, errno);
  return object;
}

inline void check_zero(int returned, const char* tried) {
  if (returned != 0) fail(tried, returned > 0 ? returned : -returned);
}

/// The device of this name, else that of $RDMA_DEVICE, else the first.
inline Context open_device(std::string name) {
  if (const char* wanted = std::getenv("RDMA_DEVICE"); name.empty() && wanted != nullptr) name = wanted;
  int count = 0;
  const std::unique_ptr<ibv_device*, Destroy<ibv_free_device_list>> list{
      check_made(ibv_get_device_list(&count), "list RDMA devices")};
  for (int i = 0; i < count; ++i) {
    ibv_device* device = list.get()[i];
    if (!name.empty() && name != ibv_get_device_name(device)) continue;
    return Context{check_made(ibv_open_device(device), "open the RDMA device")};
  }
  throw std::runtime_error(fmt::format("no RDMA device {}among {}; see ibv_devices, or preload softverbs",
                                       name.empty() ? "" : "named '" + name + "' ", count));
}

struct Address {
  std::uint16_t lid = 0;
  std::uint8_t gid_index = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  ibv_gid gid{};
};

/// Port 1, with the GID that is an IPv4 address where there is one, else the first.
inline Address find_address(ibv_context* context) {
  ibv_port_attr port{};
  check_zero(ibv_query_port(context, 1, &port), "query port 1");
  if (port.state != IBV_PORT_ACTIVE) throw std::runtime_error("port 1 is not active");
  Address address{.lid = port.lid, .mtu = port.active_mtu};
  check_zero(ibv_query_gid(context, 1, 0, &address.gid), "query GID 0");
  constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  for (int i = 0; i < std::min(port.gid_tbl_len, 32); ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(context, 1, i, &gid) != 0 || std::memcmp(gid.raw, mapped.data(), mapped.size()) != 0)
      continue;
    address.gid = gid;
    address.gid_index = static_cast<std::uint8_t>(i);
    break;
  }
  return address;
}

/// What a device can do of what is asked for here.
struct Limits {
  std::uint32_t pieces = 1;
  std::uint8_t rd_atomic = 1;

  static Limits of(ibv_context* context) {
    ibv_device_attr device{};
    check_zero(ibv_query_device(context, &device), "query the device");
    return {std::min<std::uint32_t>(max_pieces, device.max_sge),
            static_cast<std::uint8_t>(
                std::min<int>(max_rd_atomic, std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom)))};
  }
};

/// What the other end has to know of a queue pair and the memory behind it.
struct Endpoint {
  Address address;
  std::uint32_t qp_num = 0, psn = 0;
  std::uint64_t ring_address = 0, words_address = 0, sum_address = 0;
  std::uint32_t ring_rkey = 0, words_rkey = 0, sum_rkey = 0;
};

inline void connect(ibv_qp* qp, const Limits& limits, const Endpoint& own, const Endpoint& remote) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  check_zero(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
             "move the queue pair to INIT");
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = std::min(own.address.mtu, remote.address.mtu);
  attr.dest_qp_num = remote.qp_num;
  attr.rq_psn = remote.psn;
  attr.max_dest_rd_atomic = limits.rd_atomic;
  attr.min_rnr_timer = 12;  // 0.64 ms
  attr.ah_attr.dlid = remote.address.lid;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = remote.address.gid;
  attr.ah_attr.grh.sgid_index = own.address.gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  check_zero(ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             "move the queue pair to RTR");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 20;  // 4.3 s: no retransmission merely because the machine is busy
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.sq_psn = own.psn;
  attr.max_rd_atomic = limits.rd_atomic;
  check_zero(ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
             "move the queue pair to RTS");
}

}  // namespace gdrbench::softverbs
