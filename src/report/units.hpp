#pragma once

#include <optional>
#include <string>

/// Figures for people: three significant digits and the unit that keeps them short. "–" where there is no
/// figure.
namespace gdrbench::report {

/// "850 ns", "41.2 µs", "1.25 ms", "2.10 s".
std::string format_time_us(std::optional<double> us);
/// Powers of 1000, as network rates are given: "412 B/s", "3.20 MB/s", "48.9 GB/s".
std::string format_rate(std::optional<double> bytes_per_second);
/// "512", "1.25 k", "3.10 M".
std::string format_count(std::optional<double> count);
/// "0.042", "1.25", "98.7", "412".
std::string format_number(std::optional<double> number);
/// "0.042", "0.90", "12.3": two decimals around 1, where the interest is.
std::string format_ratio(double ratio);

}  // namespace gdrbench::report
