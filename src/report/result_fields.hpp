#pragma once

#include "base/case_fields.hpp"
#include "base/end_fields.hpp"
#include "gdrbench/report.hpp"
#include "report/figures.hpp"

/// The fields of a result file that are made here.
namespace gdrbench {

template <>
struct FieldList<FabricDescription> {
  using F = FabricDescription;
  static constexpr auto fields = std::tuple(
      field("kind", &F::kind, ""), field("device", &F::device, "null without one", {0, max_text_bytes}),
      field("link_layer", &F::link_layer, "null without a device", {0, max_text_bytes}),
      field("active_mtu", &F::active_mtu, "bytes", {256, 65'536}),
      field("gid_index", &F::gid_index, "", {-1, max_gid_index}),
      field("link_bytes_per_second", &F::link_bytes_per_second, "nominal rate of the port",
            {0, max_link_bytes_per_second}));
};

template <>
struct FieldList<report::CpuFigures> {
  using C = report::CpuFigures;
  static constexpr Range percent{0, 1e9L}, seconds{0, 1e15L};
  static constexpr auto fields =
      std::tuple(field("user_pct", &C::user_pct, "of one core; the process, all threads", percent),
                 field("system_pct", &C::system_pct, "of one core; the process, all threads", percent),
                 field("thread_pct", &C::thread_pct, "of one core; the measuring thread", percent),
                 field("irq_pct", &C::irq_pct, "of one core; the whole host", percent),
                 field("softirq_pct", &C::softirq_pct, "of one core; the whole host", percent),
                 field("seconds_per_gb", &C::seconds_per_gb,
                       "user and system time of the process by 10^9 bytes", seconds),
                 field("irq_seconds_per_gb", &C::irq_seconds_per_gb,
                       "irq and softirq time of the host by 10^9 bytes", seconds));
};

}  // namespace gdrbench
