#include "gdrbench/size.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <unordered_set>

#include "gdrbench/error.hpp"

namespace gdrbench {
namespace {

constexpr std::string_view accepted_size = "use digits with an optional k, M, G or T (powers of 1024)";
constexpr std::string_view accepted_range = "a range is from:to:xFACTOR, like 8:64M:x2";
constexpr std::size_t max_list = 10'000;
constexpr std::size_t max_quote = 64;

/// Reads a text from left to right and knows where it is, so that every error can name the place.
class Reader {
 public:
  Reader(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  std::size_t position() const { return next_; }

  bool skip(char wanted) {
    if (next_ == text_.size() || text_[next_] != wanted) return false;
    ++next_;
    return true;
  }

  void expect(char wanted, std::string_view hint) {
    if (!skip(wanted)) unexpected(fmt::format("'{}'", wanted), hint);
  }

  void expect_end() const {
    if (next_ != text_.size()) unexpected("the end", accepted_size);
  }

  std::uint64_t size() {
    const std::size_t start = next_;
    const std::uint64_t count = number();
    const std::uint64_t unit = suffix();
    if (count > std::numeric_limits<std::uint64_t>::max() / unit) too_large(start);
    return count * unit;
  }

  std::uint64_t positive_size() {
    const std::size_t start = next_;
    const std::uint64_t value = size();
    if (value == 0) fail(start, "sizes start at 1, found 0", accepted_size);
    return value;
  }

  std::uint64_t factor() {
    expect('x', accepted_range);
    const std::size_t start = next_;
    const std::uint64_t value = digits(10);
    if (value < 2) fail(start, fmt::format("the factor must be at least 2, found {}", value), accepted_range);
    return value;
  }

  [[noreturn]] void fail(std::size_t place, std::string_view fault, std::string_view hint) const {
    const bool whole = text_.size() <= max_quote;
    throw UsageError(fmt::format("{} '{}{}': {} at position {}; {}", what_, text_.substr(0, max_quote),
                                 whole ? "" : "…", fault, place + 1, hint));
  }

 private:
  std::uint64_t number() {
    const std::string_view prefix = text_.substr(next_, 2);
    if (prefix != "0x" && prefix != "0X") return digits(10);
    next_ += 2;
    return digits(16);
  }

  std::uint64_t digits(int base) {
    std::uint64_t value = 0;
    const char* const first = text_.data() + next_;
    const auto [stop, fault] = std::from_chars(first, text_.data() + text_.size(), value, base);
    if (fault == std::errc::invalid_argument) unexpected("a number", accepted_size);
    if (fault == std::errc::result_out_of_range) too_large(next_);
    next_ += static_cast<std::size_t>(stop - first);
    return value;
  }

  /// Bytes in the unit that follows the number: 1 when there is none.
  std::uint64_t suffix() {
    if (next_ == text_.size()) return 1;
    constexpr std::string_view lower = "kmgt";
    constexpr std::string_view upper = "KMGT";
    std::size_t power = lower.find(text_[next_]);
    if (power == std::string_view::npos) power = upper.find(text_[next_]);
    if (power == std::string_view::npos) return 1;
    ++next_;
    if (text_.substr(next_, 2) == "iB")
      next_ += 2;
    else
      skip('B');
    return std::uint64_t{1} << (10 * (power + 1));
  }

  [[noreturn]] void unexpected(std::string_view wanted, std::string_view hint) const {
    if (next_ == text_.size()) fail(next_, fmt::format("{} is missing", wanted), hint);
    const auto found = static_cast<unsigned char>(text_[next_]);
    const bool printable = found >= 0x20 && found < 0x7f;
    fail(next_,
         printable ? fmt::format("unexpected '{:c}'", found) : fmt::format("unexpected byte 0x{:02x}", found),
         hint);
  }

  [[noreturn]] void too_large(std::size_t place) const {
    fail(place, fmt::format("a size above {} bytes", std::numeric_limits<std::uint64_t>::max()),
         accepted_size);
  }

  std::string_view what_;
  std::string_view text_;
  std::size_t next_ = 0;
};

/// Collects the sizes of a list in order, each once.
class SizeList {
 public:
  void add(std::uint64_t size, const Reader& reader, std::size_t place) {
    if (++entries_ > max_list)
      reader.fail(place, fmt::format("more than {} sizes", max_list), "use a range with a larger factor");
    if (seen_.insert(size).second) sizes_.push_back(size);
  }
  std::vector<std::uint64_t> take() { return std::move(sizes_); }

 private:
  std::size_t entries_ = 0;
  std::unordered_set<std::uint64_t> seen_;
  std::vector<std::uint64_t> sizes_;
};

// Two decimals, and bytes where those are not exact for less than `exact_below`.
std::string format(std::uint64_t bytes, std::uint64_t exact_below) {
  static constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // What two decimals would round to 1024 belongs to the next unit.
  for (; value >= 1023.995 && unit + 1 < std::size(units); ++unit) value /= 1024;
  std::string digits = fmt::format("{:.2f}", value);
  if (bytes < exact_below && std::stod(digits) != value) return fmt::format("{} B", bytes);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return fmt::format("{} {}", digits, units[unit]);
}

}  // namespace

std::uint64_t parse_size(std::string_view text) {
  Reader reader("size", text);
  const std::uint64_t size = reader.size();
  reader.expect_end();
  return size;
}

std::vector<std::uint64_t> parse_sizes(std::string_view text) {
  Reader reader("sizes", text);
  SizeList list;
  do {
    const std::size_t place = reader.position();
    const std::uint64_t from = reader.positive_size();
    if (!reader.skip(':')) {
      list.add(from, reader, place);
      continue;
    }
    const std::uint64_t to = reader.positive_size();
    if (from > to)
      reader.fail(place, fmt::format("a range that runs down from {} to {}", from, to), accepted_range);
    reader.expect(':', accepted_range);
    const std::uint64_t factor = reader.factor();
    for (std::uint64_t size = from; size < to; size *= factor) {
      list.add(size, reader, place);
      if (size > to / factor) break;  // the product would pass `to`, or 64 bits
    }
    list.add(to, reader, place);
  } while (reader.skip(','));
  reader.expect_end();
  return list.take();
}

std::string format_size(std::uint64_t bytes) {
  return format(bytes, 16 << 20);
}

std::string format_exact_size(std::uint64_t bytes) {
  return format(bytes, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace gdrbench
