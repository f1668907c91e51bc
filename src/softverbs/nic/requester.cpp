#include "nic/requester.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "nic/engine.hpp"
#include "nic/nic.hpp"
#include "nic/queue_pair.hpp"
#include "nic/scatter_gather.hpp"

namespace gdrbench::softverbs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Until a remote that has too many pending connections is called again.
constexpr auto busy_delay = milliseconds(20);
// How long an unreliable connection's messages wait for a remote that is starting, and how long they are lost
// once it could not be reached; as for datagrams.
constexpr auto unreliable_connect_timeout = seconds(2);
constexpr auto redial_delay = milliseconds(100);

FrameType frame_type(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return FrameType::write;
    case IBV_WR_RDMA_READ:
      return FrameType::read;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return FrameType::fetch_add;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return FrameType::compare_swap;
    default:
      return FrameType::send;
  }
}

// How long a remote may take to be ready to receive: as long as a NIC would retry, and never less than it
// takes the other program to get there.
Clock::duration connect_timeout(const ibv_qp_attr& attributes) {
  const auto retries = ack_timeout(attributes.timeout) * (attributes.retry_cnt + 1);
  return std::clamp<Clock::duration>(retries, seconds(2), seconds(30));
}

}  // namespace

void Requester::dial() {
  if (dialing_ || link_ != nullptr) return;
  dialing_ = true;
  const Clock::time_point now = Clock::now();
  if (dial_until_ == Clock::time_point{})
    dial_until_ = now + (qp_.is_reliable() ? connect_timeout(qp_.attributes) : unreliable_connect_timeout);
  const ibv_global_route& route = qp_.attributes.ah_attr.grh;
  const GidEntry& source = qp_.nic->gids()[route.sgid_index];
  Hello hello;
  hello.kind = qp_.link_kind();
  hello.source_qpn = qp_.qp_base.qp_num;
  hello.destination_qpn = qp_.attributes.dest_qp_num;
  hello.psn = qp_.attributes.sq_psn;
  hello.source_gid = source.gid;
  hello.destination_gid = route.dgid;
  QueuePairTable& table = qp_.nic->queue_pairs();
  const auto done = [&table, qpn = hello.source_qpn, connection = connection_](DialResult result) {
    table.visit(qpn, [&](QueuePair& queue_pair) {
      const std::lock_guard guard(queue_pair.lock);
      if (queue_pair.requester.connection_ != connection) return;
      queue_pair.requester.on_dialed(std::move(result));
      queue_pair.settle();
    });
  };
  qp_.nic->engine().dialer().dial(hello, address_of(source.gid, 0, source.interface),
                                  address_of(route.dgid, slot_of(hello.destination_qpn), source.interface),
                                  dial_until_, done);
}

void Requester::on_dialed(DialResult result) {
  dialing_ = false;
  link_ = std::move(result.link);
  const Clock::time_point now = Clock::now();
  if (link_ == nullptr && result.refusal == Refusal::busy && now < dial_until_) {
    redial_at_ = now + busy_delay;
    return;
  }
  dial_until_ = redial_at_ = {};
  if (link_ != nullptr) {
    warned_ = false;
    return;
  }
  if (!qp_.is_reliable()) lost_until_ = now + redial_delay;
  // What came of it shows with the first work request, as on a NIC, which finds out no sooner.
  if (qp_.sends.empty()) return;
  if (!warned_) {
    const char* const why = result.error.empty() ? to_string(result.refusal) : result.error.c_str();
    std::fprintf(stderr, "%s: queue pair 0x%06x cannot reach 0x%06x: %s\n", device_name, qp_.qp_base.qp_num,
                 qp_.attributes.dest_qp_num, why);
    warned_ = true;
  }
  if (qp_.is_reliable()) fail_front(IBV_WC_RETRY_EXC_ERR);
}

bool Requester::loses_everything() const {
  return !qp_.is_reliable() && !dialing_ && Clock::now() < lost_until_;
}

void Requester::reset() {
  ++connection_;
  link_.reset();
  dialing_ = false;
  in_flight_ = reads_in_flight_ = large_reads_in_flight_ = 0;
  front_message_ = 0;
  rnr_retries_ = timeouts_ = 0;
  fault_chosen_ = false;
  hold_until_ = dial_until_ = redial_at_ = lost_until_ = {};
  warned_ = false;
}

void Requester::forget_work() {
  in_flight_ = reads_in_flight_ = large_reads_in_flight_ = 0;
  fault_chosen_ = false;
}

