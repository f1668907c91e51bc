#include "measure/arrival_observer.hpp"

#include <atomic>

#include "cuda/device.hpp"
#include "cuda/resident.hpp"

namespace gdrbench::measure {
namespace {

class CpuObserver final : public ArrivalObserver {
 public:
  void open(std::byte* tail, std::byte expected, std::uint64_t messages) override {
    tail_ = tail;
    expected_ = expected;
    messages_ = messages;
    seen_ = 0;
  }
  std::uint64_t seen() override {
    if (seen_ == messages_) return seen_;
    // A NIC or another thread writes this byte.
    const std::atomic_ref<std::byte> tail(*tail_);
    if (tail.load(std::memory_order_acquire) == expected_) {
      tail.store(~expected_, std::memory_order_release);
      ++seen_;
    }
    return seen_;
  }
  void close() override { messages_ = seen_; }
  ObserverProof describe() const override { return {.kind = "cpu", .gpu_uuid = std::nullopt}; }

 private:
  std::byte* tail_ = nullptr;
  std::byte expected_{};
  std::uint64_t messages_ = 0, seen_ = 0;
};

class GpuObserver final : public ArrivalObserver {
 public:
  explicit GpuObserver(int gpu) : uuid_(cuda::device_info(gpu).uuid), watcher_(gpu) {}

  void open(std::byte* tail, std::byte expected, std::uint64_t messages) override {
    watcher_.start(tail, expected, messages);
  }
  std::uint64_t seen() override {
    // A kernel that has failed says nothing: the driver is asked, but it takes microseconds to answer.
    constexpr std::uint32_t looks_between = 1 << 16;
    if (++looks_ % looks_between == 0) watcher_.check();
    return watcher_.seen();
  }
  void close() override { watcher_.stop(); }
  ObserverProof describe() const override { return {.kind = "gpu kernel", .gpu_uuid = uuid_}; }

 private:
  std::string uuid_;
  cuda::GpuWatcher watcher_;
  std::uint32_t looks_ = 0;
};

}  // namespace

std::unique_ptr<ArrivalObserver> make_arrival_observer(MemoryKind memory, int gpu) {
  if (memory == MemoryKind::host) return std::make_unique<CpuObserver>();
  return std::make_unique<GpuObserver>(gpu);
}

}  // namespace gdrbench::measure
