#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "memory/memory.hpp"
#include "needs_fake_driver.hpp"

namespace gdrbench::softverbs {
namespace {

using fake::Kind;

constexpr std::size_t buffer_bytes = std::size_t{256} << 10;  // of the engine that copies

/// Without a period, so that no part can pass for another.
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  std::minstd_rand next(seed);
  for (std::byte& byte : data) byte = static_cast<std::byte>(next() >> 8);
  return data;
}

class DeviceMemoryTest : public NeedsFakeDriver {
 protected:
  static void expect_round_trips(Kind kind) {
    constexpr std::size_t room = 3 * buffer_bytes + 4096;
    const std::uint64_t address = allocate(room, kind);
    const auto memory = resolved(address, room);
    ASSERT_NE(memory, nullptr);
    EXPECT_FALSE(memory->on_host());
    unsigned seed = 0;
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9}, std::size_t{4096}, buffer_bytes - 1,
          buffer_bytes, buffer_bytes + 1, 2 * buffer_bytes + 5, 3 * buffer_bytes}) {
      for (const std::size_t offset : {std::size_t{16}, std::size_t{13}}) {
        const auto data = pattern(bytes, ++seed);
        std::byte* seen = driver_->bytes(address);
        std::memset(seen, 0xee, room);
        ASSERT_EQ(memory->write(address + offset, data), 0);
        ASSERT_TRUE(std::equal(data.begin(), data.end(), seen + offset)) << bytes << " bytes";
        ASSERT_EQ(seen[offset - 1], std::byte{0xee});
        ASSERT_EQ(seen[offset + bytes], std::byte{0xee});
        std::vector<std::byte> back(bytes);
        ASSERT_EQ(memory->read(address + offset, back), 0);
        ASSERT_EQ(back, data) << bytes << " bytes";
      }
    }
  }
};

TEST_F(DeviceMemoryTest, IsReadAndWrittenOnTheDevice) {
  expect_round_trips(Kind::device);
}

TEST_F(DeviceMemoryTest, IsReachedInTheContextThatItBelongsTo) {
  expect_round_trips(Kind::other_context_device);
  EXPECT_EQ(counters().primary_retained, 0);
}

TEST_F(DeviceMemoryTest, OfNoContextIsReachedInThePrimaryOne) {
  expect_round_trips(Kind::vmm);
  EXPECT_EQ(counters().primary_retained, 1);
  EXPECT_EQ(counters().primary_released, 1);
}

TEST_F(DeviceMemoryTest, IsReachedWithoutPinnedMemoryToo) {
  driver_->refuse_pinned(true);
  expect_round_trips(Kind::device);
  EXPECT_EQ(counters().pinned_made, 0);
}

TEST_F(DeviceMemoryTest, CannotBeTouchedByTheCpuInTheseTests) {
  const std::uint64_t address = allocate(page);
  EXPECT_EQ(fault_in(address, page, false), EFAULT);
}

TEST_F(DeviceMemoryTest, TakesAllItNeedsFromTheGpuBeforeTheFirstCopyAndGivesItBack) {
  const std::uint64_t first = allocate(page), second = allocate(page);
  {
    const auto one = resolved(first, page), other = resolved(second, page);
    EXPECT_EQ(counters().streams_made, 1) << "a kernel may be waiting for the first copy";
    EXPECT_EQ(counters().pinned_made, 1);
    EXPECT_EQ(one->write(first, pattern(8, 1)), 0);
    EXPECT_EQ(other->write(second, pattern(8, 1)), 0);
    EXPECT_EQ(counters().streams_made, 1) << "regions share one";
    EXPECT_EQ(counters().pinned_made, 1);
    EXPECT_EQ(counters().streams_destroyed, 0);
  }
  EXPECT_EQ(counters().streams_destroyed, 1);
  EXPECT_EQ(counters().pinned_freed, 1);
}

TEST_F(DeviceMemoryTest, ReceivesTheLastByteLast) {
  constexpr std::size_t room = 2 * buffer_bytes;
  const std::uint64_t address = allocate(room);
  const auto memory = resolved(address, room);
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, buffer_bytes, buffer_bytes + 64}) {
    const int before = counters().copies_to_device;
    ASSERT_EQ(memory->write(address, pattern(bytes, 1)), 0);
    EXPECT_EQ(counters().last_written_address, address + bytes - 8);
    EXPECT_EQ(counters().last_written_bytes, 8U) << "an aligned word as a whole";
    EXPECT_GT(counters().copies_to_device, before + 1);
    ASSERT_EQ(memory->write(address + 1, pattern(bytes, 1)), 0);
    EXPECT_EQ(counters().last_written_address, address + bytes);
    EXPECT_EQ(counters().last_written_bytes, 1U);
  }
}

