#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

/// What each stream of messages consists of. Both ends compute it, so that neither has to be told.
namespace gdrbench::softverbs {

enum class Kind : std::uint8_t { send, send_imm, write, write_imm, read, fetch_add, cmp_swap };
inline constexpr std::array<const char*, 7> kind_names = {"send", "send_imm",  "write",   "write_imm",
                                                          "read", "fetch_add", "cmp_swap"};

inline constexpr std::uint32_t max_pieces = 16;
inline constexpr std::uint32_t max_message_bytes = 1U << 20;
inline constexpr std::uint32_t max_depth = 64;  ///< messages

/// The last message of each group is signaled and tells the responder of its arrival, so that no message
/// waits long for either, and a stream may end behind it.
inline constexpr std::uint64_t group_messages = 8;
/// Longer messages are signaled, and such a write is announced by the next message: a ring then never fills
/// up with messages that nobody will hear of.
inline constexpr std::uint32_t large_bytes = 64U << 10;

inline std::uint64_t mix(std::uint64_t value) {  // finalizer of splitmix64 (Steele, Lea, Flood 2014)
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Random numbers of one message: the same whenever and wherever they are drawn.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return state_ = mix(state_); }
  std::uint32_t below(std::uint64_t limit) { return static_cast<std::uint32_t>(next() % limit); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

/// One direction of one pair.
struct Stream {
  std::uint32_t pair = 0, direction = 0;
  std::uint64_t key = 0;

  static Stream make(std::uint64_t seed, std::uint32_t pair, std::uint32_t direction) {
    return {pair, direction, mix(mix(seed) ^ (std::uint64_t{pair} << 1 | direction))};
  }
  std::uint64_t message_key(std::uint64_t number) const { return mix(key ^ mix(number)); }
};

struct Message {
  std::uint64_t number = 0;
  Kind kind = Kind::send;
  std::uint32_t size_bytes = 0, skew_bytes = 0;       ///< skew: misalignment of the payload
  std::uint32_t local_pieces = 1, remote_pieces = 1;  ///< scatter/gather elements; remote: of the receive
  bool fenced = false, wants_inline = false, signaled = false;
  bool roomy = false;     ///< the receive is longer than the message
  bool forwards = false;  ///< fenced; sends what the read before it brings
  bool misses = false;    ///< cmp_swap that compares with what is not there
  std::uint64_t pattern_key = 0, value = 0;
  std::uint64_t position = 0;      ///< in the ring; ascending, not wrapped
  std::uint64_t expected_old = 0;  ///< cmp_swap

  bool takes_receive() const {
    return kind == Kind::send || kind == Kind::send_imm || kind == Kind::write_imm;
  }
  bool with_immediate() const { return kind == Kind::send_imm || kind == Kind::write_imm; }
  bool is_atomic() const { return kind == Kind::fetch_add || kind == Kind::cmp_swap; }
  std::uint32_t immediate() const { return static_cast<std::uint32_t>(value >> 32); }
};

inline Message draw_message(const Stream& stream, std::uint64_t number) {
  Draws draws{stream.message_key(number)};
  Message message{.number = number, .pattern_key = stream.message_key(number)};
  message.kind = static_cast<Kind>(draws.below(kind_names.size()));
  // As many messages of each order of magnitude; 1 MiB itself and nothing at all occur as well.
  message.size_bytes = draws.below((std::uint64_t{1} << draws.below(21)) + 1);
  if (draws.one_in(200)) message.size_bytes = max_message_bytes;
  message.skew_bytes = draws.below(8);
  message.local_pieces = draws.one_in(2) ? 1 : 1 + draws.below(max_pieces);
  message.remote_pieces = draws.one_in(2) ? 1 : 1 + draws.below(max_pieces);
  message.fenced = draws.one_in(4);
  message.wants_inline = draws.one_in(2);
  message.signaled = draws.one_in(2);
  message.roomy = draws.one_in(2);
  message.misses = draws.one_in(4);
  message.value = draws.next();
  return message;
}

inline Message plan_kind(const Stream& stream, std::uint64_t number) {
  constexpr std::array announcing = {Kind::send, Kind::send_imm, Kind::write_imm};
  Message message = draw_message(stream, number);
  const bool last_of_group = number % group_messages == group_messages - 1;
  bool announces = last_of_group;
  if (number > 0) {
    const Message before = draw_message(stream, number - 1);
    announces |= before.kind == Kind::write && before.size_bytes >= large_bytes;
  }
  if (announces && !message.takes_receive()) message.kind = announcing[message.value % announcing.size()];
  if (message.is_atomic()) {
    message.size_bytes = sizeof(std::uint64_t);
    message.skew_bytes = 0;
    message.local_pieces = 1;
  }
  message.signaled |= last_of_group || message.size_bytes >= large_bytes;
  return message;
}

/// Message `number` of the stream, save its position in the ring.
inline Message plan_message(const Stream& stream, std::uint64_t number) {
  Message message = plan_kind(stream, number);
  if (number == 0 || message.kind != Kind::send || !message.fenced) return message;
  const Message before = plan_kind(stream, number - 1);
  if (before.kind != Kind::read) return message;
  message.forwards = true;
  message.wants_inline = false;
  message.size_bytes = before.size_bytes;
  message.signaled |= message.size_bytes >= large_bytes;
  message.pattern_key = before.pattern_key;
  return message;
}

/// How many messages may be under way; another number now and then.
inline std::uint32_t plan_depth(const Stream& stream, std::uint64_t number) {
  return 1 + Draws{stream.key + number / max_depth}.below(max_depth);
}

}  // namespace gdrbench::softverbs
