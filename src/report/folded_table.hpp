#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "report/text_table.hpp"

/// Tables that keep to a width. Cells are aligned to the left, two spaces between columns; rows may be
/// shorter than others. What no line holds is broken after spaces and commas.
namespace gdrbench::report {

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
