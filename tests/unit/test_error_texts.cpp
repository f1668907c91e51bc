#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cuda/error_hint.hpp"
#include "doctor/check.hpp"
#include "verbs/check.hpp"
#include "verbs/port.hpp"
#include "wire/queue_pair.hpp"
#include "wire/socket.hpp"

namespace gdrbench {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr int most_errno = 200;
constexpr int most_cuda_error = 1100;

void add_verbs_hints(std::vector<std::string>& texts) {
  using verbs::Step;
  for (const Step step : {Step::open, Step::create, Step::register_host_memory, Step::register_gpu_memory,
                          Step::modify_queue_pair, Step::connect, Step::use})
    for (const FabricKind fabric : {FabricKind::hardware, FabricKind::soft_roce, FabricKind::softverbs})
      for (int code = 1; code < most_errno; ++code) texts.push_back(verbs::hint(step, code, fabric));
  texts.push_back(verbs::absence_reason("/nonexistent"));
}

void add_statuses(std::vector<std::string>& texts) {
  for (std::uint32_t status = 0; status < 30; ++status)
    for (const FabricKind fabric : {FabricKind::hardware, FabricKind::soft_roce, FabricKind::softverbs})
      for (const bool on_gpu : {false, true})
        for (const std::uint32_t vendor_error : {0u, 0x51u})
          texts.push_back(wire::describe_status(
              status, {.vendor_error = vendor_error, .on_gpu = on_gpu, .fabric = fabric}));
}

// Of all tables.
std::vector<std::string> all_texts() {
  std::vector<std::string> texts;
  add_verbs_hints(texts);
  add_statuses(texts);
  for (int code = 0; code < most_cuda_error; ++code) texts.push_back(cuda::error_hint(code));
  for (int code = 1; code < most_errno; ++code) {
    texts.push_back(wire::connect_hint(code, "10.0.0.2:7471", 7471));
    texts.push_back(wire::listen_hint(code));
    texts.push_back(wire::accept_hint(code));
    texts.push_back(wire::lost_hint(code));
  }
  return texts;
}

constexpr std::string_view before_check = "; confirm with: gdrbench doctor --check ";

std::set<std::string> checks_named(const std::vector<std::string>& texts) {
  std::set<std::string> names;
  for (const std::string& text : texts)
    if (const std::size_t at = text.find(before_check); at != std::string::npos)
      names.insert(text.substr(at + before_check.size()));
  return names;
}

TEST(ErrorTexts, NameChecksThatTheDoctorHas) {
  std::set<std::string> known;
  for (const doctor::Check* check : doctor::checks()) known.insert(std::string(check->name));
  const std::set<std::string> named = checks_named(all_texts());
  EXPECT_GE(named.size(), 10u);
  for (const std::string& name : named) EXPECT_TRUE(known.contains(name)) << "'" << name << "'";
}

// A sentence after it would be read as part of the command.
TEST(ErrorTexts, NameAtMostOneCheckAndAtTheEnd) {
  for (const std::string& text : all_texts())
    if (const std::size_t at = text.find("confirm with"); at != std::string::npos) {
      const std::string name = text.substr(text.rfind(' ') + 1);
      EXPECT_THAT(text, EndsWith(std::string(before_check) + name));
      EXPECT_EQ(text.find("confirm with", at + 1), std::string::npos) << text;
    }
}

TEST(ErrorTexts, OfCudaSayWhatToDo) {
  const struct {
    int code;
    const char *word, *check;
  } rows[] = {{2, "nvidia-smi", ""},
              {35, "update", "driver"},
              {100, "CUDA_VISIBLE_DEVICES", "driver"},
              {802, "fabricmanager", "driver"},
              {803, "reboot", "driver"},
              {804, "cuda-compat", "driver"},
              {719, "Xid", "kernel_log"},
              {999, "nvidia-uvm", "kernel_log"}};
  for (const auto& row : rows) {
    EXPECT_THAT(cuda::error_hint(row.code), HasSubstr(row.word));
    EXPECT_THAT(cuda::error_hint(row.code), EndsWith(row.check));
  }
  EXPECT_EQ(cuda::error_hint(0), "");
}

TEST(ErrorTexts, OfSocketsSayWhatToDo) {
  const auto connecting = [](int code) { return wire::connect_hint(code, "10.0.0.2:7471", 7471); };
  EXPECT_THAT(connecting(ECONNREFUSED), HasSubstr("nothing listens on 10.0.0.2:7471"));
  EXPECT_THAT(connecting(ETIMEDOUT), HasSubstr("firewall drops TCP port 7471"));
  EXPECT_THAT(connecting(EHOSTUNREACH), HasSubstr("no route"));
  EXPECT_THAT(connecting(EMFILE), HasSubstr("ulimit -n"));
  EXPECT_THAT(wire::listen_hint(EADDRINUSE), HasSubstr("--port"));
  EXPECT_THAT(wire::listen_hint(EMFILE), HasSubstr("ulimit -n"));
  EXPECT_THAT(wire::lost_hint(ECONNRESET), HasSubstr("killed"));
}

}  // namespace
}  // namespace gdrbench
