#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <string_view>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

// What an unreliable connection loses, on softverbs, whose lossy_faults say when. Run with exactly these.
constexpr std::string_view lossy_faults = "drop=*/4,corrupt=6,delay=9:20ms,cut=13";

class UnreliableLoss : public Conformance {
 protected:
  void SetUp() override {
    const char* const wanted = std::getenv("GDRBENCH_SOFTVERBS_FAULTS");
    if (wanted == nullptr || wanted != lossy_faults)
      GTEST_SKIP() << "needs GDRBENCH_SOFTVERBS_FAULTS=" << lossy_faults;
    Conformance::SetUp();
  }
};

TEST_F(UnreliableLoss, is_silent_and_concerns_the_message_only) {
  constexpr std::size_t length = 20'001;
  Pair pair(nic(), {.type = IBV_QPT_UC, .memory_bytes = 1 << 20});
  for (std::uint64_t id = 1; id <= 40; ++id)
    ASSERT_EQ(post(pair.right.qp.get(), Receive{.id = id, .list = {pair.right.memory.sge(0, length)}}), 0);
  std::uint64_t arrived = 0;
  for (unsigned message = 1; message <= 40; ++message) {
    SCOPED_TRACE(message);
    pair.left.memory.fill(0, length, message);
    ASSERT_EQ(post(pair.left.qp.get(), Send{.opcode = IBV_WR_SEND_WITH_IMM,
                                            .id = message,
                                            .list = {pair.left.memory.sge(0, length)},
                                            .immediate = message}),
              0);
    ASSERT_EQ(outcomes(pair.left.cq.get(), 1), successes(message, 1));
    if (message % 4 == 0 || message == 13) continue;
    const std::vector<ibv_wc> received = take(pair.right.cq.get(), 1);
    ASSERT_EQ(outcomes(received), successes(++arrived, 1));
    EXPECT_EQ(received[0].byte_len, length);
    EXPECT_EQ(ntohl(received[0].imm_data), message);
    std::vector<std::byte> expected = pattern(length, message);
    if (message == 6) expected[length / 2] ^= std::byte{0x80};
    EXPECT_TRUE(std::ranges::equal(pair.right.memory.bytes(0, length), expected));
  }
  EXPECT_TRUE(is_empty(pair.right.cq.get()));
  EXPECT_EQ(pair.left.state(), IBV_QPS_RTS);
  EXPECT_EQ(pair.right.state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace gdrbench::conformance