TEST_F(DeviceMemoryTest, IsWrittenOnceWhereOneCopyIsEnough) {
  const std::uint64_t address = allocate(page);
  ASSERT_EQ(resolved(address, page)->write(address + 8, pattern(8, 1)), 0);
  EXPECT_EQ(counters().copies_to_device, 1);
}

TEST_F(DeviceMemoryTest, NeedsNoCopyForNoBytes) {
  const std::uint64_t address = allocate(page);
  const auto memory = resolved(address, page);
  EXPECT_EQ(memory->write(address, {}), 0);
  EXPECT_EQ(memory->read(address, {}), 0);
  EXPECT_EQ(counters().copies_to_device + counters().copies_to_host, 0);
}

TEST_F(DeviceMemoryTest, AddsAtomicallyTowardsTheNic) {
  const std::uint64_t address = allocate(page);
  const auto memory = resolved(address, page);
  std::memset(driver_->bytes(address), 0, page);
  constexpr int rounds = 500;
  std::vector<std::uint64_t> seen[2];
  const auto add = [&](std::vector<std::uint64_t>& before) {
    for (int i = 0; i < rounds; ++i) {
      before.push_back(0);
      if (memory->fetch_add(address + 16, 3, before.back()) != 0) return;
    }
  };
  std::thread other([&] { add(seen[1]); });
  add(seen[0]);
  other.join();
  std::uint64_t sum = 0;
  std::memcpy(&sum, driver_->bytes(address + 16), sizeof sum);
  EXPECT_EQ(sum, 2U * rounds * 3);
  std::set<std::uint64_t> distinct(seen[0].begin(), seen[0].end());
  distinct.insert(seen[1].begin(), seen[1].end());
  EXPECT_EQ(distinct.size(), 2U * rounds) << "no two adds saw the same value";
}

TEST_F(DeviceMemoryTest, SwapsOnlyWhatEqualsTheComparand) {
  const std::uint64_t address = allocate(page);
  const auto memory = resolved(address, page);
  std::uint64_t word = 10, before = 0;
  std::memcpy(driver_->bytes(address), &word, sizeof word);
  EXPECT_EQ(memory->compare_swap(address, 9, 20, before), 0);
  EXPECT_EQ(before, 10U);
  EXPECT_EQ(counters().copies_to_device, 0);
  EXPECT_EQ(memory->compare_swap(address, 10, 20, before), 0);
  EXPECT_EQ(before, 10U);
  std::memcpy(&word, driver_->bytes(address), sizeof word);
  EXPECT_EQ(word, 20U);
}

TEST_F(DeviceMemoryTest, ReportsAnyCopyThatTheDriverRefuses) {
  constexpr std::size_t bytes = 2 * buffer_bytes + 64;
  const std::uint64_t address = allocate(bytes);
  const auto memory = resolved(address, bytes);
  const auto data = pattern(bytes, 1);
  std::vector<std::byte> back(bytes);
  int failing = 1;
  for (int nth = 1; nth <= 7; ++nth, ++failing) {  // each buffer is at most two copies
    driver_->fail_copy(nth);
    const int error = memory->write(address, data);
    driver_->fail_copy(0);
    if (error == 0) break;
    EXPECT_EQ(error, EIO);
  }
  EXPECT_EQ(failing, 7) << "six copies, then one too many to fail";
  for (int nth = 1; nth <= 3; ++nth) {
    driver_->fail_copy(nth);
    EXPECT_EQ(memory->read(address, back), EIO);
  }
  std::uint64_t before = 0;
  driver_->fail_copy(1);
  EXPECT_EQ(memory->fetch_add(address, 1, before), EIO);
  driver_->fail_copy(2);
  EXPECT_EQ(memory->fetch_add(address, 1, before), EIO);
  driver_->fail_copy(2);
  EXPECT_EQ(memory->compare_swap(address, before, before + 1, before), EIO);
  EXPECT_EQ(memory->write(address, data), 0) << "works again";
  EXPECT_EQ(memory->read(address, back), 0);
  EXPECT_EQ(back, data);
}

TEST_F(DeviceMemoryTest, ThatIsFreedGivesAnErrorAndNoCrash) {
  const std::uint64_t address = allocate(page);
  const auto memory = resolved(address, page);
  driver_->free(address);
  std::vector<std::byte> data(8);
  EXPECT_EQ(memory->write(address, data), EIO);
  EXPECT_EQ(memory->read(address, data), EIO);
}

TEST_F(DeviceMemoryTest, OutlivesItsContext) {
  const std::uint64_t address = allocate(page, Kind::other_context_device);
  auto memory = resolved(address, page);
  std::vector<std::byte> data(64);
  ASSERT_EQ(memory->write(address, data), 0);
  driver_->destroy_context(Kind::other_context_device);
  EXPECT_EQ(memory->write(address, data), EIO);
  EXPECT_EQ(memory->read(address, data), EIO);
  memory = nullptr;
}

