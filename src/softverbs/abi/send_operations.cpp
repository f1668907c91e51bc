// ibv_wr_start … ibv_wr_complete: requests are staged in the send queue, and posted or dropped together.
#include "abi/send_operations.hpp"

#include <cerrno>

#include "abi/posting.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace posting;

QueuePair& of(ibv_qp_ex* qp) {
  return *static_cast<QueuePair*>(qp);
}

// The lock is held from start to complete or abort, as the interface has it: one thread builds a list.
void start(ibv_qp_ex* qp) {
  of(qp).lock.lock();
  of(qp).staging_error = accepts_sends(of(qp)) ? 0 : EINVAL;
}

SendWork* add(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  QueuePair& queue_pair = of(qp);
  if (queue_pair.staging_error != 0) return nullptr;
  SendWork* const work = queue_pair.sends.stage();
  if (work == nullptr) {
    queue_pair.staging_error = ENOMEM;
    return nullptr;
  }
  work->id = qp->wr_id;
  work->flags = qp->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  work->opcode = opcode;
  return work;
}

void add_remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t remote_address,
                std::uint32_t immediate = 0, std::uint64_t compare_add = 0, std::uint64_t swap = 0) {
  if (SendWork* const work = add(qp, opcode); work != nullptr) {
    work->rkey = rkey;
    work->remote_address = remote_address;
    work->immediate = immediate;
    work->compare_add = compare_add;
    work->swap = swap;
  }
}

void send(ibv_qp_ex* qp) {
  add(qp, IBV_WR_SEND);
}

void send_imm(ibv_qp_ex* qp, __be32 immediate) {
  if (SendWork* const work = add(qp, IBV_WR_SEND_WITH_IMM); work != nullptr) work->immediate = immediate;
}

void rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_address) {
  add_remote(qp, IBV_WR_RDMA_WRITE, rkey, remote_address);
}

void rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_address, __be32 immediate) {
  add_remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_address, immediate);
}

void rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_address) {
  add_remote(qp, IBV_WR_RDMA_READ, rkey, remote_address);
}

void atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_address, std::uint64_t compare,
                    std::uint64_t swap) {
  add_remote(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_address, 0, compare, swap);
}

void atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_address, std::uint64_t value) {
  add_remote(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_address, 0, value);
}

// The request that the setters are about.
template <class Setter>
void set(ibv_qp_ex* qp, Setter setter) {
  QueuePair& queue_pair = of(qp);
  if (queue_pair.staging_error != 0) return;
  queue_pair.staging_error =
      queue_pair.sends.staged() == 0
          ? EINVAL
          : setter(queue_pair.sends[queue_pair.sends.size() + queue_pair.sends.staged() - 1]);
}

void set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  set(qp, [&](SendWork& work) { return set_segments(of(qp), work, list, count); });
}

void set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  const ibv_sge segment{address, length, lkey};
  set_sge_list(qp, 1, &segment);
}

void set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  set(qp, [&](SendWork& work) {
    work.flags |= IBV_SEND_INLINE;
    int error = 0;
    for (std::size_t i = 0; i < count && error == 0; ++i)
      error = add_inline(of(qp), work, list[i].addr, list[i].length);
    return error;
  });
}

void set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  const ibv_data_buf one{address, length};
  set_inline_data_list(qp, 1, &one);
}

void set_ud_addr(ibv_qp_ex* qp, ibv_ah* handle, std::uint32_t qpn, std::uint32_t qkey) {
  set(qp, [&](SendWork& work) { return set_destination(work, handle, qpn, qkey); });
}

void abort(ibv_qp_ex* qp) {
  of(qp).sends.drop_staged(of(qp).sends.staged());
  of(qp).lock.unlock();
}

int complete(ibv_qp_ex* qp) {
  QueuePair& queue_pair = of(qp);
  if (Faults::instance().any() && queue_pair.staging_error == 0)
    queue_pair.staging_error = Faults::instance().on_call("ibv_post_send");
  const int error = queue_pair.staging_error;
  if (error != 0) {
    abort(qp);
    return error;
  }
  post_staged(queue_pair);
  queue_pair.lock.unlock();
  return 0;
}

}  // namespace

void install_send_operations(QueuePair& queue_pair) {
  queue_pair.wr_start = start;
  queue_pair.wr_complete = complete;
  queue_pair.wr_abort = abort;
  queue_pair.wr_send = send;
  queue_pair.wr_send_imm = send_imm;
  queue_pair.wr_set_sge = set_sge;
  queue_pair.wr_set_sge_list = set_sge_list;
  queue_pair.wr_set_inline_data = set_inline_data;
  queue_pair.wr_set_inline_data_list = set_inline_data_list;
  if (!queue_pair.is_connected()) {
    queue_pair.wr_set_ud_addr = set_ud_addr;
    return;
  }
  queue_pair.wr_rdma_write = rdma_write;
  queue_pair.wr_rdma_write_imm = rdma_write_imm;
  if (!queue_pair.is_reliable()) return;
  queue_pair.wr_rdma_read = rdma_read;
  queue_pair.wr_atomic_cmp_swp = atomic_cmp_swp;
  queue_pair.wr_atomic_fetch_add = atomic_fetch_add;
}

}  // namespace gdrbench::softverbs
