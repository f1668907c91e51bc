#include <gmock/gmock.h>

#include <algorithm>
#include <string_view>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

// How a local buffer is not what the request may use.
struct LocalFault {
  const char* name;
};
std::ostream& operator<<(std::ostream& out, const LocalFault& fault) {
  return out << fault.name;
}
constexpr LocalFault wrong_key{"wrong_lkey"}, other_domain{"lkey_of_another_domain"},
    past_end{"range_past_the_region"}, before_start{"range_before_the_region"},
    deregistered{"deregistered_lkey"}, read_only{"no_LOCAL_WRITE"};
constexpr LocalFault local_faults[] = {wrong_key,    other_domain, past_end,
                                       before_start, deregistered, read_only};

class LocalProtection : public Conformance, public testing::WithParamInterface<LocalFault> {
 protected:
  static constexpr std::size_t length = 64;

  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pair_.emplace(nic());
    pair_->left.memory.fill(0, pair_->left.memory.size(), ours);
    pair_->right.memory.fill(0, pair_->right.memory.size(), theirs);
    other_pd_.reset(made(ibv_alloc_pd(nic().context.get()), "ibv_alloc_pd"));
    const bool foreign = is(other_domain);
    memory_.emplace(foreign ? other_pd_.get() : nic().pd.get(), length * 3,
                    is(read_only) ? IBV_ACCESS_REMOTE_READ : all_access);
    memory_->fill(0, memory_->size(), faulty);
  }

  bool is(const LocalFault& fault) const { return std::string_view(GetParam().name) == fault.name; }
  // The faulty buffer.
  ibv_sge sge() {
    ibv_sge bad = memory_->sge(length, length);
    if (is(wrong_key)) bad.lkey ^= 0x5500;
    if (is(past_end)) bad = memory_->sge(memory_->size() - length + 1, length);
    if (is(before_start)) bad.addr = memory_->remote().address - 1;
    if (is(deregistered)) memory_->deregister();
    return bad;
  }
  bool nothing_was_written() const {
    return memory_->is_untouched(faulty) && pair_->left.memory.is_untouched(ours) &&
           pair_->right.memory.is_untouched(theirs);
  }

  static constexpr unsigned faulty = 3;
  std::optional<Pair> pair_;
  ProtectionDomain other_pd_;
  std::optional<Memory> memory_;
};

TEST_P(LocalProtection, stops_a_requester_that_reads_its_buffer) {
  const ibv_sge bad = sge();
  ASSERT_EQ(post(pair_->right.qp.get(), Receive{.list = {pair_->right.memory.sge(0, length)}}), 0);
  if (is(read_only)) {  // no fault here
    ASSERT_EQ(post(pair_->left.qp.get(), Send{.list = {bad}}), 0);
    EXPECT_EQ(outcomes(pair_->left.cq.get(), 1), successes(0, 1));
    EXPECT_TRUE(std::ranges::equal(pair_->right.memory.bytes(0, length), memory_->bytes(length, length)));
    return;
  }
  const ibv_wc_status first = is(past_end) || is(before_start) ? IBV_WC_LOC_PROT_ERR : unusable_lkey();
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE}) {
    SCOPED_TRACE(opcode_name(opcode));
    ASSERT_EQ(post(pair_->left.qp.get(),
                   Send{.opcode = opcode, .list = {bad}, .remote = pair_->right.memory.remote()}),
              0);
    // The second one finds the queue pair in the error state.
    EXPECT_THAT(outcomes(pair_->left.cq.get(), 1),
                ElementsAre(Outcome{0, opcode == IBV_WR_SEND ? first : IBV_WC_WR_FLUSH_ERR}));
    EXPECT_EQ(pair_->left.state(), IBV_QPS_ERR);
  }
  EXPECT_TRUE(is_empty(pair_->right.cq.get()));
  EXPECT_TRUE(nothing_was_written());
}

TEST_P(LocalProtection, stops_a_requester_that_writes_what_it_fetches) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    SCOPED_TRACE(opcode_name(opcode));
    Pair pair(nic());
    ibv_sge bad = sge();
    if (is_atomic(opcode)) {
      if (is(past_end)) bad.addr += length - 8;
      bad.length = 8;
    }
    ASSERT_EQ(
        post(pair.left.qp.get(), Send{.opcode = opcode, .list = {bad}, .remote = pair.right.memory.remote()}),
        0);
    EXPECT_THAT(outcomes(pair.left.cq.get(), 1), ElementsAre(Outcome{0, IBV_WC_LOC_PROT_ERR}));
    EXPECT_TRUE(nothing_was_written());
    if (is(deregistered)) break;
  }
}

TEST_P(LocalProtection, stops_a_responder_and_tells_the_requester) {
  ASSERT_EQ(post(pair_->right.qp.get(), Receive{.id = 5, .list = {sge()}}), 0);
  ASSERT_EQ(post(pair_->left.qp.get(), Send{.id = 6, .list = {pair_->left.memory.sge(0, length)}}), 0);
  EXPECT_THAT(outcomes(pair_->left.cq.get(), 1), ElementsAre(Outcome{6, IBV_WC_REM_OP_ERR}));
  EXPECT_THAT(outcomes(pair_->right.cq.get(), 1), ElementsAre(Outcome{5, unusable_receive()}));
  EXPECT_EQ(pair_->right.state(), IBV_QPS_ERR);
  EXPECT_EQ(pair_->left.state(), IBV_QPS_ERR);
  EXPECT_TRUE(nothing_was_written());
}

std::string fault_name(const testing::TestParamInfo<LocalFault>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Faults, LocalProtection, testing::ValuesIn(local_faults), fault_name);

}  // namespace
}  // namespace gdrbench::conformance
