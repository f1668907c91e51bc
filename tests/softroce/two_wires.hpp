#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/memory.hpp"
#include "verbs/device.hpp"
#include "wire/verbs_wire.hpp"

/// Two ends of a verbs wire in this process, on one device looped back: what the tests of this folder share.
namespace gdrbench::wire {

/// Skips the tests of a suite, with the reason, where there is no RDMA device; where the environment names
/// one, it must be there.
class NeedsRdma : public testing::Test {
 protected:
  void SetUp() override {
    if (!verbs::list_devices().empty()) return;
    ASSERT_EQ(std::getenv("RDMA_DEVICE"), nullptr) << verbs::no_device_reason();
    GTEST_SKIP() << verbs::no_device_reason();
  }
};

/// The device of $RDMA_DEVICE, else the first one.
inline VerbsOptions verbs_options() {
  const char* const device = std::getenv("RDMA_DEVICE");
  VerbsOptions options;
  options.device = device != nullptr ? device : "";
  return options;
}

struct EndSettings {
  VerbsOptions verbs = verbs_options();
  WireLimits limits{};
  std::uint64_t memory_bytes = 1 << 16;
  VerbsWireRole role = VerbsWireRole::active;
};

/// One end: a wire, and memory that it may send from and receive into.
struct End {
  explicit End(const EndSettings& settings)
      : memory({.length = settings.memory_bytes}), wire(settings.verbs, settings.limits, settings.role) {
    region = wire.register_memory(memory.view());
  }

  /// The next `count` completions, in order of arrival; fewer when they do not come within `patience`.
  std::vector<Completion> take(std::size_t count,
                               std::chrono::milliseconds patience = std::chrono::seconds(20)) const {
    std::vector<Completion> all(count);
    std::size_t found = 0;
    for (const Deadline deadline = after(patience); found < count;) {
      const std::size_t more = wire.poll({all.data() + found, count - found});
      found += more;
      if (more == 0 && std::chrono::steady_clock::now() > deadline) break;
      if (more == 0) std::this_thread::yield();
    }
    all.resize(found);
    return all;
  }
  /// The status of each of the next `count` completions.
  std::vector<std::uint32_t> statuses(std::size_t count) const {
    std::vector<std::uint32_t> all;
    for (const Completion& completion : take(count)) all.push_back(completion.status);
    return all;
  }

  SendRequest send(std::uint64_t id, std::uint64_t offset, std::uint32_t length) const {
    return {.id = id, .address = region.address + offset, .length = length, .lkey = region.lkey};
  }
  ReceiveRequest receive(std::uint64_t id, std::uint64_t offset, std::uint32_t length) const {
    return {.id = id, .address = region.address + offset, .length = length, .lkey = region.lkey};
  }
  /// One-sided, between the same places of this end's memory and the other's.
  SendRequest one_sided(Op op, std::uint64_t id, const End& target, std::uint64_t offset,
                        std::uint32_t length) const {
    SendRequest request = send(id, offset, length);
    request.op = op;
    request.remote_address = reinterpret_cast<std::uintptr_t>(target.region.address) + offset;
    request.rkey = target.region.rkey;
    return request;
  }

  Buffer memory;  ///< outlives the wire
  VerbsWire wire;
  Region region;
};

/// Two ends, connected through their offers.
struct Pair {
  explicit Pair(const EndSettings& settings = {}) : left(settings), right(settings) {
    left.wire.connect(right.wire.offer(), {});
    right.wire.connect(left.wire.offer(), {});
  }
  End left, right;
};

/// The text of the exception of type E that `action` throws; empty when it throws none.
template <class E, class Action>
std::string error_text(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace gdrbench::wire
