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
  const std::string text = describe_status(IBV_WC_RETRY_EXC_ERR, {.vendor_error = 0x81});
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
    EXPECT_TRUE(describe_status(status, {}).starts_with(std::string(name) + " (")) << name;
  EXPECT_EQ(flush_status, static_cast<std::uint32_t>(IBV_WC_WR_FLUSH_ERR));
}

TEST(DescribeStatus, BlamesPcieForAProtectionErrorOfGpuMemory) {
  EXPECT_TRUE(contains(describe_status(IBV_WC_LOC_PROT_ERR, {.vendor_error = 0x51, .on_gpu = true}), "ACS"));
  EXPECT_FALSE(
      contains(describe_status(IBV_WC_LOC_PROT_ERR, {.vendor_error = 0x51, .on_gpu = true}), "lkey"));
}

TEST(DescribeStatus, BlamesTheKeyForAProtectionErrorOfHostMemory) {
  const std::string text = describe_status(IBV_WC_LOC_PROT_ERR, {.vendor_error = 0x51});
  EXPECT_TRUE(contains(text, "lkey"));
  EXPECT_FALSE(contains(text, "ACS"));
}

// Every row of the table of what people meet: status, a word of its usual cause, one of what to try.
TEST(DescribeStatus, HasTheCausesThatPeopleMeet) {
  const struct {
    ibv_wc_status status;
    bool on_gpu;
    const char *cause, *remedy;
  } rows[] = {
      {IBV_WC_LOC_LEN_ERR, false, "different path MTUs", "smaller active MTU"},
      {IBV_WC_LOC_PROT_ERR, true, "ACS", "--memory host"},
      {IBV_WC_LOC_PROT_ERR, false, "lkey", "range"},
      {IBV_WC_WR_FLUSH_ERR, false, "earlier error", "either end"},
      {IBV_WC_LOC_ACCESS_ERR, false, "IBV_ACCESS_LOCAL_WRITE", ""},
      {IBV_WC_REM_INV_REQ_ERR, false, "receive too short", "rd_atomic"},
      {IBV_WC_REM_ACCESS_ERR, true, "rkey", "first segment"},
      {IBV_WC_REM_OP_ERR, true, "read of GPU memory", "other direction"},
      {IBV_WC_RETRY_EXC_ERR, false, "UDP port 4791", "GID pair"},
      {IBV_WC_RNR_RETRY_EXC_ERR, false, "no receive posted", "655 ms"},
  };
  for (const auto& row : rows) {
    const std::string text = describe_status(row.status, {.on_gpu = row.on_gpu});
    EXPECT_TRUE(contains(text, row.cause));
    EXPECT_TRUE(contains(text, row.remedy));
  }
}

TEST(DescribeStatus, DependsOnTheFabric) {
  const auto of = [](ibv_wc_status status, FabricKind fabric, bool on_gpu = false) {
    return describe_status(status, {.on_gpu = on_gpu, .fabric = fabric});
  };
  EXPECT_TRUE(contains(of(IBV_WC_RETRY_EXC_ERR, FabricKind::softverbs), "process died"));
  EXPECT_FALSE(contains(of(IBV_WC_RETRY_EXC_ERR, FabricKind::softverbs), "4791"));
  EXPECT_TRUE(contains(of(IBV_WC_RETRY_EXC_ERR, FabricKind::soft_roce), "one network namespace"));
  EXPECT_TRUE(contains(of(IBV_WC_LOC_QP_OP_ERR, FabricKind::soft_roce), "receive too short"));
  EXPECT_FALSE(contains(of(IBV_WC_LOC_QP_OP_ERR, FabricKind::hardware), "receive too short"));
  EXPECT_TRUE(contains(of(IBV_WC_REM_OP_ERR, FabricKind::soft_roce), "receive too short"));
  EXPECT_TRUE(contains(of(IBV_WC_REM_ACCESS_ERR, FabricKind::soft_roce), "killed"));
  // Software has no PCIe in the way.
  EXPECT_FALSE(contains(of(IBV_WC_LOC_PROT_ERR, FabricKind::softverbs, true), "ACS"));
}

TEST(DescribeStatus, EndsWithTheCheckThatWouldSeeTheCause) {
  EXPECT_TRUE(describe_status(IBV_WC_LOC_PROT_ERR, {.vendor_error = 0x51, .on_gpu = true})
                  .ends_with("; confirm with: gdrbench doctor --check acs"));
  EXPECT_TRUE(
      describe_status(IBV_WC_RETRY_EXC_ERR, {}).ends_with("; confirm with: gdrbench doctor --check gids"));
  EXPECT_FALSE(contains(describe_status(IBV_WC_WR_FLUSH_ERR, {}), "confirm with"));
}

TEST(DescribeStatus, KeepsTheNumberOfAStatusItDoesNotKnow) {
  EXPECT_TRUE(contains(describe_status(77, {.vendor_error = 0x3}), "77"));
  EXPECT_EQ(describe_status(IBV_WC_SUCCESS, {}), "IBV_WC_SUCCESS (0)");
}

}  // namespace
}  // namespace gdrbench::wire