void Requester::step(StepResult& result) {
  if (link_ != nullptr) {
    take_answers(result);
    check_link();
  }
  if (!qp_.may_send()) {
    if (link_ != nullptr) link_->flush();
    return;
  }
  if (link_ == nullptr && !loses_everything()) {
    if (dialing_ || (qp_.sends.empty() && redial_at_ == Clock::time_point{})) return;
    if (Clock::now() >= redial_at_) return dial();
    result.wake_at = std::min(result.wake_at, redial_at_);
    return;
  }
  transmit(result);
  // A request that failed here waits until all before it are done.
  if (in_flight_ == 0 && !qp_.sends.empty() && qp_.sends.front().done)
    fail_front(qp_.sends.front().status, qp_.sends.front().vendor_error);
}

// The remote is gone: what it has not answered fails, or is lost. What it has not been sent may find it
// again.
void Requester::check_link() {
  if (!qp_.may_send()) {
    // In the send queue's error state, what has left before is still on its way.
    if (qp_.qp_base.state != IBV_QPS_SQE) link_.reset();
    return;
  }
  if (!link_->broken() || link_->next() != nullptr) return;
  const bool under_way = in_flight_ > 0 || (!qp_.sends.empty() && qp_.sends.front().begun);
  link_.reset();
  if (under_way && !qp_.is_reliable()) lose_what_is_under_way();
  front_message_ = 0;
  if (under_way && qp_.is_reliable()) fail_front(IBV_WC_RETRY_EXC_ERR);
}

void Requester::lose_what_is_under_way() {
  while (in_flight_ > 0) complete_front();
  if (qp_.sends.empty() || !qp_.sends.front().begun) return;
  SendWork& front = qp_.sends.front();
  if (front.done) return fail_front(front.status, front.vendor_error);
  ++in_flight_;
  complete_front();
}

void Requester::fail_front(ibv_wc_status status, std::uint32_t vendor_error) {
  SendWork& front = qp_.sends.front();
  front.status = status;
  front.vendor_error = vendor_error;
  qp_.complete_send(front);
  qp_.sends.pop();
  if (qp_.is_reliable()) {
    qp_.to_error();
  } else {
    qp_.to_send_error();
  }
}

void Requester::transmit(StepResult& result) {
  while (in_flight_ < qp_.sends.size()) {
    SendWork& work = qp_.sends[in_flight_];
    if (work.done) break;
    if (!work.begun) {
      if (!may_start(work) || faulty(work, result)) break;
      work.status = check(work);
      if (work.status != IBV_WC_SUCCESS) {
        work.done = true;
        break;
      }
      work.begun = true;
      work.sent |= link_ == nullptr;
    }
    // What a fault or an absent remote loses was sent, for all that an unreliable requester knows.
    if (!work.sent && !send_frames(work)) break;
    work.sent = true;
    // From here on, of a read, what has come back.
    if (work.is_read_or_atomic()) {
      ++reads_in_flight_;
      if (work.length >= reference_bytes) ++large_reads_in_flight_;
      work.moved = 0;
    }
    ++in_flight_;
    fault_chosen_ = false;
    timeouts_ = 0;
  }
  if (link_ != nullptr) link_->flush();
  if (qp_.is_reliable() || (link_ != nullptr && !link_->all_sent())) return;
  while (in_flight_ > 0) complete_front();
}

bool Requester::may_start(const SendWork& work) const {
  if (qp_.qp_base.state == IBV_QPS_SQD) return false;
  if ((work.flags & IBV_SEND_FENCE) != 0 && reads_in_flight_ > 0) return false;
  if (work.is_read_or_atomic())
    return reads_in_flight_ < std::max<std::size_t>(qp_.attributes.max_rd_atomic, 1);
  // This end fetches the data of large reads from the remote's memory, and what follows could change them
  // there.
  return large_reads_in_flight_ == 0;
}

// What goes wrong on demand. True: the request does not start now.
bool Requester::faulty(SendWork& work, StepResult& result) {
  if (work.fault) {
    work.status = work.fault->status;
    work.vendor_error = work.fault->vendor_error;
    work.done = true;
    return true;
  }
  if (!Faults::instance().any()) return false;
  const Clock::time_point now = Clock::now();
  if (now >= hold_until_ && !fault_chosen_) {
    // Asked each time that the message leaves, so that a lost one may be lost again.
    const PayloadFault fault = Faults::instance().on_payload();
    work.corrupt = fault.corrupt;
    if (!qp_.is_reliable()) {
      work.sent = fault.drop || fault.cut;
      if (fault.cut && link_ != nullptr) link_->shut("cut by a fault");
      result.more |= fault.cut;
    } else if (fault.cut) {
      work.begun = true;
      link_->shut("cut by a fault");
      result.more = true;
      return true;
    }
    const bool sent_again = fault.drop && qp_.is_reliable();
    if (sent_again && ++timeouts_ > qp_.attributes.retry_cnt) {
      work.status = IBV_WC_RETRY_EXC_ERR;
      work.done = true;
      return true;
    }
    fault_chosen_ = !sent_again;
    hold_until_ = now + (sent_again ? Clock::duration(ack_timeout(qp_.attributes.timeout)) : fault.delay);
  }
  if (now >= hold_until_) return false;
  result.wake_at = std::min(result.wake_at, hold_until_);
  return true;
}

