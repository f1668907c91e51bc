#include "doctor/counters.hpp"

#include <fmt/format.h>

#include "doctor/rdma_ports.hpp"

namespace gdrbench::doctor {

Counters read_counters(const topology::Root& root) {
  // Milliseconds for which the kernel keeps values that it has read.
  constexpr std::string_view setting = "lifespan";
  Counters counters;
  for (const RdmaPort& port : rdma_ports(root))
    for (const std::string& folder : {port.folder() + "/hw_counters", port.folder() + "/counters"})
      for (const std::string& name : root.list(folder)) {
        if (name == setting) continue;
        if (const auto value = root.number(fmt::format("{}/{}", folder, name)); value && *value >= 0)
          counters[fmt::format("{}/{}/{}", port.device, port.number, name)] =
              static_cast<std::uint64_t>(*value);
      }
  return counters;
}

}  // namespace gdrbench::doctor
