#include <stdexcept>
#include <string>

#include "links.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace test;

std::string fault_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& fault) {
    return fault.what();
  }
  return "";
}

TEST(SoftverbsSlot, TheFirstPortComesFromTheEnvironmentOrIsRefusedByName) {
  {
    const Environment port("GDRBENCH_SOFTVERBS_PORT", "30000");
    EXPECT_EQ(first_port(), 30000);
    EXPECT_EQ(address_of(loopback_gid(), 4095, 0).sin6_port, htons(34095));
  }
  for (const char* const value : {"", "0", "-1", "61441", "70000", "20480 ", "0x5000", "port"}) {
    const Environment port("GDRBENCH_SOFTVERBS_PORT", value);
    EXPECT_EQ(fault_of([] { first_port(); }), std::string("GDRBENCH_SOFTVERBS_PORT=") + value +
                                                  ": expected the first of 4096 ports, 1 to 61440");
  }
}

TEST(SoftverbsSlot, TheTransportComesFromTheEnvironmentOrIsRefusedByName) {
  EXPECT_EQ(fault_of([] {
              const Environment transport("GDRBENCH_SOFTVERBS_TRANSPORT", "shm");
              shared_memory_allowed();
            }),
            "GDRBENCH_SOFTVERBS_TRANSPORT=shm: expected `auto` or `tcp`");
}

TEST(SoftverbsSlot, ProcessesClaimSlotsOfTheirOwnAndFreeThem) {
  const Environment range("GDRBENCH_SOFTVERBS_PORT", "14000");  // where no other test takes what is freed
  const ListeningSlot one = claim_slot();
  std::uint32_t second;
  {
    const ListeningSlot other = claim_slot();
    second = other.slot;
    EXPECT_NE(one.slot, second);
  }
  EXPECT_LE(claim_slot().slot, second);
  EXPECT_EQ(slot_of((second << queue_pair_index_bits) + 5), second);
}

TEST(SoftverbsSlot, OnlyLinkLocalAddressesHaveAScope) {
  EXPECT_EQ(address_of(loopback_gid(), 0, 7).sin6_scope_id, 0u);
  ibv_gid local{};
  local.raw[0] = 0xfe;
  local.raw[1] = 0x80;
  EXPECT_EQ(address_of(local, 0, 7).sin6_scope_id, 7u);
}

}  // namespace
}  // namespace gdrbench::softverbs
