#include <gtest/gtest.h>

#include "path/policy.hpp"

namespace gdrbench::path {
namespace {

Case bandwidth_of(std::uint32_t sockets) {
  return {.suite = Suite::bandwidth, .path = Path::tcp, .size_bytes = 1 << 20, .queue_pairs = sockets};
}

TEST(WireThreads, AreAsManyAsSocketsWithinAQuarterOfTheCoresAndEight) {
  EXPECT_EQ(wire_threads(bandwidth_of(4), 64), 4U);
  EXPECT_EQ(wire_threads(bandwidth_of(16), 64), 8U);
  EXPECT_EQ(wire_threads(bandwidth_of(16), 8), 2U);
  EXPECT_EQ(wire_threads(bandwidth_of(16), 2), 0U);
}

TEST(WireThreads, AreNoneForOneSocketOrSmallMessages) {
  EXPECT_EQ(wire_threads(bandwidth_of(1), 64), 0U);
  Case small = bandwidth_of(4);
  small.size_bytes = 4096;
  EXPECT_EQ(wire_threads(small, 64), 0U);
}

TEST(WireThreads, AreThoseAskedForWithinTheSockets) {
  Case c = bandwidth_of(4);
  c.size_bytes = 1;
  c.tcp_threads = 3;
  EXPECT_EQ(wire_threads(c, 1), 3U);
  c.tcp_threads = 5;
  EXPECT_EQ(wire_threads(c, 1), 4U);
  c.tcp_threads = 0;
  EXPECT_EQ(wire_threads(c, 64), 0U);
}

TEST(WireThreads, AreNeverThoseOfANicNorOfMessagesThatAreTimed) {
  Case c = bandwidth_of(4);
  c.tcp_threads = 2;
  c.path = Path::rdma_wire;
  EXPECT_EQ(wire_threads(c, 64), 0U);
  c.path = Path::tcp_wire;
  EXPECT_EQ(wire_threads(c, 64), 2U);
  c.suite = Suite::latency;
  EXPECT_EQ(wire_threads(c, 64), 0U);
}

}  // namespace
}  // namespace gdrbench::path
