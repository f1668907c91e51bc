#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "stress_plan.hpp"

/// Where a message lies in memory, and what its bytes must be.
namespace gdrbench::softverbs {

inline constexpr std::uint32_t guard_bytes = 8;  ///< before, between and behind the pieces of a message
inline constexpr std::byte guard_value{0xa5};

/// Two of the longest messages, what the wrap leaves unused, and a group of short ones.
inline constexpr std::uint64_t ring_bytes = 4 * std::uint64_t{max_message_bytes};

struct Piece {
  std::uint32_t offset_bytes = 0, length_bytes = 0;
};

struct Layout {
  std::array<Piece, max_pieces> pieces;
  std::uint32_t count = 0;
};

/// Pieces of random lengths, none empty, with a guard around each.
inline Layout lay_out(const Message& message, std::uint32_t pieces) {
  Layout layout;
  Draws draws{message.value ^ pieces};
  std::uint32_t offset = guard_bytes + message.skew_bytes, left = message.size_bytes;
  layout.count = std::min(pieces, left);
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    const std::uint32_t after = layout.count - i - 1;
    const std::uint32_t fair = 2 * (left / (after + 1));
    const std::uint32_t length = after == 0 ? left : 1 + draws.below(std::min(left - after, fair));
    layout.pieces[i] = {offset, length};
    offset += length + guard_bytes;
    left -= length;
  }
  return layout;
}

/// Bytes that a message takes in the ring at either end.
inline std::uint64_t room_bytes(const Message& message) {
  return (message.skew_bytes + message.size_bytes + guard_bytes * (max_pieces + 1) + 7) / 8 * 8;
}

/// Gives messages their places, in order, in a ring of ring_bytes; both ends come to the same places.
class Ring {
 public:
  /// False while there is no room behind `tail`, the position of the oldest message still there.
  bool place(Message& message, std::uint64_t tail) {
    const std::uint64_t room = room_bytes(message);
    std::uint64_t position = head_;
    if (position % ring_bytes + room > ring_bytes) position += ring_bytes - position % ring_bytes;
    if (position + room > tail + ring_bytes) return false;
    message.position = position;
    head_ = position + room;
    return true;
  }
  std::uint64_t head() const { return head_; }

 private:
  std::uint64_t head_ = 0;
};

inline std::uint64_t pattern_word(std::uint64_t key, std::uint64_t index) {
  return mix(key + index);
}

/// Calls handle(memory, word, from, length) for each run of bytes that lies within one word of the pattern;
/// the bytes of the word from `from` on belong there. Ends early when it returns false.
template <class Handle>
void for_each_run(std::byte* area, const Layout& layout, std::uint64_t key, Handle handle) {
  std::uint64_t position = 0;
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    const Piece& piece = layout.pieces[i];
    std::uint64_t length = 0;
    for (std::uint64_t done = 0; done < piece.length_bytes; done += length, position += length) {
      const std::uint64_t word = pattern_word(key, position / 8), from = position % 8;
      length = std::min<std::uint64_t>(8 - from, piece.length_bytes - done);
      if (!handle(area + piece.offset_bytes + done, word, from, length)) return;
    }
  }
}

inline void fill(std::byte* area, const Layout& layout, std::uint64_t key) {
  for_each_run(area, layout, key,
               [](std::byte* memory, std::uint64_t word, std::uint64_t from, std::uint64_t n) {
                 std::memcpy(memory, reinterpret_cast<const std::byte*>(&word) + from, n);
                 return true;
               });
}

inline void set_guards(std::byte* area, const Layout& layout) {
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    const auto [offset, length] = layout.pieces[i];
    std::fill_n(area + offset - guard_bytes, guard_bytes, guard_value);
    std::fill_n(area + offset + length, guard_bytes, guard_value);
  }
}

struct WrongByte {
  bool in_guard = false;
  std::uint64_t offset_bytes = 0;  ///< in the message; of a guard: in its place of the ring
  unsigned expected = 0, found = 0;
};

/// The first byte of the message that is not what it must be, then the first byte written beside it.
inline std::optional<WrongByte> find_wrong_byte(std::byte* area, const Layout& layout, std::uint64_t key) {
  std::optional<WrongByte> wrong;
  std::uint64_t position = 0;
  for_each_run(area, layout, key,
               [&](std::byte* memory, std::uint64_t word, std::uint64_t from, std::uint64_t n) {
                 const std::byte* expected = reinterpret_cast<const std::byte*>(&word) + from;
                 if (std::memcmp(memory, expected, n) == 0) {
                   position += n;
                   return true;
                 }
                 const auto at = std::mismatch(memory, memory + n, expected);
                 wrong = {false, position + (at.first - memory), std::to_integer<unsigned>(*at.second),
                          std::to_integer<unsigned>(*at.first)};
                 return false;
               });
  const auto check_guard = [&](std::uint32_t offset) {
    for (std::uint32_t i = offset; i < offset + guard_bytes && !wrong; ++i)
      if (area[i] != guard_value)
        wrong = {true, i, std::to_integer<unsigned>(guard_value), std::to_integer<unsigned>(area[i])};
  };
  for (std::uint32_t i = 0; i < layout.count; ++i) {
    check_guard(layout.pieces[i].offset_bytes - guard_bytes);
    check_guard(layout.pieces[i].offset_bytes + layout.pieces[i].length_bytes);
  }
  return wrong;
}

}  // namespace gdrbench::softverbs
