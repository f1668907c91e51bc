#include "stress_stream.hpp"

#include <fmt/format.h>

namespace gdrbench::softverbs {
namespace {

constexpr std::array<ibv_wr_opcode, 7> posted_as = {
    IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,        IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
constexpr std::array<ibv_wc_opcode, 7> completed_as = {IBV_WC_SEND,       IBV_WC_SEND,      IBV_WC_RDMA_WRITE,
                                                       IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD,
                                                       IBV_WC_COMP_SWAP};

std::size_t index(Kind kind) {
  return static_cast<std::size_t>(kind);
}

void expect(std::uint64_t found, std::uint64_t expected, const char* what, const Stream& stream,
            const Message& message) {
  if (found == expected) return;
  throw std::runtime_error(
      fmt::format("{}: {}: expected {:#x}, found {:#x}", describe(stream, message), what, expected, found));
}

struct Elements {
  std::array<ibv_sge, max_pieces> list{};
  int count = 0;

  Elements(const std::byte* area, const Layout& layout, std::uint32_t lkey)
      : count(static_cast<int>(layout.count)) {
    for (std::uint32_t i = 0; i < layout.count; ++i)
      list[i] = {.addr = reinterpret_cast<std::uint64_t>(area + layout.pieces[i].offset_bytes),
                 .length = layout.pieces[i].length_bytes,
                 .lkey = lkey};
  }
};

/// A word that a device may have written, read without a claim on its type or alignment.
std::uint64_t read_word(const std::byte* memory) {
  std::uint64_t word = 0;
  std::memcpy(&word, memory, sizeof(word));
  return word;
}

}  // namespace

std::string describe(const Stream& stream, const Message& message) {
  return fmt::format("pair {} {}, message {} ({}, {} bytes)", stream.pair,
                     stream.direction == 0 ? "left to right" : "right to left", message.number,
                     kind_names[index(message.kind)], message.size_bytes);
}

void check_bytes(const Stream& stream, const Message& message, std::byte* area, const Layout& layout) {
  const auto wrong = find_wrong_byte(area, layout, message.pattern_key);
  if (!wrong) return;
  throw std::runtime_error(fmt::format("{}: wrong byte {} {}: expected {:#04x}, found {:#04x}",
                                       describe(stream, message),
                                       wrong->in_guard ? "beside the payload, at" : "at offset",
                                       wrong->offset_bytes, wrong->expected, wrong->found));
}

bool Initiator::post(Clock::time_point deadline) {
  if (ended_ || in_flight_.size() >= plan_depth(stream_, next_.number)) return false;
  if (next_.number % group_messages == 0 && next_.number > 0 && Clock::now() >= deadline) {
    gate_.swapped.store(swap_word_, std::memory_order_relaxed);
    gate_.end.store(next_.number, std::memory_order_release);
    return ended_ = true;
  }
  if (gate_.prepared.load(std::memory_order_acquire) <= next_.number || !ring_.place(next_, tail_))
    return false;
  // A full queue of messages that are not signaled would never empty.
  next_.signaled |= in_flight_.size() + 1 >= plan_depth(stream_, next_.number + 1);
  send(next_);
  in_flight_.push_back(next_);
  previous_ = next_;
  next_ = plan_message(stream_, next_.number + 1);
  return true;
}

void Initiator::send(Message& message) {
  const Message& source = message.forwards ? previous_ : message;
  const Layout layout = lay_out(source, std::min(source.local_pieces, pieces_));
  const bool carries = message.kind != Kind::read && !message.is_atomic();
  if (message.kind == Kind::read) set_guards(area(message), layout);
  if (carries && !message.forwards) fill(area(message), layout, message.pattern_key);
  Elements elements{area(source), layout, local_.lkey};
  ibv_send_wr request{};
  request.wr_id = message.number;
  request.sg_list = elements.list.data();
  request.num_sge = elements.count;
  request.opcode = posted_as[index(message.kind)];
  request.imm_data = message.immediate();
  if (message.fenced) request.send_flags |= IBV_SEND_FENCE;
  if (message.signaled) request.send_flags |= IBV_SEND_SIGNALED;
  const bool inlined = carries && message.wants_inline && message.size_bytes <= inline_bytes_;
  if (inlined) request.send_flags |= IBV_SEND_INLINE;
  aim(request, message);
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_, &request, &bad); error != 0)
    fail("post " + describe(stream_, message), error);
  // Inline data has left its place by now.
  if (inlined) fill(area(message), layout, ~message.pattern_key);
}

void Initiator::aim(ibv_send_wr& request, Message& message) {
  if (!message.is_atomic()) {
    request.wr.rdma.remote_addr =
        remote_.ring_address + message.position % ring_bytes + guard_bytes + message.skew_bytes;
    request.wr.rdma.rkey = remote_.ring_rkey;
  } else if (message.kind == Kind::fetch_add) {
    const std::uint64_t amount = 1 + message.value % 1000;
    request.wr.atomic = {remote_.sum_address, amount, 0, remote_.sum_rkey};
    totals_.added[stream_.direction].fetch_add(amount, std::memory_order_relaxed);
  } else {
    const std::uint64_t compare = message.misses ? ~swap_word_ : swap_word_;
    request.wr.atomic = {remote_.words_address, compare, message.value, remote_.words_rkey};
    message.expected_old = swap_word_;
    if (!message.misses) swap_word_ = message.value;
  }
}

