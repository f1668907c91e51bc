#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "verbs/memory_region.hpp"

namespace gdrbench::verbs {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

auto is(Registration way, const char* text) {
  return AllOf(Field(&GpuRegistrationAdvice::way, way),
               Field(&GpuRegistrationAdvice::reason, HasSubstr(text)));
}

GpuRegistrationAdvice advice(bool rdma, bool dmabuf, Loaded peermem, std::optional<int> probe,
                             RegisterBy asked = RegisterBy::automatic) {
  return advise({.gpu_direct_rdma = rdma, .gpu_dmabuf = dmabuf, .peermem = peermem, .dmabuf_probe = probe},
                asked);
}

TEST(GpuRegistrationAdvice, IsToLoadNvidiaPeermemWhereTheGpuExportsNothing) {
  for (const std::optional<int> probe :
       {std::optional<int>(), std::optional(EBADF), std::optional(EOPNOTSUPP)})
    EXPECT_THAT(advice(true, false, Loaded::no, probe),
                AllOf(is(Registration::none, "load nvidia-peermem"),
                      is(Registration::none, "the GPU exports no dma-buf")));
}

TEST(GpuRegistrationAdvice, IsDmabufWhereBothSidesHaveIt) {
  for (const Loaded peermem : {Loaded::no, Loaded::yes, Loaded::unknown})
    EXPECT_THAT(advice(true, true, peermem, EBADF), is(Registration::dmabuf, "both offer dma-buf"));
  EXPECT_EQ(advice(true, true, Loaded::no, std::nullopt).way, Registration::dmabuf) << "not probed";
}

TEST(GpuRegistrationAdvice, NamesTheSideThatLacksDmabuf) {
  EXPECT_THAT(advice(true, true, Loaded::no, EPROTONOSUPPORT),
              AllOf(is(Registration::none, "the RDMA side lacks dma-buf"), is(Registration::none, "5.12"),
                    is(Registration::none, "load nvidia-peermem")));
  EXPECT_THAT(
      advice(true, true, Loaded::no, EOPNOTSUPP),
      AllOf(is(Registration::none, "the RDMA side lacks dma-buf"), is(Registration::none, "provider")));
}

TEST(GpuRegistrationAdvice, IsPeermemWhereItIsLoadedAndDmabufIsNotThere) {
  EXPECT_THAT(advice(true, false, Loaded::yes, std::nullopt), is(Registration::peermem, "is loaded"));
  EXPECT_THAT(advice(true, true, Loaded::yes, EOPNOTSUPP), is(Registration::peermem, "is loaded"));
}

TEST(GpuRegistrationAdvice, SaysThatTheModulesCannotBeSeenRatherThanThatTheyAreMissing) {
  EXPECT_THAT(advice(true, false, Loaded::unknown, std::nullopt),
              is(Registration::peermem, "cannot be seen (no /proc/modules)"));
}

TEST(GpuRegistrationAdvice, BlamesNoModuleWhereTheGpuDoesNotSupportIt) {
  for (const bool dmabuf : {false, true})
    for (const Loaded peermem : {Loaded::no, Loaded::yes, Loaded::unknown}) {
      const GpuRegistrationAdvice found = advice(false, dmabuf, peermem, EBADF);
      EXPECT_THAT(found, is(Registration::none, "this GPU does not support GPUDirect RDMA"));
      EXPECT_THAT(found.reason, Not(HasSubstr("peermem")));
    }
}

TEST(GpuRegistrationAdvice, IsOfNoOtherWayThanTheOneAskedFor) {
  EXPECT_THAT(advice(true, true, Loaded::yes, EBADF, RegisterBy::peermem),
              is(Registration::peermem, "is loaded"));
  EXPECT_THAT(
      advice(true, true, Loaded::no, EBADF, RegisterBy::peermem),
      AllOf(is(Registration::none, "load nvidia-peermem"), is(Registration::none, "or register as dma-buf")));
  EXPECT_THAT(advice(true, true, Loaded::yes, EOPNOTSUPP, RegisterBy::dmabuf),
              is(Registration::none, "the RDMA side lacks dma-buf"));
  EXPECT_THAT(advice(true, false, Loaded::yes, EBADF, RegisterBy::dmabuf),
              is(Registration::none, "the GPU exports no dma-buf"));
}

class PeermemLoaded : public testing::Test {
 protected:
  PeermemLoaded() : root_(fs::temp_directory_path() / ("gdrbench-peermem-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~PeermemLoaded() override { fs::remove_all(root_); }
  void write(const char* path, const char* text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const fs::path root_;
};

TEST_F(PeermemLoaded, IsSeenByTheVersionOfNvidiaPeermemAlone) {
  write("sys/module/nvidia_peermem/version", "580.159.04\n");
  EXPECT_EQ(peermem_loaded(root_), Loaded::yes);
}

TEST_F(PeermemLoaded, IsSeenByTheVersionOfNvMemAlone) {
  write("sys/kernel/mm/memory_peers/nv_mem/version", "1.3\n");
  EXPECT_EQ(peermem_loaded(root_), Loaded::yes);
}

TEST_F(PeermemLoaded, IsUnknownWhereThereIsNoProcModules) {
  EXPECT_EQ(peermem_loaded(root_), Loaded::unknown);
}

TEST_F(PeermemLoaded, IsReadFromProcModules) {
  write("proc/modules", "nvidia 1 0 - Live 0x0\nib_uverbs 1 1 nvidia_peermem, Live 0x0\n");
  EXPECT_EQ(peermem_loaded(root_), Loaded::no);
  write("proc/modules", "nvidia 1 0 - Live 0x0\nnvidia_peermem 16384 0 - Live 0x0\n");
  EXPECT_EQ(peermem_loaded(root_), Loaded::yes);
  write("proc/modules", "");
  EXPECT_EQ(peermem_loaded(root_), Loaded::no);
}

}  // namespace
}  // namespace gdrbench::verbs
