#include "nic/faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace gdrbench::softverbs {

struct Faults::Impl {
  FaultList list;
  bool any = false;
  std::mutex mutex;
  std::array<std::uint64_t, failing_verbs.size()> calls{};
  std::uint64_t work_requests = 0;
  std::uint64_t messages = 0;
};

Faults Faults::parse(std::string_view text) {
  auto impl = std::make_unique<Impl>();
  impl->list = parse_faults(text);
  impl->any = !impl->list.calls.empty() || !impl->list.work_requests.empty() || !impl->list.messages.empty();
  return Faults(std::move(impl));
}

Faults& Faults::instance() {
  // Never destroyed: threads of the NIC may run until the very end.
  static auto& faults = *new Faults([] {
    const char* text = std::getenv("GDRBENCH_SOFTVERBS_FAULTS");
    try {
      return parse(text != nullptr ? text : "");
    } catch (const std::invalid_argument& error) {
      std::fprintf(stderr, "GDRBENCH_SOFTVERBS_FAULTS: %s\n", error.what());
      std::_Exit(2);
    }
  }());
  return faults;
}

Faults::Faults(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Faults::Faults(Faults&&) noexcept = default;
Faults::~Faults() = default;

int Faults::on_call(std::string_view verb) {
  const std::size_t index = verb_index(verb);
  if (index == failing_verbs.size()) return 0;
  const std::lock_guard lock(impl_->mutex);
  const std::uint64_t count = ++impl_->calls[index];
  for (const VerbFault& fault : impl_->list.calls)
    if (fault.verb == index && fault.when.hits(count)) return fault.error;
  return 0;
}

std::optional<CompletionFault> Faults::on_work_request() {
  const std::lock_guard lock(impl_->mutex);
  const std::uint64_t count = ++impl_->work_requests;
  for (const WorkRequestFault& fault : impl_->list.work_requests)
    if (fault.when.hits(count)) return fault.completion;
  return std::nullopt;
}

PayloadFault Faults::on_payload() {
  const std::lock_guard lock(impl_->mutex);
  const std::uint64_t count = ++impl_->messages;
  PayloadFault combined;
  for (const auto& [when, fault] : impl_->list.messages) {
    if (!when.hits(count)) continue;
    combined.corrupt |= fault.corrupt;
    combined.drop |= fault.drop;
    combined.cut |= fault.cut;
    combined.delay = std::max(combined.delay, fault.delay);
  }
  return combined;
}

bool Faults::any() const {
  return impl_->any;
}

namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

// enum ibv_wc_status without IBV_WC_, in its order.
constexpr std::string_view status_names[] = {
    "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
    "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
    "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
static_assert(std::size(status_names) == IBV_WC_GENERAL_ERR + 1);

/// All of `text` as a number; decimal, or hexadecimal after 0x.
std::optional<std::uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Cuts `text` at the first `separator`; the rest is empty when there is none.
struct Split {
  std::string_view before, after;
  bool separated = false;
};
Split split(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == text.npos) return {text, {}, false};
  return {text.substr(0, at), text.substr(at + 1), true};
}

/// One item of the list, and how to complain about it.
class Item {
 public:
  Item(std::string_view text, std::size_t offset) : text_(text), position_(offset + 1) {}

  void add_to(FaultList& list) const {
    const auto [kind, rest, has_value] = split(text_, '=');
    PayloadFault payload;
    if (!has_value)
      refuse("'=' is missing", "KIND=…, with KIND one of fail, complete, corrupt, drop, cut, delay");
    if (kind == "fail") {
      list.calls.push_back(verb_fault(rest));
    } else if (kind == "complete") {
      list.work_requests.push_back(work_request_fault(rest));
    } else if (kind == "delay") {
      const auto [count, time, has_time] = split(rest, ':');
      if (!has_time) refuse("the time is missing", "delay=N:TIME, as in delay=3:5ms");
      payload.delay = duration(time);
      list.messages.push_back({occurrence(count), payload});
    } else if (kind == "corrupt" || kind == "drop" || kind == "cut") {
      payload.corrupt = kind == "corrupt";
      payload.drop = kind == "drop";
      payload.cut = kind == "cut";
      list.messages.push_back({occurrence(rest), payload});
    } else {
      refuse(fmt::format("'{}' is no kind of fault", kind), "fail, complete, corrupt, drop, cut or delay");
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& fault, const std::string& expected) const {
    throw std::invalid_argument(
        fmt::format("fault '{}' at position {}: {}; expected {}", text_, position_, fault, expected));
  }

  Occurrence occurrence(std::string_view text) const {
    const auto count = [&](std::string_view digits) {
      const auto value = number(digits);
      if (!value || *value == 0)
        refuse(fmt::format("'{}' is no count", text), "N, N-, N-M or */K with numbers from 1 on");
      return *value;
    };
    if (text.starts_with("*/")) {
      const std::uint64_t every = count(text.substr(2));
      return {every, no_end, every};
    }
    const auto [first, last, is_range] = split(text, '-');
    Occurrence when{count(first), no_end, 1};
    if (!is_range) when.last = when.first;
    if (!last.empty()) when.last = count(last);
    if (when.last < when.first) refuse(fmt::format("'{}' is an empty range", text), "N-M with M not below N");
    return when;
  }

  VerbFault verb_fault(std::string_view text) const {
    const auto [verb, rest, has_count] = split(text, ':');
    const auto [count, error, has_error] = split(rest, ':');
    if (!has_count || !has_error)
      refuse("a part is missing", "fail=VERB:N:ERRNO, as in fail=ibv_reg_mr:2:ENOMEM");
    const std::size_t index = verb_index(verb);
    if (index == failing_verbs.size())
      refuse(fmt::format("'{}' is no verb that can be told to fail", verb),
             fmt::format("one of {}", fmt::join(failing_verbs, ", ")));
    return {index, occurrence(count), errno_value(error)};
  }

  int errno_value(std::string_view text) const {
    constexpr int largest = 4095;  // MAX_ERRNO of the kernel
    for (int value = 1; value <= largest; ++value)
      if (const char* name = strerrorname_np(value); name != nullptr && text == name) return value;
    if (const auto value = number(text); value && *value >= 1 && *value <= largest)
      return static_cast<int>(*value);
    refuse(fmt::format("'{}' is no errno value", text), "a name as ENOMEM, or a number from 1 to 4095");
  }

  WorkRequestFault work_request_fault(std::string_view text) const {
    const auto [count, rest, has_status] = split(text, ':');
    const auto [name, vendor, has_vendor] = split(rest, ':');
    if (!has_status)
      refuse("the status is missing", "complete=N:STATUS[:VENDOR], as in complete=7:RETRY_EXC_ERR:0x81");
    CompletionFault completion{status(name), 0};
    if (has_vendor) {
      const auto value = number(vendor);
      if (!value || *value > std::numeric_limits<std::uint32_t>::max())
        refuse(fmt::format("'{}' is no vendor error", vendor), "a number of 32 bits, as 129 or 0x81");
      completion.vendor_error = static_cast<std::uint32_t>(*value);
    }
    return {occurrence(count), completion};
  }

  ibv_wc_status status(std::string_view text) const {
    constexpr std::string_view prefix = "IBV_WC_";
    std::string_view name = text;
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    const auto* found = std::find(std::begin(status_names), std::end(status_names), name);
    if (found == std::end(status_names) || found == std::begin(status_names))
      refuse(fmt::format("'{}' is no status of a failed completion", text),
             fmt::format("IBV_WC_ and one of {}",
                         fmt::join(std::begin(status_names) + 1, std::end(status_names), ", ")));
    return static_cast<ibv_wc_status>(found - std::begin(status_names));
  }

  std::chrono::microseconds duration(std::string_view text) const {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto value = number(text.substr(0, digits));
    const std::string_view unit = text.substr(digits);
    const std::uint64_t unit_us = unit == "us" ? 1 : unit == "ms" ? 1'000 : unit == "s" ? 1'000'000 : 0;
    constexpr std::uint64_t longest = std::numeric_limits<std::uint32_t>::max();  // no product overflows
    if (!value || *value == 0 || *value > longest || unit_us == 0)
      refuse(fmt::format("'{}' is no time", text), "a number from 1 on with us, ms or s, as 100us");
    return std::chrono::microseconds(*value * unit_us);
  }

  std::string_view text_;
  std::size_t position_;
};

}  // namespace

std::size_t verb_index(std::string_view verb) {
  return static_cast<std::size_t>(std::find(failing_verbs.begin(), failing_verbs.end(), verb) -
                                  failing_verbs.begin());
}

FaultList parse_faults(std::string_view text) {
  constexpr std::string_view separators = " ,\t\n";
  FaultList list;
  std::size_t at = text.find_first_not_of(separators);
  while (at != text.npos) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    Item(text.substr(at, end - at), at).add_to(list);
    at = text.find_first_not_of(separators, end);
  }
  return list;
}

}  // namespace gdrbench::softverbs
