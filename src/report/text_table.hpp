#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gdrbench::report {

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

}  // namespace gdrbench::report
