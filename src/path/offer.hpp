#pragma once

#include <cstdint>
#include <limits>

#include "base/fields.hpp"
#include "wire/queue_pair.hpp"

namespace gdrbench::path {

/// The memory that the other end offers under `key`. Throws UsageError that names the field, also where it is
/// less than `needed_bytes`.
inline wire::RemoteRegion offered_region(const Fields& offer, const char* key, std::uint64_t needed_bytes) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const Fields region = offer.inner(key);
  return {.address = region.number("address", 0, most),
          .length = region.number("length", needed_bytes, most),
          .rkey = region.number_as<std::uint32_t>("rkey", 0, std::numeric_limits<std::uint32_t>::max())};
}

}  // namespace gdrbench::path
