#include "end.hpp"

#include <algorithm>
#include <cstring>

namespace gdrbench::conformance {
namespace {

ibv_qp* create_queue_pair(const End& end) {
  const EndOptions& options = end.options;
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = end.cq.get();
  attr.recv_cq = end.cq.get();
  attr.srq = options.shared_receives;
  attr.cap = {.max_send_wr = options.send_slots,
              .max_recv_wr = options.shared_receives == nullptr ? options.receive_slots : 0,
              .max_send_sge = options.list_length,
              .max_recv_sge = options.shared_receives == nullptr ? options.list_length : 0,
              .max_inline_data = options.inline_bytes};
  attr.qp_type = options.type;
  attr.sq_sig_all = options.signal_all ? 1 : 0;
  if (options.send_ops == 0) {
    ibv_qp_init_attr plain{};
    plain.send_cq = attr.send_cq;
    plain.recv_cq = attr.recv_cq;
    plain.srq = attr.srq;
    plain.cap = attr.cap;
    plain.qp_type = attr.qp_type;
    plain.sq_sig_all = attr.sq_sig_all;
    return made(ibv_create_qp(end.nic.pd.get(), &plain), "ibv_create_qp");
  }
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = end.nic.pd.get();
  attr.send_ops_flags = options.send_ops;
  return made(ibv_create_qp_ex(end.nic.context.get(), &attr), "ibv_create_qp_ex");
}

}  // namespace

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  // Neither a power of two long nor a multiple of a page, so that no shifted copy looks right.
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i % 251) * 7 + i / 251 + seed * 31);
  return bytes;
}

Memory::Memory(ibv_pd* pd, std::size_t size_bytes, int access)
    : bytes_(size_bytes), region_(made(ibv_reg_mr(pd, bytes_.data(), bytes_.size(), access), "ibv_reg_mr")) {}

ibv_sge Memory::sge(std::size_t offset, std::size_t length) const {
  return {.addr = reinterpret_cast<std::uintptr_t>(bytes_.data()) + offset,
          .length = static_cast<std::uint32_t>(length),
          .lkey = region_->lkey};
}

Remote Memory::remote(std::size_t offset) const {
  return {.address = reinterpret_cast<std::uintptr_t>(bytes_.data()) + offset, .rkey = region_->rkey};
}

void Memory::fill(std::size_t offset, std::size_t length, unsigned seed) {
  std::ranges::copy(pattern(length, seed), bytes(offset, length).begin());
}

bool Memory::holds(std::size_t offset, std::size_t length, unsigned seed) const {
  return std::ranges::equal(std::span(bytes_).subspan(offset, length), pattern(length, seed));
}

bool Memory::is_untouched(unsigned seed, std::size_t offset) const {
  const std::vector<std::byte> whole = pattern(size(), seed);
  return std::equal(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes_.end(),
                    whole.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::uint64_t Memory::word(std::size_t offset) const {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + offset, sizeof value);
  return value;
}

void Memory::set_word(std::size_t offset, std::uint64_t value) {
  std::memcpy(bytes_.data() + offset, &value, sizeof value);
}

ibv_qp_init_attr small_queue_pair(ibv_cq* send_cq, ibv_cq* recv_cq) {
  ibv_qp_init_attr init{};
  init.send_cq = send_cq;
  init.recv_cq = recv_cq;
  init.cap = {
      .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  init.qp_type = IBV_QPT_RC;
  return init;
}

End::End(const Nic& its_nic, const EndOptions& its_options)
    : nic(its_nic),
      options(its_options),
      memory(nic.pd.get(), options.memory_bytes, options.region_access),
      cq(made(ibv_create_cq(nic.context.get(), options.completions, this, options.channel, 0),
              "ibv_create_cq")),
      qp(create_queue_pair(*this)) {}

ibv_qp_state End::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  succeed(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return attr.qp_state;
}

Transition to_init(const End& end) {
  Transition step;
  step.attr.qp_state = IBV_QPS_INIT;
  step.attr.pkey_index = 0;
  step.attr.port_num = port_number;
  step.attr.qp_access_flags = static_cast<unsigned>(end.options.access);
  step.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  return step;
}

Transition to_rtr(const End& end, std::uint32_t remote, const Link& link) {
  Transition step;
  step.attr.qp_state = IBV_QPS_RTR;
  step.attr.path_mtu = end.nic.port.active_mtu;
  step.attr.dest_qp_num = remote;
  step.attr.rq_psn = link.remote_psn;
  step.attr.max_dest_rd_atomic = link.outstanding;
  step.attr.min_rnr_timer = link.min_rnr_timer;
  step.attr.ah_attr = end.nic.self();
  step.mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (end.options.type == IBV_QPT_UC) step.mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  return step;
}

Transition to_rts(const Link& link) {
  Transition step;
  step.attr.qp_state = IBV_QPS_RTS;
  step.attr.sq_psn = link.psn;
  step.attr.timeout = link.timeout;
  step.attr.retry_cnt = link.retry_count;
  step.attr.rnr_retry = link.rnr_retry;
  step.attr.max_rd_atomic = link.outstanding;
  step.mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
              IBV_QP_MAX_QP_RD_ATOMIC;
  return step;
}

Transition to_rts(const End& end, const Link& link) {
  Transition step = to_rts(link);
  if (end.options.type == IBV_QPT_UC) step.mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  return step;
}

Transition to_state(ibv_qp_state state) {
  Transition step;
  step.attr.qp_state = state;
  step.mask = IBV_QP_STATE;
  return step;
}

int modify(const End& end, Transition transition) {
  return ibv_modify_qp(end.qp.get(), &transition.attr, transition.mask);
}

void connect(const End& end, std::uint32_t remote, const Link& link) {
  succeed(modify(end, to_init(end)), "ibv_modify_qp to INIT");
  succeed(modify(end, to_rtr(end, remote, link)), "ibv_modify_qp to RTR");
  succeed(modify(end, to_rts(end, link)), "ibv_modify_qp to RTS");
}

void connect(const End& left, const End& right, const Link& link) {
  Link back = link;
  std::swap(back.psn, back.remote_psn);
  connect(left, right.number(), link);
  connect(right, left.number(), back);
}

}  // namespace gdrbench::conformance
