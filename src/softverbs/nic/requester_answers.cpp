// What the responder answers, and what becomes of the work requests by it.
#include <algorithm>
#include <array>
#include <cerrno>

#include "nic/queue_pair.hpp"
#include "nic/requester.hpp"
#include "nic/scatter_gather.hpp"
#include "nic/timers.hpp"

namespace gdrbench::softverbs {

void Requester::take_answers(StepResult& result) {
  if (link_ == nullptr) return;
  int frames = 0;
  for (; frames < frames_a_step && qp_.may_send(); ++frames) {
    const FrameHeader* const answer = link_->next();
    if (answer == nullptr || !handle(*answer, result)) break;
    link_->consume();
  }
  link_->release();
  result.frames += static_cast<std::size_t>(frames);
  result.more |= frames == frames_a_step;
}

SendWork* Requester::outstanding(std::uint32_t message) {
  const std::uint32_t place = message - front_message_;
  if (place >= qp_.sends.size() || !qp_.sends[place].begun || place > in_flight_) return nullptr;
  return &qp_.sends[place];
}

// Answers come in the order of the requests: one says that all before are done.
bool Requester::finish_until(std::uint32_t message) {
  while (front_message_ != message) {
    SendWork& front = qp_.sends.front();
    if (in_flight_ == 0 || (front.is_read_or_atomic() && !front.done)) return false;
    complete_front();
  }
  return true;
}

void Requester::complete_front() {
  SendWork& front = qp_.sends.front();
  if (front.is_read_or_atomic()) {
    --reads_in_flight_;
    if (front.length >= reference_bytes) --large_reads_in_flight_;
  }
  qp_.complete_send(front);
  qp_.sends.pop();
  --in_flight_;
  ++front_message_;
  rnr_retries_ = 0;
}

// False: the frame stays, to be continued.
bool Requester::handle(const FrameHeader& answer, StepResult& result) {
  SendWork* const work = qp_.is_reliable() ? outstanding(answer.message) : nullptr;
  const auto malformed = [&] {
    link_->shut("an answer that fits no request");
    return true;
  };
  if (work == nullptr || !finish_until(answer.message)) return malformed();
  switch (answer.type) {
    case FrameType::ack:
      if (!work->sent || work->is_read_or_atomic()) return malformed();
      complete_front();
      return true;
    case FrameType::nak:
      if (answer.code == IBV_WC_SUCCESS || answer.code > IBV_WC_GENERAL_ERR) return malformed();
      fail_front(static_cast<ibv_wc_status>(answer.code));
      return true;
    case FrameType::rnr:
      if (qp_.attributes.rnr_retry != rnr_without_end && ++rnr_retries_ > qp_.attributes.rnr_retry)
        fail_front(IBV_WC_RNR_RETRY_EXC_ERR);
      return true;
    case FrameType::read_data:
      return handle_read_data(answer, *work) || malformed();
    case FrameType::read_reference:
      if (work->opcode != IBV_WR_RDMA_READ || !work->sent) return malformed();
      return handle_read_reference(answer, *work, result);
    case FrameType::atomic_result: {
      if (work->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD && work->opcode != IBV_WR_ATOMIC_CMP_AND_SWP)
        return malformed();
      if (!work->sent) return malformed();
      std::uint64_t before = answer.operand;
      const Source source{.payload = {std::as_writable_bytes(std::span(&before, 1)), {}}};
      if (qp_.list_of(*work).scatter(0, source, 0, sizeof before) != 0) {
        fail_front(IBV_WC_LOC_PROT_ERR);
      } else {
        work->done = true;
        complete_front();
      }
      return true;
    }
    default:
      return malformed();
  }
}

bool Requester::handle_read_data(const FrameHeader& answer, SendWork& work) {
  if (work.opcode != IBV_WR_RDMA_READ || !work.sent || answer.offset != work.moved ||
      answer.payload_bytes > work.length - work.moved)
    return false;
  const Source source{.payload = link_->payload()};
  if (qp_.list_of(work).scatter(work.moved, source, 0, answer.payload_bytes) != 0) {
    fail_front(IBV_WC_LOC_PROT_ERR);
    return true;
  }
  work.moved += answer.payload_bytes;
  if (work.moved == work.length) complete_read(work);
  return true;
}

bool Requester::handle_read_reference(const FrameHeader& answer, SendWork& work, StepResult& result) {
  std::array<Segment, max_segments> segments;
  const std::size_t count = copy_segments(link_->payload(), answer, segments);
  const Source source{.payload = {}, .link = link_.get(), .segments = {segments.data(), count}};
  if (source.size() != work.length) {
    link_->shut("a reference to data of another length");
    return true;
  }
  const std::uint64_t bytes = std::min(work.length - work.moved, bytes_a_step);
  if (const int error = qp_.list_of(work).scatter(work.moved, source, work.moved, bytes); error != 0) {
    if (error == EACCES) {
      fail_front(IBV_WC_LOC_PROT_ERR);
    } else if (error == EIO) {
      fail_front(IBV_WC_LOC_QP_OP_ERR);  // the GPU's driver
    } else {
      link_->shut(
          "the peer's memory cannot be read");  // it is being ended: what is under way finds no answer
    }
    return true;
  }
  work.moved += bytes;
  if (work.moved < work.length) {
    result.more = true;
    return false;
  }
  complete_read(work);
  return true;
}

void Requester::complete_read(SendWork& work) {
  if (work.corrupt && work.length > 0) {
    std::byte changed{};
    const RingSpans place{std::span(&changed, 1), {}};
    static_cast<void>(qp_.list_of(work).gather(work.corrupt_byte(), place));
    changed ^= corrupt_bit;
    static_cast<void>(qp_.list_of(work).scatter(work.corrupt_byte(), {.payload = place}, 0, 1));
  }
  work.done = true;
  complete_front();
}

}  // namespace gdrbench::softverbs
