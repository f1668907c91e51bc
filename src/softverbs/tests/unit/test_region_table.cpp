#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <system_error>
#include <thread>

#include "nic/device.hpp"
#include "nic/region_table.hpp"

namespace gdrbench::softverbs {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();

class NoMemory : public Memory {
 public:
  bool on_host() const override { return true; }
  int write(std::uint64_t, std::span<const std::byte>) const override { return EIO; }
  int read(std::uint64_t, std::span<std::byte>) const override { return EIO; }
  int fetch_add(std::uint64_t, std::uint64_t, std::uint64_t&) const override { return EIO; }
  int compare_swap(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t&) const override { return EIO; }
};

class SoftverbsRegionTable : public testing::Test {
 protected:
  static constexpr std::uint64_t base = 0x7000, iova = 0x100000, length = 0x1000;

  SoftverbsRegionTable() { prepare(region_); }
  void prepare(MemoryRegion& region) {
    region.pd = &domain_;
    region.base = base;
    region.iova = iova;
    region.length = length;
    region.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    region.memory = std::make_shared<NoMemory>();
  }
  bool local(std::uint64_t address, std::uint64_t bytes, int access = 0) {
    return bool(table_.local(region_.lkey, &domain_, address, bytes, access));
  }

  RegionTable table_;
  ibv_pd domain_{}, other_domain_{};
  MemoryRegion region_;
};

TEST_F(SoftverbsRegionTable, GivesOneKeyForBothUsesAndNeverZero) {
  for (int i = 0; i < 1000; ++i) {
    table_.insert(region_);
    EXPECT_NE(region_.lkey, 0U);
    EXPECT_EQ(region_.lkey, region_.rkey);
    table_.remove(region_);
  }
}

TEST_F(SoftverbsRegionTable, AFreedKeyIsNotGivenOutAgainSoon) {
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 20'000; ++i) {
    table_.insert(region_);
    EXPECT_TRUE(keys.insert(region_.lkey).second) << region_.lkey << " after " << i;
    table_.remove(region_);
  }
}

TEST_F(SoftverbsRegionTable, AllowsWhatLiesInTheRegionAndNothingElse) {
  table_.insert(region_);
  EXPECT_TRUE(local(iova, length));
  EXPECT_TRUE(local(iova, 1));
  EXPECT_TRUE(local(iova + length - 1, 1));
  EXPECT_FALSE(local(iova, length + 1));
  EXPECT_FALSE(local(iova + 1, length));
  EXPECT_FALSE(local(iova + length, 1));
  EXPECT_FALSE(local(iova - 1, 2));
  EXPECT_FALSE(local(base, 1));
}

TEST_F(SoftverbsRegionTable, RangesThatWrapAroundAreRefused) {
  table_.insert(region_);
  EXPECT_FALSE(local(iova, top));
  EXPECT_FALSE(local(top, 1));
  EXPECT_FALSE(local(top, top));
  EXPECT_FALSE(local(top - length + 1, length));
  EXPECT_FALSE(local(iova + 8, top - 7));
}

TEST_F(SoftverbsRegionTable, ARegionAtTheTopOfTheAddressesIsUsedToItsEnd) {
  region_.iova = top - length + 1;
  table_.insert(region_);
  EXPECT_TRUE(local(region_.iova, length));
  EXPECT_TRUE(local(top, 1));
  EXPECT_FALSE(local(top, 2));
}

TEST_F(SoftverbsRegionTable, ARegionThatIsNamedBeyondTheTopDoesNotGoOnAtZero) {
  region_.iova = top - 7;
  table_.insert(region_);
  EXPECT_TRUE(local(region_.iova, 8));
  EXPECT_FALSE(local(0, 8));
}

TEST_F(SoftverbsRegionTable, TranslatesToTheAddressInThisProcess) {
  table_.insert(region_);
  const RegionAccess access = table_.local(region_.lkey, &domain_, iova + 0x123, 16, 0);
  ASSERT_TRUE(access);
  EXPECT_EQ(access.address, base + 0x123);
  EXPECT_EQ(access.memory, region_.memory.get());
}

