#include <gtest/gtest.h>

#include <functional>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class QueueLimits : public Conformance {
 protected:
  static ibv_qp_cap capacity(const End& end) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    succeed(ibv_query_qp(end.qp.get(), &attr, IBV_QP_CAP, &init), "ibv_query_qp");
    return init.cap;
  }
  // errno of making a queue pair like that; 0 where it is made.
  int create(const std::function<void(ibv_qp_init_attr&)>& change) const {
    const End end(nic());
    ibv_qp_init_attr init = small_queue_pair(end.cq.get(), end.cq.get());
    change(init);
    errno = 0;
    const QueuePair qp(ibv_create_qp(nic().pd.get(), &init));
    return qp ? 0 : errno;
  }
};

TEST_F(QueueLimits, of_sends_end_a_chain_with_ENOMEM_and_execute_what_is_before) {
  Pair pair(nic(), {.send_slots = 8, .completions = 1024});
  const std::uint32_t slots = capacity(pair.left).max_send_wr;
  ASSERT_GE(slots, 8);
  std::vector<Send> chain;
  for (std::uint64_t id = 0; id < slots + 2; ++id)
    chain.push_back({.id = id, .list = {pair.left.memory.sge(0, 8)}});
  // No receive is there, so that none completes while the chain is posted.
  EXPECT_EQ(post_chain(pair.left.qp.get(), chain), (Posted{.error = ENOMEM, .accepted = slots}));
  for (std::uint64_t id = 0; id < slots; ++id)
    ASSERT_EQ(post(pair.right.qp.get(), Receive{.id = id, .list = {pair.right.memory.sge(0, 8)}}), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), slots), successes(0, slots));
  EXPECT_EQ(outcomes(pair.right.cq.get(), slots), successes(0, slots));
  EXPECT_TRUE(is_empty(pair.left.cq.get()));
  // The completions gave the slots back.
  ASSERT_EQ(post(pair.right.qp.get(), Receive{.id = 9, .list = {pair.right.memory.sge(0, 8)}}), 0);
  ASSERT_EQ(post(pair.left.qp.get(), Send{.id = 9, .list = {pair.left.memory.sge(0, 8)}}), 0);
  EXPECT_EQ(outcomes(pair.left.cq.get(), 1), successes(9, 1));
}

TEST_F(QueueLimits, of_receives_end_a_chain_with_ENOMEM_and_keep_what_is_before) {
  Pair pair(nic(), {.receive_slots = 8, .completions = 1024});
  const std::uint32_t slots = capacity(pair.right).max_recv_wr;
  ASSERT_GE(slots, 8);
  std::vector<Receive> chain;
  for (std::uint64_t id = 0; id < slots + 2; ++id)
    chain.push_back({.id = id, .list = {pair.right.memory.sge(0, 8)}});
  EXPECT_EQ(post_chain(pair.right.qp.get(), chain), (Posted{.error = ENOMEM, .accepted = slots}));
  for (std::uint64_t id = 0; id < slots; ++id) {
    ASSERT_EQ(post(pair.left.qp.get(), Send{.id = id, .list = {pair.left.memory.sge(0, 8)}}), 0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(id, 1));
    ASSERT_EQ(outcomes(pair.right.cq.get(), 1), successes(id, 1));
  }
}

TEST_F(QueueLimits, let_a_full_queue_of_unsignaled_sends_go_on_behind_one_that_is_signaled) {
  const Pair pair(nic(), {.send_slots = 8});
  const std::uint32_t slots = capacity(pair.left).max_send_wr;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < slots; ++i)
      ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_RDMA_WRITE,
                                              .id = round,
                                              .list = {pair.left.memory.sge(0, 8)},
                                              .remote = pair.right.memory.remote(),
                                              .flags = i + 1 == slots ? signaled : unsignaled}),
                0)
          << "request " << i << " of round " << round;
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(round, 1));
  }
}

TEST_F(QueueLimits, of_the_device_bound_queue_pairs) {
  const ibv_device_attr& device = nic().attributes;
  EXPECT_EQ(create([](ibv_qp_init_attr&) {}), 0);
  EXPECT_NE(create([&](ibv_qp_init_attr& a) {
              a.cap.max_send_wr = static_cast<std::uint32_t>(device.max_qp_wr) + 1;
            }),
            0);
  EXPECT_NE(create([&](ibv_qp_init_attr& a) {
              a.cap.max_recv_wr = static_cast<std::uint32_t>(device.max_qp_wr) + 1;
            }),
            0);
  EXPECT_NE(create([&](ibv_qp_init_attr& a) {
              a.cap.max_send_sge = static_cast<std::uint32_t>(device.max_sge) + 1;
            }),
            0);
  EXPECT_NE(create([&](ibv_qp_init_attr& a) {
              a.cap.max_recv_sge = static_cast<std::uint32_t>(device.max_sge) + 1;
            }),
            0);
  EXPECT_NE(create([&](ibv_qp_init_attr& a) { a.cap.max_inline_data = 1 << 20; }), 0);
  EXPECT_NE(create([&](ibv_qp_init_attr& a) { a.qp_type = static_cast<ibv_qp_type>(99); }), 0);
}

TEST_F(QueueLimits, of_the_device_are_reached_by_a_queue_pair) {
  const ibv_device_attr& device = nic().attributes;
  EXPECT_EQ(create([&](ibv_qp_init_attr& a) {
              a.cap.max_send_sge = a.cap.max_recv_sge = static_cast<std::uint32_t>(device.max_sge);
            }),
            0);
}

TEST_F(QueueLimits, of_the_device_bound_completion_queues) {
  const auto create_cq = [this](int entries, int vector) {
    errno = 0;
    const CompletionQueue cq(ibv_create_cq(nic().context.get(), entries, nullptr, nullptr, vector));
    return cq ? 0 : errno;
  };
  EXPECT_EQ(create_cq(1, 0), 0);
  EXPECT_EQ(create_cq(nic().attributes.max_cqe, nic().context->num_comp_vectors - 1), 0);
  EXPECT_EQ(create_cq(0, 0), EINVAL);
  EXPECT_EQ(create_cq(-1, 0), EINVAL);
  EXPECT_EQ(create_cq(nic().attributes.max_cqe + 1, 0), EINVAL);
  EXPECT_EQ(create_cq(1, nic().context->num_comp_vectors), EINVAL);
}

TEST_F(QueueLimits, of_the_device_bound_shared_receive_queues) {
  const auto create_srq = [this](int receives, int list_length) {
    ibv_srq_init_attr init{};
    init.attr.max_wr = static_cast<std::uint32_t>(receives);
    init.attr.max_sge = static_cast<std::uint32_t>(list_length);
    errno = 0;
    const SharedReceives srq(ibv_create_srq(nic().pd.get(), &init));
    return srq ? 0 : errno;
  };
  EXPECT_EQ(create_srq(1, nic().attributes.max_srq_sge), 0);
  EXPECT_NE(create_srq(nic().attributes.max_srq_wr + 1, 1), 0);
  EXPECT_NE(create_srq(1, nic().attributes.max_srq_sge + 1), 0);
}

}  // namespace
}  // namespace gdrbench::conformance
