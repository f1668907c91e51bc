#pragma once

#include <array>
#include <cstdint>

#include "cuda/resident_copy.hpp"
#include "memory/copier.hpp"

namespace gdrbench::memory {

/// By a kernel that stays on the GPU between start() and rest(): small pieces only, and those fast.
class KernelCopier final : public Copier {
 public:
  KernelCopier(int gpu, Towards towards);
  ~KernelCopier() override { rest(); }
  KernelCopier(const KernelCopier&) = delete;
  KernelCopier& operator=(const KernelCopier&) = delete;

  void start() override;
  bool has_room() const override { return submitted_ - finished_ < cuda::ResidentCopy::slots; }
  /// `length` ≤ cuda::ResidentCopy::most_bytes. The host side is pinned.
  void submit(std::byte* destination, const std::byte* source, std::uint64_t length) override;
  std::uint64_t finished() override;
  void rest() noexcept override;

 private:
  /// Orders have numbers of their own, from 1 on: ending the kernel takes one, too.
  void order(const cuda::ResidentCopy::Order& order);

  struct Piece {
    std::byte* destination = nullptr;
    std::uint64_t length = 0;
    std::uint64_t order = 0;
  };
  Piece& piece(std::uint64_t number) { return pieces_[number % pieces_.size()]; }

  Towards towards_;
  cuda::ResidentCopy kernel_;
  std::array<Piece, cuda::ResidentCopy::slots> pieces_;
  std::uint64_t orders_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t taken_ = 0;  ///< bytes of the piece that finishes next, towards the host
  std::uint32_t looks_ = 0;  ///< since the kernel was last seen healthy
  bool running_ = false;
};

}  // namespace gdrbench::memory
