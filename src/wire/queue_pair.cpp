#include "wire/queue_pair.hpp"

namespace gdrbench::wire {

nlohmann::json to_json(const Region& region) {
  return {{"address", reinterpret_cast<std::uint64_t>(region.address)},
          {"length", region.length},
          {"rkey", region.rkey}};
}

RemoteRegion remote_region(const nlohmann::json& j) {
  return {.address = j.at("address").get<std::uint64_t>(),
          .length = j.at("length").get<std::uint64_t>(),
          .rkey = j.at("rkey").get<std::uint32_t>()};
}

}  // namespace gdrbench::wire
