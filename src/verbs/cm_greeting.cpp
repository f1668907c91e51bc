#include "verbs/cm_greeting.hpp"

#include <algorithm>

namespace gdrbench::verbs {

CmGreeting make_greeting(std::uint64_t token, std::uint32_t lane) {
  CmGreeting greeting{};
  for (std::size_t i = 0; i < 8; ++i) greeting[i] = static_cast<std::uint8_t>(token >> (56 - 8 * i));
  for (std::size_t i = 0; i < 4; ++i) greeting[8 + i] = static_cast<std::uint8_t>(lane >> (24 - 8 * i));
  return greeting;
}

std::optional<std::uint32_t> read_greeting(std::span<const std::uint8_t> data, std::uint64_t token,
                                           std::uint32_t lanes) {
  // rdma_cm pads private data, so more than a greeting may arrive.
  if (data.size() < CmGreeting{}.size()) return std::nullopt;
  std::uint32_t lane = 0;
  for (std::size_t i = 0; i < 4; ++i) lane = lane << 8 | data[8 + i];
  const CmGreeting expected = make_greeting(token, lane);
  if (lane >= lanes || !std::equal(expected.begin(), expected.end(), data.begin())) return std::nullopt;
  return lane;
}

}  // namespace gdrbench::verbs
