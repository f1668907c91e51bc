#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace gdrbench::verbs {

/// Private data of an rdma_cm connection request: token and lane, network byte order. It tells a request of
/// this case from one of somebody else who tries the port.
using CmGreeting = std::array<std::uint8_t, 12>;

CmGreeting make_greeting(std::uint64_t token, std::uint32_t lane);

/// The lane, or nothing when the data is short, the token another one, or the lane not below `lanes`.
std::optional<std::uint32_t> read_greeting(std::span<const std::uint8_t> data, std::uint64_t token,
                                           std::uint32_t lanes);

}  // namespace gdrbench::verbs
