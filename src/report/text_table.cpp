#include "report/text_table.hpp"

#include <algorithm>
#include <sstream>

namespace gdrbench::report {

std::size_t display_width(std::string_view text) {
  // Every byte but the continuation bytes of UTF-8 (10xxxxxx) starts a character.
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

std::string align_rows(std::span<const Row> rows, std::span<const Align> alignment) {
  std::vector<std::size_t> widths(alignment.size(), 0);
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));

  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - display_width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += alignment[i] == Align::left ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string wrap(std::string_view lead, std::span<const std::string> pieces, const Wrapping& wrapping) {
  std::string text(lead);
  std::size_t column = display_width(lead);
  bool line_has_piece = false;
  for (const std::string& piece : pieces) {
    const std::size_t needed =
        display_width(piece) + (line_has_piece ? display_width(wrapping.separator) : 0);
    if (column > wrapping.indent && column + needed > wrapping.width) {
      text.erase(text.find_last_not_of(' ') + 1);
      text += '\n' + std::string(wrapping.indent, ' ');
      column = wrapping.indent;
      line_has_piece = false;
    }
    if (line_has_piece) {
      text += wrapping.separator;
      column += display_width(wrapping.separator);
    }
    text += piece;
    column += display_width(piece);
    line_has_piece = true;
  }
  return text + '\n';
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

}  // namespace gdrbench::report