TEST_F(SoftverbsRegionTable, RefusesAKeyOfAnotherDomain) {
  table_.insert(region_);
  EXPECT_FALSE(table_.local(region_.lkey, &other_domain_, iova, 8, 0));
  EXPECT_FALSE(table_.remote(region_.rkey, &other_domain_, iova, 8, IBV_ACCESS_REMOTE_READ));
  EXPECT_TRUE(table_.remote(region_.rkey, &domain_, iova, 8, IBV_ACCESS_REMOTE_READ));
}

TEST_F(SoftverbsRegionTable, RefusesAccessThatTheRegionDoesNotGrant) {
  table_.insert(region_);
  EXPECT_TRUE(local(iova, 8, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_FALSE(table_.remote(region_.rkey, &domain_, iova, 8, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_FALSE(table_.remote(region_.rkey, &domain_, iova, 8, IBV_ACCESS_REMOTE_ATOMIC));
  region_.access = 0;
  EXPECT_TRUE(local(iova, 8));
  EXPECT_FALSE(local(iova, 8, IBV_ACCESS_LOCAL_WRITE));
}

TEST_F(SoftverbsRegionTable, RefusesKeysThatWereNeverGivenOut) {
  table_.insert(region_);
  for (const std::uint32_t key : {0U, 1U, region_.lkey + 1, region_.lkey + 0x100, 0xffffffffU})
    EXPECT_FALSE(table_.local(key, &domain_, iova, 8, 0)) << key;
}

TEST_F(SoftverbsRegionTable, AKeyIsVoidOnceItsRegionIsRemovedEvenIfItsPlaceIsUsedAgain) {
  table_.insert(region_);
  const std::uint32_t first = region_.lkey;
  table_.remove(region_);
  EXPECT_FALSE(table_.local(first, &domain_, iova, 8, 0));
  bool place_used_again = false;
  for (int i = 0; i < 1000; ++i) {
    table_.insert(region_);
    place_used_again |= region_.lkey >> 8 == first >> 8;
    EXPECT_FALSE(table_.local(first, &domain_, iova, 8, 0));
    table_.remove(region_);
  }
  EXPECT_TRUE(place_used_again);
}

TEST_F(SoftverbsRegionTable, RemovingWaitsUntilTheLastAccessEnds) {
  table_.insert(region_);
  RegionAccess first = table_.local(region_.lkey, &domain_, iova, 8, 0);
  RegionAccess second = table_.remote(region_.rkey, &domain_, iova, 8, IBV_ACCESS_REMOTE_READ);
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    table_.remove(region_);
    removed = true;
  });
  first = {};
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(removed);
  second = {};
  remover.join();
  EXPECT_TRUE(removed);
}

TEST_F(SoftverbsRegionTable, AnAccessToOneRegionDoesNotKeepAnother) {
  table_.insert(region_);
  MemoryRegion other;
  prepare(other);
  table_.insert(other);
  const RegionAccess access = table_.local(region_.lkey, &domain_, iova, 8, 0);
  table_.remove(other);
  EXPECT_TRUE(access);
}

TEST_F(SoftverbsRegionTable, RefusesMoreRegionsThanTheDeviceHas) {
  for (int i = 0; i < max_regions; ++i) table_.insert(region_);
  try {
    table_.insert(region_);
    FAIL() << "one too many";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOMEM);
  }
  table_.remove(region_);
  EXPECT_NO_THROW(table_.insert(region_));
}

TEST_F(SoftverbsRegionTable, ARemovedRegionIsNeverSeenByThreadsThatUseItsKey) {
  std::atomic<std::uint32_t> key{0};
  std::atomic<bool> stop{false};
  std::atomic<int> dead_seen{0};
  auto use = [&] {
    while (!stop) {
      const RegionAccess access = table_.local(key, &domain_, iova, 8, 0);
      if (access && access.memory->write(0, {}) != EIO) ++dead_seen;
    }
  };
  std::array<std::thread, 2> users{std::thread(use), std::thread(use)};
  for (int i = 0; i < 3000; ++i) {
    MemoryRegion region;  // a sanitizer sees a use after its end
    prepare(region);
    table_.insert(region);
    key = region.lkey;
    if (i % 16 == 0) std::this_thread::yield();
    table_.remove(region);
  }
  stop = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(dead_seen, 0);
}

}  // namespace
}  // namespace gdrbench::softverbs
