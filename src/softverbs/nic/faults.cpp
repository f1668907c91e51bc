#include "nic/faults.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "nic/fault_list.hpp"

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

}  // namespace gdrbench::softverbs
