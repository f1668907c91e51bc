#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "wire/queue_pair.hpp"

namespace gdrbench::wire {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return AssertionSuccess();
  return AssertionFailure() << "'" << part << "' is not in '" << text << "'";
}

TEST(DescribeStatus, GivesNameNumberVendorErrorAndCause) {
  const std::string text = describe_status(IBV_WC_RETRY_EXC_ERR, 0x81, false);
  EXPECT_TRUE(text.starts_with("IBV_WC_RETRY_EXC_ERR (12), vendor error 0x81: ")) << text;
  EXPECT_TRUE(contains(text, "4791"));
}

TEST(DescribeStatus, NamesMatchTheVerbsHeader) {
  const std::pair<ibv_wc_status, const char*> known[] = {
      {IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR"},
      {IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR"},
      {IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR"},
      {IBV_WC_LOC_ACCESS_ERR, "IBV_WC_LOC_ACCESS_ERR"},
      {IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR"},
      {IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR"},
      {IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR"},
      {IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR"},
      {IBV_WC_FATAL_ERR, "IBV_WC_FATAL_ERR"},
      {IBV_WC_GENERAL_ERR, "IBV_WC_GENERAL_ERR"},
      {IBV_WC_TM_RNDV_INCOMPLETE, "IBV_WC_TM_RNDV_INCOMPLETE"}};
  for (const auto& [status, name] : known)
    EXPECT_TRUE(describe_status(status, 0, false).starts_with(std::string(name) + " (")) << name;
  EXPECT_EQ(flush_status, static_cast<std::uint32_t>(IBV_WC_WR_FLUSH_ERR));
}

TEST(DescribeStatus, BlamesPcieForAProtectionErrorOfGpuMemory) {
  EXPECT_TRUE(contains(describe_status(IBV_WC_LOC_PROT_ERR, 0x51, true), "ACS"));
  EXPECT_FALSE(contains(describe_status(IBV_WC_LOC_PROT_ERR, 0x51, true), "lkey"));
}

TEST(DescribeStatus, BlamesTheKeyForAProtectionErrorOfHostMemory) {
  const std::string text = describe_status(IBV_WC_LOC_PROT_ERR, 0x51, false);
  EXPECT_TRUE(contains(text, "lkey"));
  EXPECT_FALSE(contains(text, "ACS"));
}

TEST(DescribeStatus, KeepsTheNumberOfAStatusItDoesNotKnow) {
  EXPECT_TRUE(contains(describe_status(77, 0x3, false), "77"));
  EXPECT_EQ(describe_status(IBV_WC_SUCCESS, 0, false), "IBV_WC_SUCCESS (0)");
}

}  // namespace
}  // namespace gdrbench::wire
