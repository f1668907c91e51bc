#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <vector>

#include "memory/memory.hpp"
#include "needs_fake_driver.hpp"

namespace gdrbench::softverbs {
namespace {

using fake::Kind;

/// Bytes of a file, which ends with it.
class File {
 public:
  explicit File(const char* name, off_t bytes = 1 << 20) : number_(memfd_create(name, MFD_CLOEXEC)) {
    if (ftruncate(number_, bytes) != 0) throw std::bad_alloc();
  }
  ~File() { close(number_); }
  File(const File&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

TEST(ResolveDmabuf, SaysThatNoDescriptorIsBadWhateverElseIsAsked) {
  EXPECT_EQ(resolve_dmabuf(-1, 0, 0, 0).error, EBADF);
  EXPECT_EQ(resolve_dmabuf(-1, 0, page, 0).error, EBADF);
  const int closed = dup(STDERR_FILENO);
  close(closed);
  EXPECT_EQ(resolve_dmabuf(closed, 0, page, 0).error, EBADF);
}

TEST(ResolveDmabuf, RefusesOtherDescriptorsWhateverTheirName) {
  const File file("dmabuf:");
  EXPECT_EQ(resolve_dmabuf(file.number(), 0, page, 0).error, EINVAL);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(resolve_dmabuf(ends[0], 0, page, 0).error, EINVAL);
  close(ends[0]);
  close(ends[1]);
}

/// A dma-buf that the kernel makes of ordinary memory, in place of one of a GPU.
class DmabufTest : public NeedsFakeDriver {
 protected:
  static constexpr std::size_t pages = 4;

  void SetUp() override {
    NeedsFakeDriver::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (maker < 0)
      GTEST_SKIP() << "/dev/udmabuf: " << strerrorname_np(errno) << "; it is what dma-bufs are made with";
    const int memory = memfd_create("udmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(memory, static_cast<off_t>(pages * page)), 0);
    ASSERT_EQ(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    udmabuf_create create{};
    create.memfd = static_cast<__u32>(memory);
    create.flags = UDMABUF_FLAGS_CLOEXEC;
    create.size = pages * page;
    descriptor_ = ioctl(maker, UDMABUF_CREATE, &create);
    const int error = errno;
    close(memory);
    close(maker);
    ASSERT_GE(descriptor_, 0) << "UDMABUF_CREATE: " << strerrorname_np(error);
  }
  void TearDown() override {
    if (descriptor_ >= 0) close(descriptor_);
    NeedsFakeDriver::TearDown();
  }

  int descriptor_ = -1;
};

TEST_F(DmabufTest, LeadsToTheDeviceMemoryAtItsAddress) {
  const std::uint64_t address = allocate(pages * page);
  const auto [memory, error] = resolve_dmabuf(descriptor_, page, 2 * page, address + page);
  ASSERT_NE(memory, nullptr) << strerrorname_np(error);
  EXPECT_FALSE(memory->on_host());
  EXPECT_NE(resolve_dmabuf(descriptor_, 0, pages * page, address).memory, nullptr) << "the whole";
}

TEST_F(DmabufTest, MustHoldTheRange) {
  const std::uint64_t address = allocate(2 * pages * page);
  EXPECT_EQ(resolve_dmabuf(descriptor_, 0, pages * page + 1, address).error, EINVAL);
  EXPECT_EQ(resolve_dmabuf(descriptor_, pages * page, 1, address).error, EINVAL);
  EXPECT_EQ(resolve_dmabuf(descriptor_, ~std::uint64_t{0}, 2, address).error, EINVAL)
      << "the end wraps around";
  EXPECT_EQ(resolve_dmabuf(descriptor_, 0, 0, address).error, EINVAL);
}

TEST_F(DmabufTest, IsNotSupportedWhereItsAddressIsNoDeviceMemory) {
  std::vector<std::byte> host(page);
  EXPECT_EQ(resolve_dmabuf(descriptor_, 0, page, reinterpret_cast<std::uint64_t>(host.data())).error,
            EOPNOTSUPP);
  EXPECT_EQ(resolve_dmabuf(descriptor_, 0, page, 0).error, EOPNOTSUPP);
  EXPECT_EQ(resolve_dmabuf(descriptor_, 0, 2 * page, allocate(page)).error, EOPNOTSUPP) << "half of it";
  EXPECT_EQ(resolve_dmabuf(descriptor_, 0, page, allocate(page, Kind::managed)).error, EOPNOTSUPP);
}

}  // namespace
}  // namespace gdrbench::softverbs
