#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "memory/memory.hpp"

namespace gdrbench::softverbs {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Pages of a mapping that ends with it.
class Mapping {
 public:
  Mapping(std::size_t pages, int protection, int file = -1)
      : bytes_(pages * page),
        first_(
            mmap(nullptr, bytes_, protection, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0)) {
    if (first_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Mapping() { munmap(first_, bytes_); }
  Mapping(const Mapping&) = delete;

  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(first_) + offset; }
  std::uint64_t address(std::size_t offset = 0) const { return reinterpret_cast<std::uint64_t>(at(offset)); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* first_;
};

/// Both ways of faulting memory in must agree.
class FaultIn : public ::testing::TestWithParam<decltype(&fault_in)> {};
INSTANTIATE_TEST_SUITE_P(Ways, FaultIn, ::testing::Values(&fault_in, &fault_in_by_reading),
                         [](const auto& way) {
                           return std::string(way.index == 0 ? "ByPopulating" : "ByReading");
                         });

TEST_P(FaultIn, AcceptsMappedMemoryOfAnyAlignment) {
  const Mapping memory(3, PROT_READ | PROT_WRITE);
  EXPECT_EQ(GetParam()(memory.address(), memory.size(), true), 0);
  EXPECT_EQ(GetParam()(memory.address(page - 1), page + 2, true), 0);
  EXPECT_EQ(GetParam()(memory.address(memory.size() - 1), 1, true), 0);
}

TEST_P(FaultIn, RefusesARangeOfWhichAnyPageIsNotMapped) {
  const Mapping memory(3, PROT_READ | PROT_WRITE);
  munmap(memory.at(page), page);
  EXPECT_EQ(GetParam()(memory.address(page), 1, false), EFAULT);
  EXPECT_EQ(GetParam()(memory.address(), memory.size(), false), EFAULT) << "a hole in the middle";
  EXPECT_EQ(GetParam()(memory.address(), page + 1, true), EFAULT) << "one byte too many";
  EXPECT_EQ(GetParam()(memory.address(), page, true), 0);
  EXPECT_EQ(GetParam()(memory.address(2 * page - 1), 2, true), EFAULT) << "one byte too early";
  EXPECT_EQ(GetParam()(1, 1, false), EFAULT);
}

TEST_P(FaultIn, RefusesReadOnlyMemoryOnlyWhereItIsToBeWritten) {
  const Mapping memory(3, PROT_READ | PROT_WRITE);
  mprotect(memory.at(page), page, PROT_READ);
  EXPECT_EQ(GetParam()(memory.address(), memory.size(), true), EFAULT);
  EXPECT_EQ(GetParam()(memory.address(), memory.size(), false), 0);
}

TEST_P(FaultIn, RefusesMemoryWithoutAnyAccess) {
  const Mapping memory(1, PROT_NONE);
  EXPECT_EQ(GetParam()(memory.address(), 1, false), EFAULT);
  EXPECT_EQ(GetParam()(memory.address(), 1, true), EFAULT);
}

TEST_P(FaultIn, RefusesAFileMappingPastTheEndOfTheFile) {
  const int file = memfd_create("short", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 1), 0);
  const Mapping memory(2, PROT_READ | PROT_WRITE, file);
  EXPECT_EQ(GetParam()(memory.address(), page, true), 0) << "the page that holds the end";
  EXPECT_EQ(GetParam()(memory.address(), 2 * page, true), EFAULT);
  EXPECT_EQ(GetParam()(memory.address(page), 1, false), EFAULT);
  close(file);
}

TEST_P(FaultIn, RefusesPagesThatCannotBePinned) {
  std::uint64_t kernel_page =
      0;  // of the kernel's clock: mapped and readable, but no memory (VM_IO, VM_PFNMAP)
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  ASSERT_NE(maps, nullptr);
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), maps) != nullptr)
    if (std::string_view(line.data()).find("[vvar]") != std::string_view::npos)
      std::sscanf(line.data(), "%" SCNx64, &kernel_page);
  std::fclose(maps);
  if (kernel_page == 0) GTEST_SKIP() << "no [vvar] page in /proc/self/maps";
  EXPECT_EQ(GetParam()(kernel_page, 1, false), EFAULT);
}

TEST_P(FaultIn, RefusesAnEmptyRangeAndOneThatWrapsAround) {
  const Mapping memory(1, PROT_READ | PROT_WRITE);
  EXPECT_EQ(GetParam()(memory.address(), 0, true), EINVAL);
  EXPECT_EQ(GetParam()(memory.address(), ~std::uint64_t{0}, true), EINVAL);
  EXPECT_EQ(GetParam()(~std::uint64_t{0} - 1, 1, true), EINVAL) << "the end of its page is 0";
}

TEST_P(FaultIn, LeavesTheContentsAlone) {
  const Mapping memory(2, PROT_READ | PROT_WRITE);
  std::memset(memory.at(0), 0x5a, memory.size());
  ASSERT_EQ(GetParam()(memory.address(), memory.size(), true), 0);
  EXPECT_TRUE(std::all_of(memory.at(0), memory.at(memory.size()),
                          [](std::byte byte) { return byte == std::byte{0x5a}; }));
}