TEST_F(DeviceMemoryTest, WorksAgainAfterTheDeviceWasReset) {
  const std::uint64_t before = allocate(page);
  const auto stale = resolved(before, page);
  const auto data = pattern(64, 1);
  ASSERT_EQ(stale->write(before, data), 0);
  driver_->destroy_context(Kind::device);
  const std::uint64_t after = allocate(page);
  const auto memory = resolved(after, page);
  EXPECT_EQ(stale->write(before, data), EIO);
  std::vector<std::byte> back(data.size());
  EXPECT_EQ(memory->write(after, data), 0);
  EXPECT_EQ(memory->read(after, back), 0);
  EXPECT_EQ(back, data);
}

TEST_F(DeviceMemoryTest, OutlivesTheDriver) {
  const std::uint64_t address = allocate(page), mapped = allocate(page, Kind::vmm);
  auto memory = resolved(address, page), never_used = resolved(mapped, page);
  std::vector<std::byte> data(64);
  ASSERT_EQ(memory->write(address, data), 0);
  driver_->deinitialize(true);
  EXPECT_EQ(memory->write(address, data), EIO);
  EXPECT_EQ(memory->read(address, data), EIO);
  EXPECT_EQ(never_used->write(mapped, data), EIO);
  EXPECT_EQ(refusal(address, page), EFAULT);
  memory = never_used = nullptr;
}

TEST_F(DeviceMemoryTest, IsRegisteredOnlyWithinOneAllocation) {
  const std::uint64_t first = allocate(2 * page), second = allocate(page);
  ASSERT_EQ(second, first + 2 * page) << "adjacent, so that both ends are device memory";
  EXPECT_NE(resolved(first + page, page), nullptr);
  EXPECT_EQ(refusal(first + page, page + 1), EINVAL);
  EXPECT_EQ(refusal(first, 3 * page), EINVAL);
  EXPECT_EQ(refusal(first, 0), EINVAL);
  EXPECT_EQ(refusal(first, ~std::uint64_t{0}), EINVAL);
  EXPECT_EQ(refusal(allocate(100), 101), EINVAL) << "not the rest of its page";
}

TEST_F(DeviceMemoryTest, OfSeveralMappingsIsRegisteredAsAWhole) {
  for (const bool old : {false, true}) {
    driver_->reset();
    driver_->make_old(old);
    constexpr std::size_t bytes = 3 * fake::segment_bytes;
    const std::uint64_t address = allocate(bytes, Kind::vmm);
    EXPECT_NE(resolved(address, bytes), nullptr);
    EXPECT_NE(resolved(address + fake::segment_bytes - 1, 2), nullptr);
    EXPECT_EQ(refusal(address, bytes + 1), EINVAL) << "nothing is mapped there";
    allocate(page);
    EXPECT_EQ(refusal(address, bytes + 1), EINVAL) << "another allocation is there";
  }
}

TEST_F(DeviceMemoryTest, WithAHoleBetweenMappingsIsRefused) {
  for (const bool old : {false, true}) {
    driver_->reset();
    driver_->make_old(old);
    const std::uint64_t address = allocate(3 * fake::segment_bytes, Kind::vmm_with_hole);
    EXPECT_NE(resolved(address, fake::segment_bytes), nullptr);
    EXPECT_EQ(refusal(address, fake::segment_bytes + 1), EINVAL);
    EXPECT_EQ(refusal(address, 3 * fake::segment_bytes), EINVAL);
    EXPECT_NE(resolved(address + 2 * fake::segment_bytes, fake::segment_bytes), nullptr);
  }
}

TEST_F(DeviceMemoryTest, OfSeveralMappingsIsRefusedWhereOneOfThemCannotBeReached) {
  const std::uint64_t address = allocate(fake::segment_bytes, Kind::vmm);
  ASSERT_EQ(allocate(fake::segment_bytes, Kind::vmm_not_rdma_capable), address + fake::segment_bytes);
  EXPECT_EQ(refusal(address, 2 * fake::segment_bytes), EINVAL);
}

TEST_F(DeviceMemoryTest, WithoutRdmaCapabilityIsRefused) {
  EXPECT_EQ(refusal(allocate(page, Kind::vmm_not_rdma_capable), page), EFAULT);
}

TEST_F(DeviceMemoryTest, IsNotManagedMemory) {
  EXPECT_EQ(refusal(allocate(page, Kind::managed), page), EFAULT);
}

TEST_F(DeviceMemoryTest, IsNotHostMemoryOfCuda) {
  const std::uint64_t address = allocate(page, Kind::host);
  const auto memory = resolved(address, page);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(memory->on_host());
  EXPECT_EQ(memory->write(address, pattern(8, 1)), 0);
  EXPECT_EQ(counters().copies_to_device, 0);
}

}  // namespace
}  // namespace gdrbench::softverbs
