#pragma once

#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace gdrbench {

/// A queue that allocates only when it holds more than ever before: in a timed loop, where a std::deque would
/// allocate and free a block every few elements, that is over with the warm-up.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity = 16) : slots_(std::bit_ceil(capacity)) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// The oldest element, of at least one.
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }
  void push_back(T value) {
    if (size_ == slots_.size()) grow();
    slots_[(first_ + size_) & (slots_.size() - 1)] = std::move(value);
    ++size_;
  }
  void pop_front() {
    if constexpr (!std::is_trivially_destructible_v<T>) front() = T{};
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  /// Takes the oldest element out.
  T take_front() {
    T value = std::move(front());
    pop_front();
    return value;
  }
  /// Appends all elements of the other, which is empty afterwards.
  void take_all(Ring& other) {
    while (!other.empty()) push_back(other.take_front());
  }

 private:
  void grow() {
    std::vector<T> larger(2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(slots_[(first_ + i) & (slots_.size() - 1)]);
    slots_.swap(larger);
    first_ = 0;
  }

  std::vector<T> slots_;  ///< a power of two of them
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace gdrbench