TEST(ResolveMemory, MakesHostMemoryResident) {
  const Mapping memory(4, PROT_READ | PROT_WRITE);
  std::array<unsigned char, 4> resident{};
  ASSERT_EQ(mincore(memory.at(0), memory.size(), resident.data()), 0);
  ASSERT_EQ(resident[1] & 1, 0) << "not touched yet";
  const auto [resolved, error] = resolve_memory(memory.address(), memory.size(), true);
  ASSERT_NE(resolved, nullptr) << error;
  EXPECT_TRUE(resolved->on_host());
  ASSERT_EQ(mincore(memory.at(0), memory.size(), resident.data()), 0);
  for (const unsigned char one : resident) EXPECT_EQ(one & 1, 1);
}

TEST(ResolveMemory, SaysWhyItRefuses) {
  const Mapping memory(1, PROT_READ);
  const ResolvedMemory refused = resolve_memory(memory.address(), page, true);
  EXPECT_EQ(refused.memory, nullptr);
  EXPECT_EQ(refused.error, EFAULT);
  EXPECT_EQ(resolve_memory(memory.address(), 0, false).error, EINVAL);
}

TEST(HostMemory, IsReadAndWrittenAtItsAddress) {
  std::array<std::byte, 16> memory{}, out{};
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const std::array data{std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_EQ(host_memory()->write(address + 5, data), 0);
  EXPECT_EQ(host_memory()->read(address, out), 0);
  EXPECT_EQ(out, memory);
  EXPECT_EQ(memory[4], std::byte{0});
  EXPECT_EQ(memory[5], std::byte{1});
  EXPECT_EQ(memory[7], std::byte{3});
  EXPECT_EQ(memory[8], std::byte{0});
}

TEST(HostMemory, AddsAtomically) {
  alignas(8) std::uint64_t word = 0;
  const auto address = reinterpret_cast<std::uint64_t>(&word);
  constexpr int rounds = 20'000;
  const auto add = [&] {
    std::uint64_t before = 0;
    for (int i = 0; i < rounds; ++i) host_memory()->fetch_add(address, 3, before);
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(word, 2U * rounds * 3);
}

TEST(HostMemory, SwapsOnlyWhatEqualsTheComparand) {
  alignas(8) std::uint64_t word = 10;
  const auto address = reinterpret_cast<std::uint64_t>(&word);
  std::uint64_t before = 0;
  EXPECT_EQ(host_memory()->compare_swap(address, 9, 20, before), 0);
  EXPECT_EQ(before, 10U);
  EXPECT_EQ(word, 10U);
  EXPECT_EQ(host_memory()->compare_swap(address, 10, 20, before), 0);
  EXPECT_EQ(before, 10U);
  EXPECT_EQ(word, 20U);
}

TEST(DmaCopy, CopiesEveryLengthAndAlignmentAndNothingElse) {
  constexpr std::size_t room = 128;
  alignas(8) std::array<unsigned char, room> from{}, to{};
  for (std::size_t i = 0; i < room; ++i) from[i] = static_cast<unsigned char>(i + 1);
  for (std::size_t length = 0; length <= 40; ++length)
    for (std::size_t source = 0; source < 9; ++source)
      for (std::size_t target = 8; target < 17; ++target) {
        to.fill(0xee);
        dma_copy(to.data() + target, from.data() + source, length);
        for (std::size_t i = 0; i < room; ++i) {
          const bool copied = i >= target && i < target + length;
          ASSERT_EQ(to[i], copied ? from[source + i - target] : 0xee)
              << length << " bytes from " << source << " to " << target << ", byte " << i;
        }
      }
}

TEST(DmaCopy, StoresAnAlignedWordLastElseTheLastByte) {
  EXPECT_EQ(last_store_bytes(0x1000, 8), 8U);
  EXPECT_EQ(last_store_bytes(0x1004, 12), 8U) << "the end is aligned";
  EXPECT_EQ(last_store_bytes(0x1000, 4096), 8U);
  EXPECT_EQ(last_store_bytes(0x1004, 4), 1U) << "no whole word";
  EXPECT_EQ(last_store_bytes(0x1000, 9), 1U);
  EXPECT_EQ(last_store_bytes(0x1001, 8), 1U);
}

/// A program may wait for the last byte to change and then use the rest.
void expect_last_byte_last(std::size_t target_bytes) {
  constexpr unsigned rounds = 500;
  std::vector<unsigned char> from(target_bytes), to(target_bytes);
  std::atomic<unsigned> seen = 0;
  std::atomic<unsigned> torn = 0;
  std::thread poller([&] {
    std::vector<unsigned char> copy(target_bytes);
    for (unsigned round = 1; round <= rounds; ++round) {
      const auto expected = static_cast<unsigned char>(round);
      while (std::atomic_ref(to.back()).load(std::memory_order_acquire) != expected)
        std::this_thread::yield();
      dma_copy(copy.data(), to.data(), copy.size());  // unseen by sanitizers, to which this is a race
      torn += std::any_of(copy.begin(), copy.end(), [&](unsigned char byte) { return byte != expected; });
      seen = round;
    }
  });
  for (unsigned round = 1; round <= rounds; ++round) {
    std::fill(from.begin(), from.end(), static_cast<unsigned char>(round));
    dma_copy(to.data(), from.data(), from.size());
    while (seen != round) std::this_thread::yield();
  }
  poller.join();
  EXPECT_EQ(torn, 0U);
}

TEST(DmaCopy, ShowsTheLastByteAfterAllOthers) {
  expect_last_byte_last(16 << 10);
  expect_last_byte_last((16 << 10) - 3);
}

}  // namespace
}  // namespace gdrbench::softverbs
