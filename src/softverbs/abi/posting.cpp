// The two ways of posting: ibv_post_send and ibv_post_recv, and ibv_wr_start … ibv_wr_complete.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/verbs.hpp"
#include "nic/context.hpp"
#include "nic/engine.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
namespace {

// What both share. Functions return 0 or an errno value and are called under the lock of the queue pair.

// Whether the state takes send requests; in an error state they are flushed at once.
bool accepts_sends(const QueuePair& queue_pair) {
  const ibv_qp_state state = queue_pair.qp_base.state;
  return queue_pair.may_send() || state == IBV_QPS_ERR || state == IBV_QPS_SQE;
}

bool opcode_allowed(ibv_qp_type type, ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

int set_segments(const QueuePair& queue_pair, SendWork& work, const ibv_sge* list, std::size_t count) {
  if (count > queue_pair.capacity.max_send_sge) return EINVAL;
  work.segments = static_cast<int>(count);
  std::copy_n(list, count, work.sg_list.begin());
  work.length = 0;
  for (std::size_t i = 0; i < count; ++i) work.length += list[i].length;
  return 0;
}

// Copies data behind what the request has already.
int add_inline(const QueuePair& queue_pair, SendWork& work, const void* data, std::size_t bytes) {
  if (work.is_read_or_atomic() || work.inline_data.size() + bytes > queue_pair.capacity.max_inline_data)
    return EINVAL;
  const auto* const first = static_cast<const std::byte*>(data);
  work.inline_data.insert(work.inline_data.end(), first, first + bytes);
  work.length = work.inline_data.size();
  return 0;
}

int set_destination(SendWork& work, ibv_ah* handle, std::uint32_t qpn, std::uint32_t qkey) {
  if (handle == nullptr) return EINVAL;
  work.destination = AddressHandle::of(handle).attributes;
  work.destination_qpn = qpn;
  work.qkey = qkey;
  return 0;
}

// Posts what was staged, and sends what can be sent.
int post_staged(QueuePair& queue_pair) {
  if (Faults::instance().any())
    for (std::size_t i = 0; i < queue_pair.sends.staged(); ++i)
      queue_pair.sends[queue_pair.sends.size() + i].fault = Faults::instance().on_work_request();
  queue_pair.sends.post_staged();
  if (queue_pair.may_send()) {
    queue_pair.nic->engine().wake_by(QueuePair::wake_time(queue_pair.step()));
  } else {
    queue_pair.flush_sends();
    queue_pair.settle();
  }
  return 0;
}

int stage(QueuePair& queue_pair, const ibv_send_wr& request) {
  const ibv_qp_type type = queue_pair.qp_base.qp_type;
  if (!opcode_allowed(type, request.opcode)) return EINVAL;
  SendWork* const work = queue_pair.sends.stage();
  if (work == nullptr) return ENOMEM;
  work->id = request.wr_id;
  work->opcode = request.opcode;
  work->flags = request.send_flags;
  work->immediate = request.imm_data;
  if (type == IBV_QPT_UD) {
    if (const int error =
            set_destination(*work, request.wr.ud.ah, request.wr.ud.remote_qpn, request.wr.ud.remote_qkey);
        error != 0)
      return error;
  } else if (work->is_read_or_atomic() && work->opcode != IBV_WR_RDMA_READ) {
    work->remote_address = request.wr.atomic.remote_addr;
    work->rkey = request.wr.atomic.rkey;
    work->compare_add = request.wr.atomic.compare_add;
    work->swap = request.wr.atomic.swap;
  } else {
    work->remote_address = request.wr.rdma.remote_addr;
    work->rkey = request.wr.rdma.rkey;
  }
  if (request.num_sge < 0) return EINVAL;
  const auto count = static_cast<std::size_t>(request.num_sge);
  if ((request.send_flags & IBV_SEND_INLINE) == 0)
    return set_segments(queue_pair, *work, request.sg_list, count);
  if (count > queue_pair.capacity.max_send_sge) return EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    const ibv_sge& segment = request.sg_list[i];
    const auto* const data = reinterpret_cast<const void*>(segment.addr);
    if (const int error = add_inline(queue_pair, *work, data, segment.length); error != 0) return error;
  }
  return 0;
}

}  // namespace

// Requests before the first bad one are executed.
int operations::post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  QueuePair& queue_pair = QueuePair::of(qp);
  if (Faults::instance().any()) {
    if (const int error = Faults::instance().on_call("ibv_post_send"); error != 0) {
      *bad = list;
      return error;
    }
  }
  const std::lock_guard guard(queue_pair.lock);
  if (!accepts_sends(queue_pair)) {
    *bad = list;
    return EINVAL;
  }
  int error = 0;
  for (; list != nullptr; list = list->next) {
    const std::size_t before = queue_pair.sends.staged();
    error = stage(queue_pair, *list);
    if (error == 0) continue;
    queue_pair.sends.drop_staged(queue_pair.sends.staged() - before);
    *bad = list;
    break;
  }
  post_staged(queue_pair);
  return error;
}

int operations::post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (Faults::instance().any()) {
    if (const int error = Faults::instance().on_call("ibv_post_recv"); error != 0) {
      *bad = list;
      return error;
    }
  }
  return QueuePair::of(qp).post_receives(list, bad);
}

// ibv_wr_start … ibv_wr_complete: requests are staged in the send queue, and posted or dropped together.
namespace {
namespace batch {

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

}  // namespace batch
}  // namespace

void install_send_operations(QueuePair& queue_pair) {
  queue_pair.wr_start = batch::start;
  queue_pair.wr_complete = batch::complete;
  queue_pair.wr_abort = batch::abort;
  queue_pair.wr_send = batch::send;
  queue_pair.wr_send_imm = batch::send_imm;
  queue_pair.wr_set_sge = batch::set_sge;
  queue_pair.wr_set_sge_list = batch::set_sge_list;
  queue_pair.wr_set_inline_data = batch::set_inline_data;
  queue_pair.wr_set_inline_data_list = batch::set_inline_data_list;
  if (!queue_pair.is_connected()) {
    queue_pair.wr_set_ud_addr = batch::set_ud_addr;
    return;
  }
  queue_pair.wr_rdma_write = batch::rdma_write;
  queue_pair.wr_rdma_write_imm = batch::rdma_write_imm;
  if (!queue_pair.is_reliable()) return;
  queue_pair.wr_rdma_read = batch::rdma_read;
  queue_pair.wr_atomic_cmp_swp = batch::atomic_cmp_swp;
  queue_pair.wr_atomic_fetch_add = batch::atomic_fetch_add;
}

}  // namespace gdrbench::softverbs
