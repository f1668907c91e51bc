#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <string>

#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"
#include "needs_gpu.hpp"

namespace gdrbench {
namespace {

using ::testing::HasSubstr;

class GpuDmabuf : public NeedsGpuMemory {
 protected:
  void SetUp() override {
    NeedsGpu::SetUp();
    if (!IsSkipped() && !summary_.dmabuf) GTEST_SKIP() << summary_.name << " exports no dma-buf";
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, GpuDmabuf, ::testing::ValuesIn(gpu_memory_kinds), kind_name);

std::string target_of(int fd) {
  std::array<char, 256> text{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return readlink(link.c_str(), text.data(), text.size() - 1) < 0 ? "" : text.data();
}

TEST_P(GpuDmabuf, IsExportedByABufferOfAnySizeAndStartsWithIt) {
  for (const std::uint64_t length : {1, 4096, (1 << 20) + 1, 64 << 20}) {
    const Buffer buffer(BufferOptions{.kind = GetParam(), .length = length});
    ASSERT_GE(buffer.view().dmabuf_fd, 0) << buffer.no_dmabuf_reason();
    EXPECT_EQ(buffer.no_dmabuf_reason(), "");
    EXPECT_THAT(target_of(buffer.view().dmabuf_fd), HasSubstr("dmabuf"));
    EXPECT_EQ(buffer.view().dmabuf_offset, 0U);
    EXPECT_NE(fcntl(buffer.view().dmabuf_fd, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_P(GpuDmabuf, OfARangeInsideAPageTellsTheOffsetInIt) {
  const Buffer buffer(BufferOptions{.kind = GetParam(), .length = 1 << 20});
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const cuda::Dmabuf dmabuf(0, buffer.data() + 3 * page + 100, 2 * page);
  EXPECT_EQ(dmabuf.offset(), 100U);
  EXPECT_EQ(lseek(dmabuf.fd(), 0, SEEK_END), static_cast<off_t>(3 * page)) << "the size of the dma-buf";
}

TEST_P(GpuDmabuf, IsClosedWithItsBuffer) {
  int fd = -1;
  {
    const Buffer buffer(BufferOptions{.kind = GetParam(), .length = 4096});
    fd = buffer.view().dmabuf_fd;
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

}  // namespace
}  // namespace gdrbench
