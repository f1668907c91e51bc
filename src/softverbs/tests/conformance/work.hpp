#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

/// Work requests and their completions, as values.
namespace gdrbench::conformance {

/// A place in a remote's memory.
struct Remote {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

/// Where a datagram goes.
struct Datagram {
  ibv_ah* handle = nullptr;
  std::uint32_t qp_num = 0;
  std::uint32_t qkey = 0;
};

inline constexpr unsigned unsignaled = 0, signaled = IBV_SEND_SIGNALED;

struct Send {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint64_t id = 0;
  std::vector<ibv_sge> list{};
  Remote remote{};
  unsigned flags = IBV_SEND_SIGNALED;
  std::uint32_t immediate = 0;  ///< host byte order
  std::uint64_t operand = 0;    ///< what FETCH_ADD adds, what CMP_SWAP compares with
  std::uint64_t swap = 0;
  Datagram datagram{};  ///< of a UD queue pair
};

struct Receive {
  std::uint64_t id = 0;
  std::vector<ibv_sge> list{};
};

/// What came of posting a chain of requests: an errno value, and the number of those before bad_wr; the whole
/// number where the error is 0.
struct Posted {
  int error = 0;
  std::size_t accepted = 0;
  friend bool operator==(const Posted&, const Posted&) = default;
};
std::ostream& operator<<(std::ostream& out, const Posted& posted);

Posted post_chain(ibv_qp* qp, std::span<const Send> chain);
Posted post_chain(ibv_qp* qp, std::span<const Receive> chain);
Posted post_chain(ibv_srq* srq, std::span<const Receive> chain);

/// One request. Returns an errno value.
inline int post(ibv_qp* qp, const Send& send) {
  return post_chain(qp, std::span(&send, 1)).error;
}
inline int post(ibv_qp* qp, const Receive& receive) {
  return post_chain(qp, std::span(&receive, 1)).error;
}
inline int post(ibv_srq* srq, const Receive& receive) {
  return post_chain(srq, std::span(&receive, 1)).error;
}

/// The next `count` completions, in the order of the queue; fewer when they do not come within 20 s.
std::vector<ibv_wc> take(ibv_cq* cq, std::size_t count);
/// Whether nothing waits in the queue.
bool is_empty(ibv_cq* cq);

/// What a completion says whatever its status.
struct Outcome {
  std::uint64_t id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

std::vector<Outcome> outcomes(std::span<const ibv_wc> completions);
inline std::vector<Outcome> outcomes(ibv_cq* cq, std::size_t count) {
  return outcomes(take(cq, count));
}
/// `count` successes, numbered upwards from `first`.
std::vector<Outcome> successes(std::uint64_t first, std::size_t count);

/// SEND, RDMA_WRITE, …: fit for the name of a test.
std::string opcode_name(ibv_wr_opcode opcode);
/// The opcode that the requester's completion has.
ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode);
/// Whether the responder must have posted a receive.
inline bool takes_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
inline bool is_send(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}
inline bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
inline bool has_immediate(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

}  // namespace gdrbench::conformance
