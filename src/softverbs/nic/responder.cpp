#include "nic/responder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nic/queue_pair.hpp"
#include "nic/requester.hpp"
#include "nic/scatter_gather.hpp"

namespace gdrbench::softverbs {

void Responder::connect(std::unique_ptr<Link> link) {
  reset();
  link_ = std::move(link);
}

// A receive that an unfinished message has taken stays for the next one.
void Responder::reset() {
  link_.reset();
  expected_ = 0;
  begun_ = ack_due_ = waiting_ = stalled_ = dropping_ = stopped_ = false;
  moved_ = frame_moved_ = 0;
  rnr_at_ = {};
}

bool Responder::take_unfinished(ReceiveWork& work) {
  if (has_receive_) work = receive_;
  return std::exchange(has_receive_, false);
}

void Responder::step(StepResult& result) {
  if (link_ == nullptr) return;
  waiting_ = stalled_ = false;
  int frames = 0;
  bool drained = false;
  while (frames < frames_a_step && !stopped_ && qp_.may_receive()) {
    const FrameHeader* const request = link_->next();
    drained = request == nullptr;
    if (drained) break;
    // What the remote answered before it sent this shows before it, as on one wire: programs count on that.
    qp_.requester.take_answers(result);
    if (!qp_.may_receive()) break;
    const Outcome outcome = handle(*request, result);
    if (outcome == Outcome::again || outcome == Outcome::failed) {
      stalled_ = outcome == Outcome::again && !result.more;
      break;
    }
    link_->consume();
    ++frames;
  }
  result.frames += static_cast<std::size_t>(frames);
  result.more |= frames == frames_a_step;
  if (ack_due_ && link_->fits(0)) {
    FrameHeader header;
    header.type = FrameType::ack;
    header.message = expected_ - 1;
    add_answer(header);
  }
  link_->release();
  link_->flush();
  const bool over = stopped_ || !qp_.may_receive();
  // What waits for a receive when the remote gives up is not executed any more.
  if (link_->broken() ? drained || waiting_ || over : over && link_->all_sent()) reset();
}

Responder::Outcome Responder::handle(const FrameHeader& request, StepResult& result) {
  if (!qp_.is_reliable()) {
    if (!begin_unreliable(request)) return malformed("a request that an unreliable connection has not");
    if (dropping_) return Outcome::dropped;
  }
  if (request.message != expected_) return malformed("a request out of order");
  switch (request.type) {
    case FrameType::send:
      return handle_send(request, result);
    case FrameType::write:
      return handle_write(request, result);
    case FrameType::read:
      return handle_read(request);
    case FrameType::fetch_add:
    case FrameType::compare_swap:
      return handle_atomic(request);
    default:
      return malformed("an answer where a request is due");
  }
}

// Messages may be missing, and the rest of one; a receive that it has taken serves the next.
bool Responder::begin_unreliable(const FrameHeader& request) {
  if ((request.type != FrameType::send && request.type != FrameType::write) ||
      (request.flags & frame_by_reference) != 0)
    return false;
  if (request.message == expected_) return true;
  if (static_cast<std::int32_t>(request.message - expected_) < 0) return false;
  expected_ = request.message;
  begun_ = dropping_ = false;
  moved_ = frame_moved_ = 0;
  return true;
}

Responder::Outcome Responder::drop() {
  dropping_ = true;
  return Outcome::dropped;
}

Responder::Outcome Responder::handle_send(const FrameHeader& request, StepResult& result) {
  if (!begun_) {
    if (const Outcome outcome = need_receive(request, result); outcome != Outcome::done) return outcome;
    const SegmentList list = qp_.list_of(receive_);
    if (list.length() < request.length && !qp_.is_reliable()) return drop();
    if (list.length() < request.length)
      return refuse_receive(request, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    if (!list.allows(request.length, IBV_ACCESS_LOCAL_WRITE))
      return refuse_receive(request, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
    begun_ = true;
  }
  return move(request, result, [&](const Source& source, std::uint64_t bytes) {
    return qp_.list_of(receive_).scatter(moved_, source, frame_moved_, bytes);
  });
}

Responder::Outcome Responder::handle_write(const FrameHeader& request, StepResult& result) {
  const auto target = [&](std::uint64_t offset, std::uint64_t bytes) {
    return qp_.nic->regions().remote(request.key, qp_.qp_base.pd, request.remote_address + offset, bytes,
                                     IBV_ACCESS_REMOTE_WRITE);
  };
  if (!begun_) {
    if ((qp_.attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) == 0)
      return refuse(request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    if (request.length > 0 && !target(0, request.length))
      return refuse(request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    if ((request.flags & frame_has_immediate) != 0)
      if (const Outcome outcome = need_receive(request, result); outcome != Outcome::done) return outcome;
    begun_ = true;
  }
  return move(request, result, [&](const Source& source, std::uint64_t bytes) {
    const RegionAccess access = target(moved_, bytes);
    return access ? deliver(source, frame_moved_, access, bytes) : EACCES;
  });
}

Responder::Outcome Responder::handle_read(const FrameHeader& request) {
  const auto region = [&](std::uint64_t offset, std::uint64_t bytes) {
    return qp_.nic->regions().remote(request.key, qp_.qp_base.pd, request.remote_address + offset, bytes,
                                     IBV_ACCESS_REMOTE_READ);
  };
  if (!begun_) {
    if ((qp_.attributes.qp_access_flags & IBV_ACCESS_REMOTE_READ) == 0 ||
        qp_.attributes.max_dest_rd_atomic == 0)
      return refuse(request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    if (request.length > 0 && !region(0, request.length))
      return refuse(request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    begun_ = true;
  }
  FrameHeader answer;
  answer.message = request.message;
  answer.length = request.length;
  const bool by_reference =
      (request.flags & frame_requester_pulls) != 0 && request.length >= reference_bytes && moved_ == 0;
  if (by_reference) {
    const RegionAccess access = region(0, request.length);
    if (access && access.memory->on_host()) {
      const Segment segment{access.address, request.length};
      answer.type = FrameType::read_reference;
      answer.flags = frame_by_reference;
      answer.payload_bytes = sizeof segment;
      if (!link_->fits(sizeof segment)) return Outcome::again;
      // A frame's payload begins at a multiple of 64: so little of it never wraps.
      std::memcpy(add_answer(answer).first.data(), &segment, sizeof segment);
      return finish(request);
    }
  }
  answer.type = FrameType::read_data;
  do {
    const std::uint64_t bytes = std::min<std::uint64_t>(request.length - moved_, max_frame_payload_bytes);
    if (!link_->fits(bytes)) return Outcome::again;
    answer.payload_bytes = static_cast<std::uint32_t>(bytes);
    answer.offset = moved_;
    const RingSpans place = add_answer(answer);
    if (bytes > 0) {
      const RegionAccess access = region(moved_, bytes);
      if (!access || access.memory->read(access.address, place.first) != 0 ||
          access.memory->read(access.address + place.first.size(), place.second) != 0)
        return malformed("the data of a read could not be read");
    }
    moved_ += bytes;
    link_->flush();
  } while (moved_ < request.length);
  return finish(request);
}

Responder::Outcome Responder::handle_atomic(const FrameHeader& request) {
  if ((qp_.attributes.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) == 0 ||
      qp_.attributes.max_dest_rd_atomic == 0 || request.remote_address % sizeof(std::uint64_t) != 0)
    return refuse(request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  const RegionAccess access = qp_.nic->regions().remote(request.key, qp_.qp_base.pd, request.remote_address,
                                                        sizeof(std::uint64_t), IBV_ACCESS_REMOTE_ATOMIC);
  if (!access) return refuse(request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  if (!link_->fits(0)) return Outcome::again;
  std::uint64_t before = 0;
  const int error = request.type == FrameType::fetch_add
                        ? access.memory->fetch_add(access.address, request.operand, before)
                        : access.memory->compare_swap(access.address, request.operand, request.swap, before);
  if (error != 0) return refuse(request, IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
  answer(FrameType::atomic_result, request, 0, before);
  return finish(request);
}

// While there is none the remote is told so again and again, as often as its retries would find out.
Responder::Outcome Responder::need_receive(const FrameHeader& request, StepResult& result) {
  if (has_receive_ || qp_.take_receive(receive_)) {
    has_receive_ = true;
    rnr_at_ = {};
    return Outcome::done;
  }
  if (!qp_.is_reliable()) return drop();
  waiting_ = true;
  if ((request.flags & frame_waits_for_receive) != 0) return Outcome::again;
  const Clock::time_point now = Clock::now();
  if (now >= rnr_at_ && link_->fits(0)) {
    answer(FrameType::rnr, request, qp_.attributes.min_rnr_timer);
    rnr_at_ = now + rnr_delay(qp_.attributes.min_rnr_timer);
  }
  result.wake_at = std::min(result.wake_at, rnr_at_);
  return Outcome::again;
}

template <class Place>
Responder::Outcome Responder::move(const FrameHeader& request, StepResult& result, Place place) {
  const Source source = source_of(request);
  const std::uint64_t size = source.size();
  if (request.offset != moved_ - frame_moved_ || size > request.length - request.offset ||
      (size == 0 && request.length > 0))
    return malformed("a piece of a message out of order");
  const std::uint64_t bytes = std::min(size - frame_moved_, bytes_a_step);
  if (const int error = bytes == 0 ? 0 : place(source, bytes); error != 0) {
    if (source.link != nullptr && error != EACCES) return malformed("the remote's memory could not be read");
    return request.type == FrameType::send ? refuse_receive(request, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR)
                                           : refuse(request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  moved_ += bytes;
  frame_moved_ += bytes;
  if (frame_moved_ < size) {
    result.more = true;
    return Outcome::again;
  }
  frame_moved_ = 0;
  if (moved_ < request.length) return Outcome::done;
  ack_due_ = qp_.is_reliable();
  return finish(request);
}

Source Responder::source_of(const FrameHeader& request) {
  if ((request.flags & frame_by_reference) == 0) return {.payload = link_->payload()};
  const std::size_t count = copy_segments(link_->payload(), request, segments_);
  return {.payload = {}, .link = link_.get(), .segments = {segments_.data(), count}};
}

Responder::Outcome Responder::finish(const FrameHeader& request) {
  if (request.type == FrameType::send || (request.flags & frame_has_immediate) != 0) {
    ibv_wc entry{};
    entry.wr_id = receive_.id;
    entry.opcode = request.type == FrameType::write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    entry.byte_len = static_cast<std::uint32_t>(request.length);
    if ((request.flags & frame_has_immediate) != 0) {
      entry.wc_flags = IBV_WC_WITH_IMM;
      entry.imm_data = request.immediate;
    }
    has_receive_ = false;
    qp_.complete_receive(entry, (request.flags & frame_solicited) != 0);
  }
  ++expected_;
  begun_ = false;
  moved_ = 0;
  return Outcome::done;
}

Responder::Outcome Responder::refuse_receive(const FrameHeader& request, ibv_wc_status here,
                                             ibv_wc_status for_remote) {
  if (!link_->fits(0)) return Outcome::again;
  ibv_wc entry{};
  entry.wr_id = receive_.id;
  entry.opcode = IBV_WC_RECV;
  entry.status = here;
  has_receive_ = false;
  qp_.complete_receive(entry, true);
  if (!qp_.is_reliable()) {
    // The receive itself is at fault, which is this end's error.
    qp_.to_error();
    return Outcome::failed;
  }
  return refuse(request, for_remote, std::nullopt);
}

// The remote is told, and this end executes nothing any more. Unreliable: the message is dropped.
Responder::Outcome Responder::refuse(const FrameHeader& request, ibv_wc_status for_remote,
                                     std::optional<ibv_event_type> event) {
  if (!qp_.is_reliable()) return drop();
  if (!link_->fits(0)) return Outcome::again;
  answer(FrameType::nak, request, static_cast<std::uint16_t>(for_remote));
  stopped_ = true;
  if (event) qp_.raise(*event);
  qp_.to_error();
  return Outcome::failed;
}

// A remote that breaks the protocol loses this connection and nothing else.
Responder::Outcome Responder::malformed(const char* why) {
  link_->shut(why);
  stopped_ = true;
  return Outcome::failed;
}

void Responder::answer(FrameType type, const FrameHeader& request, std::uint16_t code,
                       std::uint64_t operand) {
  FrameHeader header;
  header.type = type;
  header.message = request.message;
  header.code = code;
  header.operand = operand;
  add_answer(header);
}

// An answer to a message says that all before it are done.
RingSpans Responder::add_answer(const FrameHeader& header) {
  ack_due_ = false;
  return link_->add(header);
}

}  // namespace gdrbench::softverbs
