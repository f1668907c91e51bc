#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

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

constexpr std::size_t gap = 2;

struct Group {
  std::size_t first = 1, end = 1;  // columns
  bool fits = true;                // a line holds them
};

struct Layout {
  std::vector<std::size_t> widths;  // of the columns
  std::vector<Group> groups;        // of all but the first column
  std::size_t indent = 0;           // of a line below the second column
};

Layout lay_out(std::span<const Row> rows, const Page& page) {
  Layout layout;
  for (const Row& row : rows) {
    layout.widths.resize(std::max(layout.widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i)
      layout.widths[i] = std::max(layout.widths[i], display_width(row[i]));
  }
  if (layout.widths.empty()) return layout;
  layout.indent = page.indent + layout.widths.front() + gap;
  const std::size_t room = std::max(page.width, layout.indent) - layout.indent;
  std::size_t used = 0;
  for (std::size_t i = 1; i < layout.widths.size(); ++i) {
    const std::size_t needed = layout.widths[i] + (layout.groups.empty() ? 0 : gap);
    if (layout.groups.empty() || used + needed > room) {
      layout.groups.push_back({.first = i, .end = i, .fits = layout.widths[i] <= room});
      used = layout.widths[i];
    } else {
      used += needed;
    }
    layout.groups.back().end = i + 1;
  }
  if (layout.groups.empty()) layout.groups.push_back({});
  return layout;
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - display_width(text), ' ');
}

std::vector<std::string> breakable(const std::string& text) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    pieces.back() += c;
    if (c == ' ' || c == ',') pieces.emplace_back();
  }
  return pieces;
}

bool is_empty(const Row& row, const Group& group) {
  for (std::size_t i = group.first; i < std::min(group.end, row.size()); ++i)
    if (!row[i].empty()) return false;
  return true;
}

std::string line_of(const Row& row, const Group& group, const Layout& layout, const std::string& name,
                    const Page& page) {
  std::string line = std::string(page.indent, ' ') + padded(name, layout.widths.front() + gap);
  if (!group.fits && group.first < row.size())
    return wrap(line, breakable(row[group.first]),
                {.separator = "", .indent = layout.indent, .width = page.width});
  for (std::size_t i = group.first; i < std::min(group.end, row.size()); ++i)
    line += padded(row[i], layout.widths[i] + gap);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
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

std::string fold_rows(std::span<const Row> rows, const Page& page) {
  const Layout layout = lay_out(rows, page);
  std::string text;
  for (const Row& row : rows)
    for (const Group& group : layout.groups) {
      const bool is_first = group.first == 1;
      if (is_first || !is_empty(row, group))
        text += line_of(row, group, layout, is_first ? row.front() : "", page);
    }
  return text;
}

std::string split_columns(std::span<const Row> rows, const Page& page) {
  const Layout layout = lay_out(rows, page);
  std::string text;
  for (const Group& group : layout.groups) {
    if (group.first > 1) text += '\n';
    for (const Row& row : rows) text += line_of(row, group, layout, row.front(), page);
  }
  return text;
}

}  // namespace gdrbench::report
