#pragma once

#include <cstddef>
#include <cstdint>

/// Data with a flag beside every four bytes of it, so that the reader needs no other sign of its arrival: the
/// 8-byte words {data, flag} are each written at once, by a CPU or a GPU, and a word whose flag is the
/// awaited one holds new data, whatever order the words arrive in over PCIe. No fence and no second round
/// trip.
namespace gdrbench::cuda {

/// Bytes that `data_bytes` take with their flags: whole pairs of words.
constexpr std::uint64_t flagged_bytes(std::uint64_t data_bytes) {
  return (data_bytes + 7) / 8 * 16;
}

/// Writes `length` bytes of data with flags. `words` is 16-byte aligned and has room for
/// flagged_bytes(length).
void write_flagged(std::byte* words, const std::byte* data, std::uint64_t length, std::uint32_t flag);

/// Takes data out as far as it has arrived. `taken`: bytes taken by earlier calls, a multiple of 8. Returns
/// those taken now in all; `length` when everything is there.
std::uint64_t read_flagged(std::byte* data, const std::byte* words, std::uint64_t length, std::uint32_t flag,
                           std::uint64_t taken);

}  // namespace gdrbench::cuda