void Initiator::complete(const ibv_wc& completion) {
  const auto first =
      std::find_if(in_flight_.begin(), in_flight_.end(), [](const Message& m) { return m.signaled; });
  if (first == in_flight_.end())
    throw std::runtime_error(fmt::format("pair {}: completion of message {}, but none is expected",
                                         stream_.pair, completion.wr_id));
  expect(completion.wr_id, first->number, "completion out of order", stream_, *first);
  expect(completion.opcode, completed_as[index(first->kind)], "opcode of the completion", stream_, *first);
  for (bool last = false; !last; in_flight_.pop_front()) {
    const Message& message = in_flight_.front();
    last = message.signaled;
    check(message);
    tail_ = message.position;
    totals_.messages[index(message.kind)].fetch_add(1, std::memory_order_relaxed);
    totals_.bytes[index(message.kind)].fetch_add(message.size_bytes, std::memory_order_relaxed);
  }
  gate_.completed.store(completion.wr_id + 1, std::memory_order_release);
}

void Initiator::check(const Message& message) {
  const Layout layout = lay_out(message, std::min(message.local_pieces, pieces_));
  if (message.kind == Kind::read) check_bytes(stream_, message, area(message), layout);
  if (!message.is_atomic()) return;
  const std::uint64_t old = read_word(area(message) + layout.pieces[0].offset_bytes);
  if (message.kind == Kind::cmp_swap) {
    expect(old, message.expected_old, "old value", stream_, message);
    return;
  }
  // Others add to the same word in between.
  if (added_before_ && old <= last_sum_)
    throw std::runtime_error(
        fmt::format("{}: the sum went from {} to {}", describe(stream_, message), last_sum_, old));
  last_sum_ = old;
  added_before_ = true;
}

std::string Initiator::progress() const {
  return fmt::format("pair {} direction {}: message {} is next, {} in flight, prepared {}, completed {}",
                     stream_.pair, stream_.direction, next_.number, in_flight_.size(), gate_.prepared.load(),
                     gate_.completed.load());
}

Layout Responder::layout(const Message& message) const {
  const bool scattered = message.kind == Kind::send || message.kind == Kind::send_imm;
  return lay_out(message, scattered ? std::min(message.remote_pieces, pieces_) : 1);
}

bool Responder::prepare() {
  retire();
  if (prepared_ - verified_ >= look_ahead) return false;
  // Planned anew where there was no room: that is rare.
  Message message = plan_message(stream_, prepared_);
  if (!ring_.place(message, ready_.empty() ? ring_.head() : ready_.front().position)) return false;
  set_guards(area(message), layout(message));
  if (message.kind == Kind::read) fill(area(message), layout(message), message.pattern_key);
  if (message.takes_receive()) post_receive(message);
  ready_.push_back(message);
  gate_.prepared.store(++prepared_, std::memory_order_release);
  return true;
}

void Responder::post_receive(const Message& message) {
  Layout place = message.kind == Kind::write_imm ? Layout{} : layout(message);
  // The guard is part of the receive then, and must be left alone nevertheless.
  if (message.roomy && place.count > 0) place.pieces[place.count - 1].length_bytes += guard_bytes;
  Elements elements{area(message), place, local_.lkey};
  ibv_recv_wr request{};
  request.wr_id = message.number | receive_flag;
  request.sg_list = elements.list.data();
  request.num_sge = elements.count;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp_, &request, &bad); error != 0)
    fail("post the receive of " + describe(stream_, message), error);
}

void Responder::retire() {
  const std::uint64_t over = std::min(verified_, gate_.completed.load(std::memory_order_acquire));
  while (!ready_.empty() && ready_.front().number < over) ready_.pop_front();
}

void Responder::receive(const ibv_wc& completion) {
  const auto first = ready_.begin() + static_cast<std::ptrdiff_t>(verified_ - ready_.front().number);
  for (auto at = first; at != ready_.end(); ++at) {
    const Message& message = *at;
    // What came before this one in the queue pair has come.
    if (message.kind == Kind::write) check_bytes(stream_, message, area(message), layout(message));
    if (!message.takes_receive()) continue;
    const bool written = message.kind == Kind::write_imm;
    expect(completion.wr_id & ~receive_flag, message.number, "receive out of order", stream_, message);
    expect(completion.opcode, written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, "opcode of the receive",
           stream_, message);
    expect(completion.byte_len, message.size_bytes, "bytes received", stream_, message);
    expect((completion.wc_flags & IBV_WC_WITH_IMM) != 0, message.with_immediate(), "immediate there", stream_,
           message);
    if (message.with_immediate())
      expect(completion.imm_data, message.immediate(), "immediate", stream_, message);
    check_bytes(stream_, message, area(message), layout(message));
    verified_ = message.number + 1;
    return;
  }
  throw std::runtime_error(
      fmt::format("pair {}: receive {} completed, but none is posted", stream_.pair, completion.wr_id));
}

std::string Responder::progress() const {
  return fmt::format("pair {} direction {}: prepared {}, verified {}", stream_.pair, stream_.direction,
                     prepared_, verified_);
}

}  // namespace gdrbench::softverbs
