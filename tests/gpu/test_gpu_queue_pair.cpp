#include <array>
#include <cstring>
#include <vector>

#include "needs_gpu.hpp"
#include "verbs/device.hpp"
#include "wire/verbs_wire.hpp"

// Queue pairs whose data lie in GPU memory, on the first RDMA device: a NIC, or softverbs0 where it is
// preloaded.
namespace gdrbench::wire {
namespace {

constexpr std::uint64_t longest = (8 << 20) + 1;

struct Combination {
  MemoryKind memory;
  RegisterBy asked;
  Registration registration;
};

class GpuQueuePair : public NeedsGpu, public testing::WithParamInterface<Combination> {
 protected:
  void SetUp() override {
    NeedsGpu::SetUp();
    if (!IsSkipped() && verbs::list_devices().empty()) GTEST_SKIP() << verbs::no_device_reason();
  }

  struct End {
    explicit End(const Combination& combination)
        : memory({.kind = combination.memory, .length = longest}),
          wire(registering_by(combination.asked), WireLimits{}, VerbsWireRole::active) {
      region = wire.register_memory(memory.view());
    }
    Buffer memory;  // outlives the wire
    VerbsWire wire;
    Region region;
  };

  static std::uint32_t status_of_next(const End& end) {
    std::array<Completion, 1> completion;
    for (const Deadline deadline = after(std::chrono::seconds(20));
         std::chrono::steady_clock::now() < deadline;)
      if (end.wire.poll(completion) == 1) return completion[0].status;
    return ~0U;
  }

  static void transfer(const End& left, const End& right, Op op, std::uint32_t length) {
    const End& source = op == Op::read ? right : left;
    const End& target = op == Op::read ? left : right;
    fill_pattern(source.memory, {.length = length, .seed = length});
    scrub(target.memory, {.length = target.memory.size(), .seed = length});
    SendRequest request{.op = op,
                        .address = left.region.address,
                        .length = length,
                        .lkey = left.region.lkey,
                        .remote_address = reinterpret_cast<std::uintptr_t>(right.region.address),
                        .rkey = right.region.rkey};
    const bool received = op == Op::send || op == Op::write_imm;
    if (received) {
      ASSERT_EQ(right.wire.post_receive(
                    {.address = right.region.address, .length = length, .lkey = right.region.lkey}),
                0);
    }
    ASSERT_EQ(left.wire.post_send(request), 0);
    ASSERT_EQ(status_of_next(left), 0U);
    if (received) {
      ASSERT_EQ(status_of_next(right), 0U);
    }
    const auto wrong = find_mismatch(target.memory, {.length = length, .seed = length});
    EXPECT_FALSE(wrong) << "at byte " << wrong->offset;
    if (length < longest) {
      EXPECT_TRUE(
          find_mismatch(target.memory, {.offset = length, .length = longest - length, .seed = length}))
          << "too much";
    }
  }
};

TEST_P(GpuQueuePair, carries_every_operation_between_gpu_buffers) {
  End left(GetParam()), right(GetParam());
  ASSERT_EQ(left.region.registration, GetParam().registration);
  left.wire.connect(right.wire.offer(), {});
  right.wire.connect(left.wire.offer(), {});
  for (const Op op : {Op::send, Op::write, Op::write_imm, Op::read})
    for (const std::uint64_t length :
         {std::uint64_t{1}, std::uint64_t{4097}, (std::uint64_t{1} << 20) + 1, longest}) {
      SCOPED_TRACE(std::string(to_string(op)) + " of " + std::to_string(length) + " bytes");
      transfer(left, right, op, static_cast<std::uint32_t>(length));
    }
}

std::string combination_name(const testing::TestParamInfo<Combination>& combination) {
  return std::string(to_string(combination.param.memory)) + "_" +
         std::string(to_string(combination.param.asked));
}
INSTANTIATE_TEST_SUITE_P(
    Kinds, GpuQueuePair,
    testing::Values(Combination{MemoryKind::cuda, RegisterBy::automatic, Registration::dmabuf},
                    Combination{MemoryKind::cuda, RegisterBy::dmabuf, Registration::dmabuf},
                    Combination{MemoryKind::cuda, RegisterBy::peermem, Registration::peermem},
                    Combination{MemoryKind::cuda_vmm, RegisterBy::automatic, Registration::dmabuf},
                    Combination{MemoryKind::cuda_vmm, RegisterBy::peermem, Registration::peermem}),
    combination_name);

}  // namespace
}  // namespace gdrbench::wire
