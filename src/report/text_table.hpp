#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Figures with their units and text in columns, for people.
namespace gdrbench::report {

// Figures have three significant digits and the unit that keeps them short; "–" where there is no figure.

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

enum class Align { left, right };
using Row = std::vector<std::string>;

/// Columns that a terminal needs for UTF-8 text of one-column characters (µ, ÷, – and the like).
std::size_t display_width(std::string_view text);

/// The rows with every column as wide as its widest cell and two spaces between columns, without trailing
/// spaces; lines end in '\n'. `alignment` has one entry a column; rows may be shorter.
std::string align_rows(std::span<const Row> rows, std::span<const Align> alignment);

/// `lead` and then the pieces, separated, on lines of at most `width` columns; lines after the first are
/// indented by `indent`. A piece is never broken, so a long one may stand out. Ends in '\n'.
struct Wrapping {
  std::string_view separator = " ";
  std::size_t indent = 0;
  std::size_t width = 100;
};
std::string wrap(std::string_view lead, std::span<const std::string> pieces, const Wrapping& wrapping);

/// The words of a text, for wrap().
std::vector<std::string> words(std::string_view text);

// Tables that keep to a width. Cells are aligned to the left, two spaces between columns; rows may be shorter
// than others. What no line holds is broken after spaces and commas.

struct Page {
  std::size_t indent = 0;  ///< of every line
  std::size_t width = 100;
};

/// Columns without room go on further lines below the second column, those of all rows alike. For lists,
/// whose first column names the row.
std::string fold_rows(std::span<const Row> rows, const Page& page);

/// Columns without room become a further table, which begins with the first column again. For a matrix.
std::string split_columns(std::span<const Row> rows, const Page& page);

}  // namespace gdrbench::report
