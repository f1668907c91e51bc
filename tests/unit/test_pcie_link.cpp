#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/pcie_link.hpp"

namespace gdrbench::topology {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

Hop hop(const std::string& address, double gigatransfers, int lanes) {
  return {address,
          {.transfers_per_second = gigatransfers * 1e9,
           .lanes = lanes,
           .max_transfers_per_second = 32e9,
           .max_lanes = 16}};
}

TEST(PcieLink, carries_what_its_coding_leaves) {
  EXPECT_DOUBLE_EQ(link_bytes_per_second(2.5e9, 1), 250e6);
  EXPECT_DOUBLE_EQ(link_bytes_per_second(5e9, 4), 2e9);
  EXPECT_NEAR(link_bytes_per_second(8e9, 16), 15.754e9, 1e6);
  EXPECT_NEAR(link_bytes_per_second(32e9, 16), 63.015e9, 1e6);
  EXPECT_NEAR(link_bytes_per_second(64e9, 16), 118e9, 1e6);
  EXPECT_EQ(link_bytes_per_second(0, 16), 0);
}

TEST(PcieLink, says_what_it_could_be_only_where_that_is_more) {
  EXPECT_EQ(to_string(hop("", 32, 16).link), "32.0 GT/s x16");
  EXPECT_EQ(to_string(hop("", 2.5, 16).link), "2.5 GT/s x16, at most 32.0 GT/s x16");
  EXPECT_EQ(to_string(PcieLink{}), "unknown");
}

TEST(PcieLink, of_a_pair_are_those_below_what_both_ways_share) {
  const std::vector<Hop> gpu = {hop("root", 32, 16), hop("up", 32, 16), hop("down1", 32, 16),
                                hop("gpu", 32, 16)};
  const std::vector<Hop> nic = {hop("root", 32, 16), hop("up", 32, 16), hop("down2", 32, 16),
                                hop("nic", 32, 16)};
  const std::vector<Hop> far = {hop("other", 32, 16)};
  const auto named = [](const char* name) { return Field(&Hop::address, name); };
  EXPECT_THAT(hops_between(gpu, nic),
              ElementsAre(named("gpu"), named("down1"), named("down2"), named("nic")));
  EXPECT_THAT(hops_between(gpu, far),
              ElementsAre(named("gpu"), named("down1"), named("up"), named("root"), named("other")));
  EXPECT_THAT(hops_between(gpu, gpu), IsEmpty());
  EXPECT_THAT(hops_between({}, nic).size(), 4U);
}

TEST(PcieLink, is_narrowest_by_speed_and_width_together) {
  const auto least = narrowest({hop("a", 32, 16), hop("b", 32, 4), hop("c", 16, 4), hop("d", 8, 16)});
  ASSERT_TRUE(least);
  EXPECT_EQ(least->address, "c");
  EXPECT_EQ(narrowest({hop("first", 8, 4), hop("second", 8, 4)})->address, "first");
  EXPECT_EQ(narrowest({hop("untold", 0, 0), hop("told", 8, 4)})->address, "told");
  EXPECT_FALSE(narrowest({hop("untold", 0, 0)}));
}

}  // namespace
}  // namespace gdrbench::topology
