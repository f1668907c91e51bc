#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nic/faults.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    Faults::parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

/// Numbers, from 1 to `calls`, of the calls of `verb` that fail.
std::vector<int> failing(std::string_view text, int calls = 10, std::string_view verb = "ibv_reg_mr") {
  Faults faults = Faults::parse(text);
  std::vector<int> numbers;
  for (int i = 1; i <= calls; ++i)
    if (faults.on_call(verb) != 0) numbers.push_back(i);
  return numbers;
}

TEST(Faults, AreNoneUnlessAskedFor) {
  for (const char* text : {"", " ", " , \n"}) {
    Faults faults = Faults::parse(text);
    EXPECT_FALSE(faults.any());
    EXPECT_EQ(faults.on_call("ibv_reg_mr"), 0);
    EXPECT_FALSE(faults.on_work_request());
    const PayloadFault payload = faults.on_payload();
    EXPECT_FALSE(payload.corrupt || payload.drop || payload.cut);
    EXPECT_EQ(payload.delay, 0us);
  }
  for (const char* text : {"fail=ibv_reg_mr:1:EIO", "complete=1:GENERAL_ERR", "drop=1", "delay=1:1s"})
    EXPECT_TRUE(Faults::parse(text).any()) << text;
}

TEST(Faults, HitTheCallsThatAreCounted) {
  EXPECT_THAT(failing("fail=ibv_reg_mr:2:ENOMEM"), ElementsAre(2));
  EXPECT_THAT(failing("fail=ibv_reg_mr:8-:ENOMEM"), ElementsAre(8, 9, 10));
  EXPECT_THAT(failing("fail=ibv_reg_mr:3-5:ENOMEM"), ElementsAre(3, 4, 5));
  EXPECT_THAT(failing("fail=ibv_reg_mr:4-4:ENOMEM"), ElementsAre(4));
  EXPECT_THAT(failing("fail=ibv_reg_mr:*/4:ENOMEM"), ElementsAre(4, 8));
  EXPECT_THAT(failing("fail=ibv_reg_mr:*/1:ENOMEM", 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(failing("fail=ibv_reg_mr:2:ENOMEM,fail=ibv_reg_mr:9-:EIO fail=ibv_reg_mr:*/5:EIO"),
              ElementsAre(2, 5, 9, 10));
}

TEST(Faults, CountEachVerbOnItsOwn) {
  Faults faults = Faults::parse("fail=ibv_reg_mr:2:ENOMEM fail=ibv_post_send:1:EINVAL");
  EXPECT_EQ(faults.on_call("ibv_reg_mr"), 0);
  EXPECT_EQ(faults.on_call("ibv_dereg_mr"), 0);
  EXPECT_EQ(faults.on_call("ibv_post_send"), EINVAL);
  EXPECT_EQ(faults.on_call("ibv_reg_mr"), ENOMEM);
  EXPECT_EQ(faults.on_call("ibv_reg_mr"), 0);
  EXPECT_EQ(faults.on_call("no_verb"), 0);
}

TEST(Faults, TakeErrorsByNameOrNumber) {
  EXPECT_EQ(Faults::parse("fail=ibv_poll_cq:1:EOPNOTSUPP").on_call("ibv_poll_cq"), EOPNOTSUPP);
  EXPECT_EQ(Faults::parse("fail=ibv_poll_cq:1:EFAULT").on_call("ibv_poll_cq"), EFAULT);
  EXPECT_EQ(Faults::parse("fail=ibv_poll_cq:1:ETIMEDOUT").on_call("ibv_poll_cq"), ETIMEDOUT);
  EXPECT_EQ(Faults::parse("fail=ibv_poll_cq:1:12").on_call("ibv_poll_cq"), 12);
}

TEST(Faults, CanFailEveryVerbThatIsNamed) {
  for (const std::string_view verb : failing_verbs)
    EXPECT_EQ(Faults::parse("fail=" + std::string(verb) + ":1:EIO").on_call(verb), EIO) << verb;
}

TEST(Faults, CompleteWorkRequestsWithAStatus) {
  Faults faults =
      Faults::parse("complete=2:IBV_WC_RETRY_EXC_ERR:0x81 complete=3:LOC_PROT_ERR:81 complete=4-:FATAL_ERR");
  EXPECT_FALSE(faults.on_work_request());
  const auto second = faults.on_work_request(), third = faults.on_work_request(),
             fourth = faults.on_work_request();
  ASSERT_TRUE(second && third && fourth);
  EXPECT_EQ(second->status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(second->vendor_error, 0x81U);
  EXPECT_EQ(third->status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(third->vendor_error, 81U);
  EXPECT_EQ(fourth->status, IBV_WC_FATAL_ERR);
  EXPECT_EQ(fourth->vendor_error, 0U);
}

TEST(Faults, KnowEveryStatusByItsName) {
  const std::pair<const char*, ibv_wc_status> names[] = {{"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},
                                                         {"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
                                                         {"LOC_EEC_OP_ERR", IBV_WC_LOC_EEC_OP_ERR},
                                                         {"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR},
                                                         {"WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR},
                                                         {"MW_BIND_ERR", IBV_WC_MW_BIND_ERR},
                                                         {"BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR},
                                                         {"LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR},
                                                         {"REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR},
                                                         {"REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR},
                                                         {"REM_OP_ERR", IBV_WC_REM_OP_ERR},
                                                         {"RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR},
                                                         {"RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR},
                                                         {"LOC_RDD_VIOL_ERR", IBV_WC_LOC_RDD_VIOL_ERR},
                                                         {"REM_INV_RD_REQ_ERR", IBV_WC_REM_INV_RD_REQ_ERR},
                                                         {"REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR},
                                                         {"INV_EECN_ERR", IBV_WC_INV_EECN_ERR},
                                                         {"INV_EEC_STATE_ERR", IBV_WC_INV_EEC_STATE_ERR},
                                                         {"FATAL_ERR", IBV_WC_FATAL_ERR},
                                                         {"RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR},
                                                         {"GENERAL_ERR", IBV_WC_GENERAL_ERR}};
  for (const auto& [name, status] : names) {
    const auto completion = Faults::parse(std::string("complete=1:") + name).on_work_request();
    ASSERT_TRUE(completion) << name;
    EXPECT_EQ(completion->status, status) << name;
  }
}

TEST(Faults, OfOneMessageComeTogether) {
  Faults faults = Faults::parse("corrupt=1-2,delay=2:5ms,cut=2,drop=3,delay=*/2:100us");
  const PayloadFault first = faults.on_payload(), second = faults.on_payload(), third = faults.on_payload();
  EXPECT_TRUE(first.corrupt && !first.drop && !first.cut);
  EXPECT_EQ(first.delay, 0us);
  EXPECT_TRUE(second.corrupt && !second.drop && second.cut);
  EXPECT_EQ(second.delay, 5ms) << "the longest delay holds";
  EXPECT_TRUE(!third.corrupt && third.drop && !third.cut);
}

TEST(Faults, TakeTimesInThreeUnits) {
  EXPECT_EQ(Faults::parse("delay=1:100us").on_payload().delay, 100us);
  EXPECT_EQ(Faults::parse("delay=1:5ms").on_payload().delay, 5ms);
  EXPECT_EQ(Faults::parse("delay=1:4294967295s").on_payload().delay, 4294967295s);
}

TEST(Faults, AreTheSameForTheSameCalls) {
  const auto run = [] {
    Faults faults = Faults::parse("fail=ibv_poll_cq:*/3:EIO,drop=*/2,complete=2-3:GENERAL_ERR");
    std::vector<int> met;
    for (int i = 0; i < 12; ++i) {
      met.push_back(faults.on_call("ibv_poll_cq"));
      met.push_back(faults.on_payload().drop);
      met.push_back(faults.on_work_request().has_value());
    }
    return met;
  };
  EXPECT_EQ(run(), run());
}

TEST(Faults, CountCallsOfAllThreads) {
  Faults faults = Faults::parse("fail=ibv_poll_cq:*/10:EIO drop=*/10");
  std::atomic<int> failed = 0, dropped = 0;
  std::latch all_run(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      all_run.arrive_and_wait();
      for (int i = 0; i < 50'000; ++i) failed += faults.on_call("ibv_poll_cq") != 0;
      for (int i = 0; i < 50'000; ++i) dropped += faults.on_payload().drop;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 20'000);
  EXPECT_EQ(dropped, 20'000);
}

TEST(FaultErrors, NameTheItemAndItsPlace) {
  EXPECT_EQ(
      refusal("drop=1, drop=0"),
      "fault 'drop=0' at position 9: '0' is no count; expected N, N-, N-M or */K with numbers from 1 on");
  EXPECT_THAT(refusal("corrupt"), HasSubstr("fault 'corrupt' at position 1: '=' is missing"));
  EXPECT_THAT(refusal("  lose=1"),
              AllOf(HasSubstr("fault 'lose=1' at position 3: 'lose' is no kind of fault"),
                    HasSubstr("expected fail, complete, corrupt, drop, cut or delay")));
}

TEST(FaultErrors, RefuseEveryOtherCount) {
  for (const char* count : {"",
                            "0",
                            "-1",
                            "-",
                            "x",
                            "1x",
                            "1-x",
                            "0-2",
                            "1-0",
                            "5-4",
                            "*",
                            "*/",
                            "*/0",
                            "*/x",
                            "*4",
                            "1-2-3",
                            "1.5",
                            "+1",
                            "18446744073709551616",
                            "0x"})
    EXPECT_THAT(refusal(std::string("drop=") + count), HasSubstr("expected N")) << count;
}

TEST(FaultErrors, RefuseUnknownVerbs) {
  EXPECT_THAT(
      refusal("fail=ibv_reg_mrs:1:EIO"),
      AllOf(HasSubstr("'ibv_reg_mrs' is no verb that can be told to fail"), HasSubstr("ibv_reg_mr,")));
  EXPECT_THAT(refusal("fail=reg_mr:1:EIO"), HasSubstr("'reg_mr' is no verb"));
  EXPECT_THAT(refusal("fail=ibv_reg_mr"), HasSubstr("expected fail=VERB:N:ERRNO"));
  EXPECT_THAT(refusal("fail=ibv_reg_mr:1"), HasSubstr("expected fail=VERB:N:ERRNO"));
}

TEST(FaultErrors, RefuseWhatIsNoErrno) {
  for (const char* error : {"", "0", "4096", "-12", "ENOMEN", "enomem", "ENOMEM:1", "12x"})
    EXPECT_THAT(refusal(std::string("fail=ibv_reg_mr:1:") + error), HasSubstr("is no errno value")) << error;
}

TEST(FaultErrors, RefuseWhatIsNoFailedCompletion) {
  for (const char* status :
       {"", "SUCCESS", "IBV_WC_SUCCESS", "RETRY", "retry_exc_err", "IBV_WC_IBV_WC_FATAL_ERR", "12"})
    EXPECT_THAT(refusal(std::string("complete=1:") + status),
                HasSubstr("is no status of a failed completion"))
        << status;
  EXPECT_THAT(refusal("complete=1"), HasSubstr("the status is missing"));
  for (const char* vendor : {"", "x", "-1", "0x", "0x100000000", "1:2"})
    EXPECT_THAT(refusal(std::string("complete=1:FATAL_ERR:") + vendor), HasSubstr("is no vendor error"))
        << vendor;
}

TEST(FaultErrors, RefuseWhatIsNoTime) {
  for (const char* time :
       {"", "5", "ms", "0ms", "5m", "5 ms", "-5ms", "5ms1", "0x5ms", "1.5ms", "4294967296us"})
    EXPECT_NE(refusal(std::string("delay=1:") + time), "accepted") << time;
  EXPECT_THAT(refusal("delay=1:5m"), HasSubstr("'5m' is no time"));
  EXPECT_THAT(refusal("delay=1"), HasSubstr("the time is missing"));
}

TEST(FaultErrors, EndTheProcessWhenTheyAreInTheEnvironment) {
  EXPECT_EXIT(
      {
        setenv("GDRBENCH_SOFTVERBS_FAULTS", "drop=1 drap=2", 1);
        Faults::instance();
      },
      ::testing::ExitedWithCode(2), "GDRBENCH_SOFTVERBS_FAULTS: fault 'drap=2' at position 8");
}

}  // namespace
}  // namespace gdrbench::softverbs
