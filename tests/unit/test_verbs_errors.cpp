#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrbench/error.hpp"
#include "verbs/check.hpp"

namespace gdrbench::verbs {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(VerbsErrors, NameErrnoAndUsualCause) {
  try {
    check_returned(-ETIMEDOUT, Step::modify_queue_pair, "move queue pair 17 on mlx5_0 to RTR");
    FAIL() << "nothing was thrown";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code(), ETIMEDOUT);
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("move queue pair 17 on mlx5_0 to RTR: ETIMEDOUT")) << text;
    EXPECT_NE(text.find("GID"), std::string::npos) << text;
  }
}

TEST(VerbsErrors, EachConventionIsTold) {
  EXPECT_NO_THROW(check_returned(0, Step::create, ""));
  EXPECT_NO_THROW(check_negative(0, Step::connect, ""));
  EXPECT_NO_THROW(check_negative(1, Step::connect, ""));
  errno = ENOMEM;
  EXPECT_THROW(check_negative(-1, Step::connect, ""), SystemError);
  EXPECT_THROW(check_pointer(static_cast<int*>(nullptr), Step::create, ""), SystemError);
  EXPECT_THROW(check_returned(EINVAL, Step::create, ""), SystemError);
}

TEST(VerbsErrors, RegistrationFailuresCarryTheirOwnCauses) {
  EXPECT_THAT(hint(Step::register_gpu_memory, EFAULT), HasSubstr("nvidia-peermem"));
  EXPECT_THAT(hint(Step::register_host_memory, EFAULT), Not(HasSubstr("nvidia-peermem")));
}

// Every row of the table of what people meet: errno, step, a word of its usual cause, the doctor's check.
TEST(VerbsErrors, HaveTheCausesThatPeopleMeet) {
  const struct {
    Step step;
    int errno_value;
    const char *cause, *check;
  } rows[] = {
      {Step::register_gpu_memory, EFAULT, "BAR1", "peermem"},
      {Step::register_host_memory, ENOMEM, "locked-memory limit", "memlock"},
      {Step::register_gpu_memory, ENOMEM, "memory keys", "bar1"},
      {Step::register_gpu_memory, EINVAL, "several segments", "registration"},
      {Step::register_host_memory, EINVAL, "rdma_rxe", "memlock"},
      {Step::register_gpu_memory, EPROTONOSUPPORT, "kernel", "dmabuf"},
      {Step::register_gpu_memory, EOPNOTSUPP, "provider", "dmabuf"},
      {Step::modify_queue_pair, ETIMEDOUT, "link-local", "gids"},
      {Step::open, EPERM, "cgroup", "rdma_devices"},
      {Step::open, EACCES, "mode", "rdma_devices"},
      {Step::open, ENOENT, "not mapped", "rdma_devices"},
      {Step::connect, ENOENT, "rdma_ucm", "rdma_cm"},
      {Step::create, EAGAIN, "rdma.max", "rdma_cgroup"},
      {Step::use, EIO, "removed", "kernel_log"},
  };
  for (const auto& row : rows) {
    const std::string text = hint(row.step, row.errno_value);
    EXPECT_THAT(text, HasSubstr(row.cause));
    EXPECT_THAT(text, EndsWith(std::string("; confirm with: gdrbench doctor --check ") + row.check));
  }
}

TEST(VerbsErrors, OfGpuMemoryOnSoftRoceBlameNoModule) {
  const std::string text = hint(Step::register_gpu_memory, EFAULT, FabricKind::soft_roce);
  EXPECT_THAT(text, HasSubstr("soft-RoCE takes no GPU memory"));
  EXPECT_THAT(text, Not(HasSubstr("peermem")));
}

TEST(VerbsErrors, NameNoCheckInATextThatIsAPartOfAnother) {
  EXPECT_EQ(explain_in_part(Step::register_gpu_memory, EBADF),
            "EBADF (Bad file descriptor); the dma-buf descriptor is closed");
  EXPECT_THAT(explain_in_part(Step::open, EPERM), Not(HasSubstr("confirm with")));
  EXPECT_THAT(explain(Step::open, EPERM), EndsWith("; confirm with: gdrbench doctor --check rdma_devices"));
}

}  // namespace
}  // namespace gdrbench::verbs
