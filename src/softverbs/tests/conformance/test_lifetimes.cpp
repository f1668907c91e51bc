#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class Lifetimes : public Conformance {
 protected:
  // errno of registering that; 0 where it is registered.
  int register_range(void* address, std::size_t length, int access) const {
    errno = 0;
    const MemoryRegion region(ibv_reg_mr(nic().pd.get(), address, length, access));
    return region ? 0 : errno;
  }
};

TEST_F(Lifetimes, of_a_protection_domain_outlast_what_is_made_in_it) {
  const ProtectionDomain pd(made(ibv_alloc_pd(nic().context.get()), "ibv_alloc_pd"));
  {
    const Memory memory(pd.get(), 64);
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "with a memory region";
  }
  {
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
    const SharedReceives srq(made(ibv_create_srq(pd.get(), &init), "ibv_create_srq"));
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "with a shared receive queue";
  }
  {
    ibv_ah_attr self = nic().self();
    const AddressHandle handle(made(ibv_create_ah(pd.get(), &self), "ibv_create_ah"));
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "with an address handle";
  }
  {
    const End end(nic());
    ibv_qp_init_attr init = small_queue_pair(end.cq.get(), end.cq.get());
    const QueuePair qp(made(ibv_create_qp(pd.get(), &init), "ibv_create_qp"));
    EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "with a queue pair";
  }
}

TEST_F(Lifetimes, of_a_completion_queue_outlast_its_queue_pairs_which_still_work) {
  Pair pair(nic());
  EXPECT_EQ(ibv_destroy_cq(pair.left.cq.get()), EBUSY);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                          .id = 1,
                                          .list = {pair.left.memory.sge(0, 8)},
                                          .remote = pair.right.memory.remote()}),
            0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(1, 1));
}

TEST_F(Lifetimes, of_a_shared_receive_queue_outlast_its_queue_pairs) {
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  const SharedReceives srq(made(ibv_create_srq(nic().pd.get(), &init), "ibv_create_srq"));
  const End end(nic(), {.shared_receives = srq.get()});
  EXPECT_EQ(ibv_destroy_srq(srq.get()), EBUSY);
}

TEST_F(Lifetimes, of_memory_regions_end_while_queue_pairs_go_on) {
  Pair pair(nic());
  {
    const Memory passing(nic().pd.get(), 64);
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_READ,
                                            .list = {passing.sge(0, 64)},
                                            .remote = pair.right.memory.remote()}),
              0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
  }
  ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_READ,
                                          .list = {pair.left.memory.sge(0, 64)},
                                          .remote = pair.right.memory.remote()}),
            0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(0, 1));
}

TEST_F(Lifetimes, of_memory_regions_begin_with_what_was_asked_for) {
  std::vector<std::byte> bytes(1000);
  const MemoryRegion region(
      made(ibv_reg_mr(nic().pd.get(), bytes.data() + 1, 998, all_access), "ibv_reg_mr"));
  EXPECT_EQ(region->addr, bytes.data() + 1);
  EXPECT_EQ(region->length, 998);
  EXPECT_EQ(region->pd, nic().pd.get());
  EXPECT_EQ(region->context, nic().context.get());
}

TEST_F(Lifetimes, of_memory_regions_do_not_begin_for_memory_or_rights_that_are_not_there) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(register_range(memory, page, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(register_range(memory, page, IBV_ACCESS_LOCAL_WRITE), EFAULT) << "memory that may not be written";
  ASSERT_EQ(munmap(memory, page), 0);
  EXPECT_EQ(register_range(memory, page, IBV_ACCESS_LOCAL_WRITE), EFAULT) << "memory that is not mapped";
  std::vector<std::byte> bytes(64);
  EXPECT_EQ(register_range(bytes.data(), 64, IBV_ACCESS_REMOTE_WRITE), EINVAL) << "without LOCAL_WRITE";
  EXPECT_EQ(register_range(bytes.data(), 64, IBV_ACCESS_REMOTE_ATOMIC), EINVAL) << "without LOCAL_WRITE";
}

TEST_F(Lifetimes, of_dma_buf_regions_do_not_begin_without_a_dma_buf) {
  const auto register_fd = [this](int fd) {
    errno = 0;
    const MemoryRegion region(ibv_reg_dmabuf_mr(nic().pd.get(), 0, 4096, 0, fd, all_access));
    return region ? 0 : errno;
  };
  EXPECT_THAT(register_fd(-1), testing::AnyOf(EBADF, EOPNOTSUPP, EPROTONOSUPPORT));
  const int plain = memfd_create("no dma-buf", MFD_CLOEXEC);
  ASSERT_GE(plain, 0);
  ASSERT_EQ(ftruncate(plain, 4096), 0);
  EXPECT_THAT(register_fd(plain), testing::AnyOf(EINVAL, EBADF, EOPNOTSUPP, EPROTONOSUPPORT));
  close(plain);
}

TEST_F(Lifetimes, of_many_pairs_may_begin_at_the_same_time) {
  rlimit descriptors{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  descriptors.rlim_cur = descriptors.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  constexpr std::size_t count = 300;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back(std::make_unique<Pair>(nic(), EndOptions{.memory_bytes = 4096, .completions = 16}));
  for (const auto& pair : pairs)
    for (const auto& [from, to] :
         {std::pair(&pair->left, &pair->right), std::pair(&pair->right, &pair->left)})
      ASSERT_EQ(post(from->qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                          .list = {from->memory.sge(0, 8)},
                                          .remote = to->memory.remote(8)}),
                0);
  for (const auto& pair : pairs)
    for (const End* end : {&pair->left, &pair->right}) ASSERT_EQ(outcomes(end->cq.get(), 1), successes(0, 1));
}

}  // namespace
}  // namespace gdrbench::conformance
