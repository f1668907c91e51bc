#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Call>
std::string usage_error_of(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}
std::string refusal(std::string_view text) {
  return usage_error_of([&] { parse_size(text); });
}
std::string list_refusal(std::string_view text) {
  return usage_error_of([&] { parse_sizes(text); });
}

TEST(ParseSize, ReadsTheSizesWhoseAnswerIsKnown) {
  EXPECT_EQ(parse_size("4M"), 4194304U);
  EXPECT_EQ(parse_size("4k"), 4096U);
  EXPECT_EQ(parse_size("1G"), 1073741824U);
  EXPECT_EQ(parse_size("010"), 10U) << "a leading zero is not octal";
  EXPECT_EQ(parse_size("0x1000"), 4096U);
  EXPECT_EQ(parse_size("4294967297"), 4294967297U) << "not cut to 32 bits";
  EXPECT_EQ(parse_size("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseSize, TakesEverySpellingOfASuffixAsAPowerOf1024) {
  for (const char* text : {"4k", "4K", "4kB", "4KB", "4kiB", "4KiB"})
    EXPECT_EQ(parse_size(text), 4096U) << text;
  EXPECT_EQ(parse_size("2T"), std::uint64_t{2} << 40);
  EXPECT_EQ(parse_size("1m"), std::uint64_t{1} << 20);
  EXPECT_EQ(parse_size("0x10k"), 16384U);
  EXPECT_EQ(parse_size("16777215T"), std::uint64_t{16777215} << 40);
}

TEST(ParseSize, NamesTheFaultAndItsPosition) {
  EXPECT_EQ(
      refusal("5Q"),
      "size '5Q': unexpected 'Q' at position 2; use digits with an optional k, M, G or T (powers of 1024)");
  EXPECT_THAT(refusal("-1"), HasSubstr("size '-1': unexpected '-' at position 1"));
  EXPECT_THAT(refusal(""), HasSubstr("size '': a number is missing at position 1"));
  EXPECT_THAT(refusal("k"), HasSubstr("unexpected 'k' at position 1"));
  EXPECT_THAT(refusal("0x"), HasSubstr("a number is missing at position 3"));
  EXPECT_THAT(refusal("4ki"), HasSubstr("unexpected 'i' at position 3"));
  EXPECT_THAT(refusal("4kk"), HasSubstr("unexpected 'k' at position 3"));
  EXPECT_THAT(refusal("4kBB"), HasSubstr("unexpected 'B' at position 4"));
  EXPECT_THAT(refusal("1.5M"), HasSubstr("unexpected '.' at position 2"));
  EXPECT_THAT(refusal("5\n"), HasSubstr("unexpected byte 0x0a at position 2"));
  for (const char* text : {" 5", "5 ", "+5", "5,6", "8B", "0x", "1e6", "4Kib"})
    EXPECT_THAT(refusal(text), HasSubstr("position")) << text;
}

TEST(ParseSize, RefusesWhatDoesNotFitIn64Bits) {
  EXPECT_THAT(refusal("18446744073709551616"), HasSubstr("above 18446744073709551615 bytes at position 1"));
  EXPECT_THAT(refusal("0x10000000000000000"), HasSubstr("above 18446744073709551615 bytes"));
  EXPECT_THAT(refusal("16777216T"), HasSubstr("above 18446744073709551615 bytes"))
      << "overflow by its suffix";
}

TEST(ParseSize, QuotesOnlyTheStartOfALongText) {
  EXPECT_THAT(refusal(std::string(5000, '1')), HasSubstr("111…': a size above"));
  EXPECT_LT(refusal(std::string(5000, '1')).size(), 300U);
}

TEST(ParseSizes, KeepsTheOrderAndDropsRepetitions) {
  EXPECT_THAT(parse_sizes("8"), ElementsAre(8));
  EXPECT_THAT(parse_sizes("1M,8,4k,8,4096"), ElementsAre(1 << 20, 8, 4096));
  EXPECT_THAT(parse_sizes("8:32:x2,16,1"), ElementsAre(8, 16, 32, 1));
}

TEST(ParseSizes, IncludesBothEndsOfARange) {
  const auto sizes = parse_sizes("8:64M:x2");
  ASSERT_EQ(sizes.size(), 24U);
  EXPECT_EQ(sizes.front(), 8U);
  EXPECT_EQ(sizes[1], 16U);
  EXPECT_EQ(sizes.back(), 64U << 20);
  EXPECT_THAT(parse_sizes("8:100:x4"), ElementsAre(8, 32, 100)) << "an end that no power hits";
  EXPECT_THAT(parse_sizes("8:8:x2"), ElementsAre(8));
}

TEST(ParseSizes, EndsARangeAtTheLargestSizeWithoutOverflow) {
  EXPECT_THAT(
      parse_sizes("4611686018427387904:18446744073709551615:x2"),
      ElementsAre(std::uint64_t{1} << 62, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()));
  EXPECT_THAT(parse_sizes("2:18446744073709551615:x18446744073709551615"),
              ElementsAre(2, std::numeric_limits<std::uint64_t>::max()));
}

TEST(ParseSizes, NamesTheFaultAndItsPositionInTheWholeList) {
  EXPECT_THAT(list_refusal("8,5Q"), HasSubstr("sizes '8,5Q': unexpected 'Q' at position 4"));
  EXPECT_THAT(list_refusal(""), HasSubstr("a number is missing at position 1"));
  EXPECT_THAT(list_refusal("8,"), HasSubstr("a number is missing at position 3"));
  EXPECT_THAT(list_refusal(",8"), HasSubstr("unexpected ',' at position 1"));
  EXPECT_THAT(list_refusal("8,,9"), HasSubstr("unexpected ',' at position 3"));
  EXPECT_THAT(list_refusal("0,8"), HasSubstr("sizes start at 1, found 0 at position 1"));
  EXPECT_THAT(list_refusal("0:8:x2"), HasSubstr("sizes start at 1"));
}

TEST(ParseSizes, RefusesRangesThatDoNotGrow) {
  EXPECT_THAT(list_refusal("8:64:x1"), HasSubstr("the factor must be at least 2, found 1 at position 7"));
  EXPECT_THAT(list_refusal("8:64:x0"), HasSubstr("the factor must be at least 2, found 0"));
  EXPECT_THAT(list_refusal("64:8:x2"), HasSubstr("a range that runs down from 64 to 8 at position 1"));
  EXPECT_THAT(list_refusal("8:64"), HasSubstr("':' is missing at position 5; a range is from:to:xFACTOR"));
  EXPECT_THAT(list_refusal("8:64:2"), HasSubstr("unexpected '2' at position 6; a range is from:to:xFACTOR"));
  EXPECT_THAT(list_refusal("8:64:x"), HasSubstr("a number is missing at position 7"));
  EXPECT_THAT(list_refusal("8:64:x2:9"), HasSubstr("unexpected ':' at position 8"));
}

TEST(ParseSizes, RefusesMoreThanTenThousandEntries) {
  std::string list = "1";
  for (int size = 2; size <= 10'000; ++size) list += "," + std::to_string(size);
  EXPECT_EQ(parse_sizes(list).size(), 10'000U);
  EXPECT_THAT(list_refusal(list + ",10001"), HasSubstr("more than 10000 sizes at position"));
}

TEST(FormatSize, UsesTheLargestUnitThatTwoDecimalsGiveExactly) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(8), "8 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(4096), "4 KiB");
  EXPECT_EQ(format_size(3 << 19), "1.5 MiB");
  EXPECT_EQ(format_size(1025), "1025 B");
  EXPECT_EQ(format_size((1 << 20) - 1), "1048575 B");
  EXPECT_EQ(format_size((1 << 30) - 1), "1 GiB") << "rounded, and not 1024 MiB";
  EXPECT_EQ(format_size(std::uint64_t{100} << 30), "100 GiB");
  EXPECT_EQ(format_size(std::numeric_limits<std::uint64_t>::max()), "16 EiB");
}

TEST(FormatExactSize, NeverRounds) {
  EXPECT_EQ(format_exact_size(std::uint64_t{4} << 30), "4 GiB");
  EXPECT_EQ(format_exact_size((std::uint64_t{4} << 30) + 1), "4294967297 B");
  EXPECT_EQ(format_exact_size(3 << 19), "1.5 MiB");
}

}  // namespace
}  // namespace gdrbench
