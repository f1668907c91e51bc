#include "verbs/queue_pair.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gdrbench/error.hpp"
#include "verbs/check.hpp"
#include "verbs/port.hpp"

namespace gdrbench::verbs {
namespace {

// Far above any data-centre path; RoCE v1 and InfiniBand within a subnet ignore it.
constexpr std::uint8_t hop_limit = 64;

void check_depth(const Device& device, std::uint32_t depth, const char* queue) {
  const auto allowed = static_cast<std::uint32_t>(device.attributes().max_qp_wr);
  if (depth > allowed)
    throw Unavailable(fmt::format("a {} queue of {} requests is needed, {} allows {}: use less depth", queue,
                                  depth, device.name(), allowed));
}

bool is_reliable(const QueuePair& pair) {
  return pair.get()->qp_type == IBV_QPT_RC;
}

void modify(const QueuePair& pair, ibv_qp_attr& attributes, int mask, const char* state) {
  check_returned(
      ibv_modify_qp(pair.get(), &attributes, mask), Step::modify_queue_pair,
      fmt::format("move queue pair {} on {} to {}", pair.number(), pair.get()->context->device->name, state));
}

}  // namespace

QueuePair::QueuePair(std::shared_ptr<const ProtectionDomain> domain,
                     std::shared_ptr<const CompletionQueue> completions,
                     const QueuePairAttributes& attributes) {
  check_depth(domain->device(), attributes.send_depth, "send");
  check_depth(domain->device(), attributes.receive_depth, "receive");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = completions->get();
  wanted.recv_cq = completions->get();
  wanted.qp_type = attributes.transport == Transport::uc ? IBV_QPT_UC : IBV_QPT_RC;
  wanted.cap = {.max_send_wr = attributes.send_depth,
                .max_recv_wr = attributes.receive_depth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = attributes.inline_bytes};
  ibv_qp_init_attr granted = wanted;
  ibv_qp* pair = ibv_create_qp(domain->get(), &granted);
  if (pair == nullptr && attributes.inline_bytes > 0 && (errno == EINVAL || errno == ENOMEM)) {
    granted = wanted;
    granted.cap.max_inline_data = 0;
    pair = ibv_create_qp(domain->get(), &granted);
  }
  check_pointer(pair, Step::create, fmt::format("create queue pair on {}", domain->device().name()));
  inline_bytes_ = granted.cap.max_inline_data;
  pair_ = own<DestroyQueuePair>(pair, std::move(domain), std::move(completions));
}

ibv_ah_attr make_address(const AddressAttributes& attributes) {
  ibv_ah_attr address{};
  address.port_num = attributes.port;
  address.sl = attributes.service_level;
  address.dlid = attributes.destination_lid;
  if (attributes.global_route) {
    address.is_global = 1;
    address.grh.sgid_index = static_cast<std::uint8_t>(attributes.source_gid_index);
    address.grh.hop_limit = hop_limit;
    address.grh.traffic_class = attributes.traffic_class;
    std::copy(attributes.destination_gid.begin(), attributes.destination_gid.end(), address.grh.dgid.raw);
  }
  return address;
}

void to_init(const QueuePair& pair, const InitAttributes& attributes) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = attributes.port;
  attr.pkey_index = 0;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (is_reliable(pair)) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
  modify(pair, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

void to_ready_to_receive(const QueuePair& pair, const ReadyToReceiveAttributes& attributes) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.ah_attr = attributes.address;
  attr.dest_qp_num = attributes.destination_qpn;
  attr.rq_psn = attributes.receive_psn;
  attr.path_mtu = mtu_code(attributes.path_mtu_bytes);
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU;
  if (is_reliable(pair)) {
    attr.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
    attr.min_rnr_timer = attributes.min_rnr_timer;
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  modify(pair, attr, mask, "RTR");
}

void to_ready_to_send(const QueuePair& pair, const ReadyToSendAttributes& attributes) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = attributes.send_psn;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (is_reliable(pair)) {
    attr.max_rd_atomic = attributes.max_rd_atomic;
    attr.timeout = attributes.timeout;
    attr.retry_cnt = attributes.retry_count;
    attr.rnr_retry = attributes.rnr_retry;
    mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  }
  modify(pair, attr, mask, "RTS");
}

}  // namespace gdrbench::verbs
