// ibv_post_send and ibv_post_recv.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "abi/operations.hpp"
#include "abi/posting.hpp"
#include "nic/address_handle.hpp"
#include "nic/engine.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
namespace posting {

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

}  // namespace posting

namespace {

using namespace posting;

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

}  // namespace gdrbench::softverbs
