#include <gtest/gtest.h>

#include <vector>

#include "report/text_table.hpp"

namespace gdrbench::report {
namespace {

const std::vector<Row> list = {{"GPU0", "H200", "cores 0-3", "x16"}, {"GPU10", "T4", "cores 4", ""}};

TEST(FoldedRows, are_aligned_where_a_line_holds_them) {
  EXPECT_EQ(fold_rows(list, {.indent = 2, .width = 29}),
            "  GPU0   H200  cores 0-3  x16\n"
            "  GPU10  T4    cores 4\n");
}

TEST(FoldedRows, go_on_below_the_second_column_all_at_the_same_one) {
  EXPECT_EQ(fold_rows(list, {.indent = 2, .width = 28}),
            "  GPU0   H200  cores 0-3\n"
            "         x16\n"
            "  GPU10  T4    cores 4\n");
}

TEST(FoldedRows, break_a_cell_that_no_line_holds_after_spaces_and_commas) {
  const std::vector<Row> rows = {{"NIC0", "cores 0,2,4,6,8,10", "eth0"}, {"NIC1", "cores 1", "eth1"}};
  EXPECT_EQ(fold_rows(rows, {.indent = 0, .width = 16}),
            "NIC0  cores 0,2,\n"
            "      4,6,8,10\n"
            "      eth0\n"
            "NIC1  cores 1\n"
            "      eth1\n");
}

TEST(FoldedRows, may_have_no_or_one_column_and_no_room) {
  EXPECT_EQ(fold_rows({}, {}), "");
  const std::vector<Row> names = {{"a"}, {"bc"}};
  EXPECT_EQ(fold_rows(names, {.indent = 1, .width = 0}), " a\n bc\n");
  EXPECT_EQ(fold_rows(list, {.indent = 2, .width = 0}).substr(0, 14), "  GPU0   H200\n");
}

TEST(SplitColumns, begin_each_part_with_the_first_column) {
  const std::vector<Row> matrix = {
      {"", "GPU0", "NIC0", "cores"}, {"GPU0", "X", "PIX", "0-3"}, {"NIC0", "PIX", "X", "0-3"}};
  EXPECT_EQ(split_columns(matrix, {.indent = 2, .width = 18}),
            "        GPU0  NIC0\n"
            "  GPU0  X     PIX\n"
            "  NIC0  PIX   X\n"
            "\n"
            "        cores\n"
            "  GPU0  0-3\n"
            "  NIC0  0-3\n");
}

}  // namespace
}  // namespace gdrbench::report
