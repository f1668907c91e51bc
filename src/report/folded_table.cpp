#include "report/folded_table.hpp"

#include <algorithm>
#include <vector>

namespace gdrbench::report {
namespace {

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