ibv_wc_status Requester::check(const SendWork& work) const {
  if (work.length > max_message_bytes) return IBV_WC_LOC_LEN_ERR;
  if ((work.flags & IBV_SEND_INLINE) != 0) return IBV_WC_SUCCESS;
  if (work.is_read_or_atomic() && qp_.attributes.max_rd_atomic == 0) return IBV_WC_LOC_QP_OP_ERR;
  if (work.is_read_or_atomic() && work.opcode != IBV_WR_RDMA_READ && work.length != sizeof(std::uint64_t))
    return IBV_WC_LOC_LEN_ERR;
  const int access = work.is_read_or_atomic() ? IBV_ACCESS_LOCAL_WRITE : 0;
  return qp_.list_of(work).allows(work.length, access) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

FrameHeader Requester::header_of(const SendWork& work) const {
  FrameHeader header;
  header.type = frame_type(work.opcode);
  header.message = front_message_ + static_cast<std::uint32_t>(in_flight_);
  header.length = work.length;
  header.key = work.rkey;
  header.remote_address = work.remote_address;
  if (work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    header.flags |= frame_has_immediate;
    header.immediate = work.immediate;
  }
  if ((work.flags & IBV_SEND_SOLICITED) != 0) header.flags |= frame_solicited;
  if (qp_.attributes.rnr_retry == rnr_without_end) header.flags |= frame_waits_for_receive;
  if (work.opcode == IBV_WR_RDMA_READ && link_->can_pull()) header.flags |= frame_requester_pulls;
  if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    header.operand = work.compare_add;
    header.swap = work.swap;
  }
  return header;
}

// False: there is no room for all of it yet.
bool Requester::send_frames(SendWork& work) {
  FrameHeader header = header_of(work);
  if (work.is_read_or_atomic()) {
    if (!link_->fits(0)) return false;
    link_->add(header);
    return true;
  }
  std::array<Segment, max_segments> ranges;
  const bool is_inline = (work.flags & IBV_SEND_INLINE) != 0;
  // By reference only where an acknowledgement says when the memory is free again.
  if (qp_.is_reliable() && !is_inline && !work.corrupt && work.moved == 0 && work.length >= reference_bytes &&
      link_->remote_can_pull()) {
    const std::size_t count = qp_.list_of(work).host_ranges(ranges);
    if (count > 0) {
      header.payload_bytes = static_cast<std::uint32_t>(count * sizeof(Segment));
      if (!link_->fits(header.payload_bytes)) return false;
      header.flags |= frame_by_reference;
      link_->add(header).fill(reinterpret_cast<const std::byte*>(ranges.data()));
      work.moved = work.length;
      return true;
    }
  }
  do {
    const std::uint64_t bytes = std::min<std::uint64_t>(work.length - work.moved, max_frame_payload_bytes);
    if (!link_->fits(bytes)) return false;
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    header.offset = work.moved;
    const RingSpans place = link_->add(header);
    if (is_inline) {
      place.fill(work.inline_data.data() + work.moved);
    } else if (qp_.list_of(work).gather(work.moved, place) != 0) {
      // It was checked before: the region went away, or the GPU failed. The frame cannot be taken back.
      link_->shut("the data of a message could not be read");
      work.status = IBV_WC_LOC_PROT_ERR;
      work.done = !qp_.is_reliable();
      return false;
    }
    // Of an empty message nothing is there to change.
    if (const std::uint64_t changed = work.corrupt_byte();
        work.corrupt && work.moved <= changed && changed < work.moved + bytes)
      place[changed - work.moved] ^= corrupt_bit;
    work.moved += bytes;
    link_->flush();
  } while (work.moved < work.length);
  return true;
}

// What the responder answers, and what becomes of the work requests by it.

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
          "the remote's memory cannot be read");  // it is being ended: what is under way finds no answer
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
