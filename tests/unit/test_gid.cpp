#include <gtest/gtest.h>

#include <vector>

#include "gdrbench/error.hpp"
#include "verbs/gid.hpp"

namespace gdrbench::verbs {
namespace {

const GidBytes link_local = gid_from_hex("fe800000000000000000000000000001");
const GidBytes unique_local = gid_from_hex("fd930000000000000000000000000001");
const GidBytes global = gid_from_hex("20010db8000000000000000000000001");
const GidBytes ipv4 = gid_from_hex("00000000000000000000ffff0a000005");

std::vector<GidEntry> table(const std::vector<std::pair<GidBytes, GidType>>& slots) {
  std::vector<GidEntry> entries;
  entries.reserve(slots.size());
  for (const auto& [gid, type] : slots)
    entries.push_back({.gid = gid, .type = type, .index = static_cast<int>(entries.size())});
  return entries;
}

TEST(ChooseGid, PrefersRoceV2OverIpv4ToEverythingElse) {
  EXPECT_EQ(choose_gid(table({{link_local, GidType::roce_v1},
                              {link_local, GidType::roce_v2},
                              {ipv4, GidType::roce_v1},
                              {ipv4, GidType::roce_v2}})),
            3);
  EXPECT_EQ(choose_gid(table({{link_local, GidType::roce_v2}, {ipv4, GidType::roce_v2}})), 1);
  EXPECT_EQ(choose_gid(table({{global, GidType::roce_v2}, {ipv4, GidType::roce_v2}})), 1);
}

TEST(ChooseGid, PrefersRoutableIpv6) {
  EXPECT_EQ(choose_gid(table({{link_local, GidType::roce_v2}, {unique_local, GidType::roce_v2}})), 1);
  EXPECT_EQ(choose_gid(table({{unique_local, GidType::roce_v2}, {global, GidType::roce_v2}})), 1);
}

TEST(ChooseGid, TakesAnyV2BeforeV1) {
  EXPECT_EQ(choose_gid(table({{ipv4, GidType::roce_v1}, {link_local, GidType::roce_v2}})), 1);
  EXPECT_EQ(choose_gid(table({{ipv4, GidType::roce_v1}})), 0);
}

TEST(ChooseGid, ReturnsTheSlotAndNotThePlaceInTheList) {
  auto entries = table({{link_local, GidType::roce_v2}, {ipv4, GidType::roce_v2}});
  entries[1].index = 7;
  EXPECT_EQ(choose_gid(entries), 7);
}

TEST(ChooseGid, TakesTheLowestIndexAmongEquals) {
  auto entries = table({{ipv4, GidType::roce_v2}, {ipv4, GidType::roce_v2}});
  std::swap(entries[0], entries[1]);
  EXPECT_EQ(choose_gid(entries), 0);
}

TEST(ChooseGid, HasNoChoiceInAnEmptyTable) {
  EXPECT_EQ(choose_gid({}), std::nullopt);
}

TEST(ChooseGid, TakesTheFirstOfAnInfinibandPort) {
  EXPECT_EQ(choose_gid(table({{link_local, GidType::infiniband}, {global, GidType::infiniband}})), 0);
}

TEST(GidText, SurvivesTheWayThroughHexadecimal) {
  EXPECT_EQ(to_hex(ipv4), "00000000000000000000ffff0a000005");
  EXPECT_EQ(gid_from_hex(to_hex(global)), global);
}

TEST(GidText, RefusesWhatIsNotThirtyTwoHexadecimalDigits) {
  EXPECT_THROW(gid_from_hex(""), Error);
  EXPECT_THROW(gid_from_hex("00000000000000000000ffff0a00000"), Error);
  EXPECT_THROW(gid_from_hex("00000000000000000000ffff0a0000050"), Error);
  EXPECT_THROW(gid_from_hex("00000000000000000000ffff0a00000g"), Error);
  EXPECT_THROW(gid_from_hex("-0000000000000000000ffff0a000005a"), Error);
}

TEST(GidText, ShowsAMappedAddressAsIpv4) {
  EXPECT_EQ(to_ip(ipv4), "10.0.0.5");
  EXPECT_EQ(to_ip(link_local), "fe80::1");
}

}  // namespace
}  // namespace gdrbench::verbs
