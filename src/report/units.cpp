#include "report/units.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>

namespace gdrbench::report {
namespace {

struct Unit {
  double factor;
  std::string_view name;
};

// The thresholds are where rounding would give a fourth digit.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string scaled(std::optional<double> value, std::span<const Unit> ascending) {
  if (!value || !std::isfinite(*value)) return "–";
  const Unit* unit = ascending.data();
  for (const Unit& candidate : ascending)
    if (std::abs(*value) >= 0.9995 * candidate.factor) unit = &candidate;
  return fmt::format("{}{}", three_digits(*value / unit->factor), unit->name);
}

}  // namespace

std::string format_time_us(std::optional<double> us) {
  static constexpr Unit units[] = {{1e-3, " ns"}, {1, " µs"}, {1e3, " ms"}, {1e6, " s"}};
  return scaled(us, units);
}

std::string format_rate(std::optional<double> bytes_per_second) {
  static constexpr Unit units[] = {
      {1, " B/s"}, {1e3, " kB/s"}, {1e6, " MB/s"}, {1e9, " GB/s"}, {1e12, " TB/s"}};
  return scaled(bytes_per_second, units);
}

std::string format_count(std::optional<double> count) {
  static constexpr Unit units[] = {{1, ""}, {1e3, " k"}, {1e6, " M"}, {1e9, " G"}};
  return scaled(count, units);
}

std::string format_number(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return "–";
  const double size = std::abs(*number);
  if (size == 0) return "0";
  if (size < 0.0005) return fmt::format("{:.1e}", *number);
  if (size < 0.9995) return fmt::format("{:.3f}", *number);
  return three_digits(*number);
}

std::string format_ratio(double ratio) {
  return ratio < 0.0995 ? format_number(ratio) : three_digits(ratio);
}

}  // namespace gdrbench::report
