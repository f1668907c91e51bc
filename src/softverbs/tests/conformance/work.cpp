#include "work.hpp"

#include <arpa/inet.h>

#include <chrono>
#include <thread>

namespace gdrbench::conformance {
namespace {

ibv_send_wr to_request(const Send& send) {
  ibv_send_wr request{};
  request.wr_id = send.id;
  request.sg_list = const_cast<ibv_sge*>(send.list.data());
  request.num_sge = static_cast<int>(send.list.size());
  request.opcode = send.opcode;
  request.send_flags = send.flags;
  request.imm_data = htonl(send.immediate);
  if (send.datagram.handle != nullptr) {
    request.wr.ud.ah = send.datagram.handle;
    request.wr.ud.remote_qpn = send.datagram.qp_num;
    request.wr.ud.remote_qkey = send.datagram.qkey;
  } else if (is_atomic(send.opcode)) {
    request.wr.atomic.remote_addr = send.remote.address;
    request.wr.atomic.rkey = send.remote.rkey;
    request.wr.atomic.compare_add = send.operand;
    request.wr.atomic.swap = send.swap;
  } else {
    request.wr.rdma.remote_addr = send.remote.address;
    request.wr.rdma.rkey = send.remote.rkey;
  }
  return request;
}

ibv_recv_wr to_request(const Receive& receive) {
  ibv_recv_wr request{};
  request.wr_id = receive.id;
  request.sg_list = const_cast<ibv_sge*>(receive.list.data());
  request.num_sge = static_cast<int>(receive.list.size());
  return request;
}

template <class Request, class Value, class Post>
Posted post_linked(std::span<const Value> chain, Post do_post) {
  std::vector<Request> requests;
  for (const Value& value : chain) requests.push_back(to_request(value));
  for (std::size_t i = 1; i < requests.size(); ++i) requests[i - 1].next = &requests[i];
  Request* bad = nullptr;
  const int error = do_post(requests.data(), &bad);
  if (error == 0) return {.accepted = chain.size()};
  return {.error = error,
          .accepted = bad == nullptr ? chain.size() : static_cast<std::size_t>(bad - requests.data())};
}

}  // namespace

Posted post_chain(ibv_qp* qp, std::span<const Send> chain) {
  return post_linked<ibv_send_wr>(
      chain, [=](ibv_send_wr* first, ibv_send_wr** bad) { return ibv_post_send(qp, first, bad); });
}

Posted post_chain(ibv_qp* qp, std::span<const Receive> chain) {
  return post_linked<ibv_recv_wr>(
      chain, [=](ibv_recv_wr* first, ibv_recv_wr** bad) { return ibv_post_recv(qp, first, bad); });
}

Posted post_chain(ibv_srq* srq, std::span<const Receive> chain) {
  return post_linked<ibv_recv_wr>(
      chain, [=](ibv_recv_wr* first, ibv_recv_wr** bad) { return ibv_post_srq_recv(srq, first, bad); });
}

std::vector<ibv_wc> take(ibv_cq* cq, std::size_t count) {
  std::vector<ibv_wc> all(count);
  std::size_t found = 0;
  for (const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20); found < count;) {
    const int more = ibv_poll_cq(cq, static_cast<int>(count - found), &all[found]);
    if (more < 0 || (more == 0 && std::chrono::steady_clock::now() > deadline)) break;
    if (more == 0) std::this_thread::yield();
    found += static_cast<std::size_t>(more);
  }
  all.resize(found);
  return all;
}

bool is_empty(ibv_cq* cq) {
  ibv_wc completion{};
  return ibv_poll_cq(cq, 1, &completion) == 0;
}

std::vector<Outcome> outcomes(std::span<const ibv_wc> completions) {
  std::vector<Outcome> all;
  for (const ibv_wc& completion : completions) all.push_back({completion.wr_id, completion.status});
  return all;
}

std::vector<Outcome> successes(std::uint64_t first, std::size_t count) {
  std::vector<Outcome> all(count);
  for (Outcome& outcome : all) outcome.id = first++;
  return all;
}

std::ostream& operator<<(std::ostream& out, const Posted& posted) {
  return out << "errno " << posted.error << " after " << posted.accepted;
}

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '#' << outcome.id << ' ' << ibv_wc_status_str(outcome.status) << " (" << outcome.status
             << ')';
}

std::string opcode_name(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
      return "SEND";
    case IBV_WR_SEND_WITH_IMM:
      return "SEND_WITH_IMM";
    case IBV_WR_RDMA_WRITE:
      return "RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "RDMA_WRITE_WITH_IMM";
    case IBV_WR_RDMA_READ:
      return "RDMA_READ";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return "FETCH_ADD";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return "CMP_SWAP";
    default:
      return "opcode_" + std::to_string(opcode);
  }
}

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace gdrbench::conformance
