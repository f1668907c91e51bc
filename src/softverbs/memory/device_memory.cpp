#include "memory/device_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <utility>

#include "memory/cuda_driver.hpp"
#include "memory/memory.hpp"

namespace gdrbench::softverbs::cuda {
namespace {

/// Long enough for the bandwidth of the bus, short enough to pin for every device.
constexpr std::size_t buffer_bytes = std::size_t{256} << 10;

/// Makes a context the thread's current one for a while. Meanwhile calls do not count as part of a graph's
/// capture, which some of them would otherwise invalidate, even one on another thread.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, Context context)
      : driver_(driver), entered_(driver.context_push(context) == success) {
    if (entered_) driver_.exchange_capture_mode(&capture_mode_);
  }
  ~CurrentContext() {
    if (!entered_) return;
    driver_.exchange_capture_mode(&capture_mode_);
    Context left = nullptr;
    driver_.context_pop(&left);
  }
  CurrentContext(const CurrentContext&) = delete;

  explicit operator bool() const { return entered_; }

 private:
  const Driver& driver_;
  const bool entered_;
  int capture_mode_ = capture_mode_relaxed;
};

}  // namespace

CopyEngine::CopyEngine(const Driver& driver, Context context, int ordinal)
    : driver_(driver), owner_(context), ordinal_(ordinal), context_(context) {}

CopyEngine::~CopyEngine() {
  // A stream without pinned memory beside it is left to its context.
  if (pinned_ != nullptr && resources_alive()) {
    if (const CurrentContext current(driver_, context_); current) {
      if (stream_ != nullptr) driver_.stream_destroy(stream_);
      driver_.host_free(pinned_);
    }
  }
  Device device = 0;
  const bool retained = context_ != owner_;
  if (retained && driver_.device_get(&device, ordinal_) == success) driver_.primary_context_release(device);
}

/// Programs free memory, destroy its context or reset the device while it is registered, and the driver
/// crashes when it is given a context or a stream that is gone. What goes with them tells: the memory itself,
/// the pinned buffers.
bool CopyEngine::reachable(DevicePointer address) {
  const PointerAttributes memory = attributes_of(driver_, address);
  if (!memory.on_device() || memory.context != owner_) return false;
  if (!resources_alive()) {
    stream_ = nullptr;
    pinned_ = nullptr;
    buffers_ = {};
  }
  if (context_ != nullptr) return true;
  Device device = 0;
  if (driver_.device_get(&device, ordinal_) == success &&
      driver_.primary_context_retain(&context_, device) == success)
    return true;
  context_ = nullptr;
  return false;
}

bool CopyEngine::resources_alive() const {
  return pinned_ == nullptr ||
         attributes_of(driver_, reinterpret_cast<DevicePointer>(pinned_)).context == context_;
}

bool CopyEngine::prepare() {
  if (stream_ != nullptr) return true;
  if (buffers_[0] == nullptr) {
    if (driver_.host_alloc(&pinned_, 2 * buffer_bytes, host_alloc_portable) != success) {
      pinned_ = nullptr;
      pageable_.reset(new (std::nothrow) std::byte[2 * buffer_bytes]);
    }
    auto* memory = pinned_ != nullptr ? static_cast<std::byte*>(pinned_) : pageable_.get();
    if (memory == nullptr) return false;
    buffers_ = {memory, memory + buffer_bytes};
  }
  if (driver_.stream_create(&stream_, stream_non_blocking) == success) return true;
  stream_ = nullptr;
  return false;
}

bool CopyEngine::start_to_device(DevicePointer to, const std::byte* from, std::size_t bytes) {
  const std::size_t body = bytes - last_store_bytes(to, bytes);
  return (body == 0 || driver_.copy_to_device(to, from, body, stream_) == success) &&
         driver_.copy_to_device(to + body, from + body, bytes - body, stream_) == success;
}

void CopyEngine::ready(DevicePointer address) {
  if (!reachable(address)) return;
  if (const CurrentContext current(driver_, context_); current) prepare();
}

// Both ways, one buffer is in use by the GPU while the CPU copies from or to the other.

int CopyEngine::to_device(DevicePointer to, std::span<const std::byte> from) {
  if (from.empty()) return 0;
  if (!reachable(to)) return EIO;
  const CurrentContext current(driver_, context_);
  if (!current || !prepare()) return EIO;
  bool good = true;
  for (std::size_t at = 0, turn = 0; good && at < from.size(); at += buffer_bytes, ++turn) {
    std::byte* buffer = buffers_[turn % 2];
    const std::size_t bytes = std::min(buffer_bytes, from.size() - at);
    dma_copy(buffer, from.data() + at, bytes);
    good = (turn == 0 || synchronize()) && start_to_device(to + at, buffer, bytes);
  }
  // After a failure too: the buffers may still be in use.
  return synchronize() && good ? 0 : EIO;
}

int CopyEngine::to_host(std::span<std::byte> to, DevicePointer from) {
  if (to.empty()) return 0;
  if (!reachable(from)) return EIO;
  const CurrentContext current(driver_, context_);
  if (!current || !prepare()) return EIO;
  const auto bytes_at = [&](std::size_t at) { return std::min(buffer_bytes, to.size() - at); };
  const auto start = [&](std::size_t at) {
    return driver_.copy_to_host(buffers_[at / buffer_bytes % 2], from + at, bytes_at(at), stream_) == success;
  };
  bool good = start(0);
  for (std::size_t at = 0; good && at < to.size(); at += buffer_bytes) {
    good = synchronize() && (at + buffer_bytes >= to.size() || start(at + buffer_bytes));
    if (good) dma_copy(to.data() + at, buffers_[at / buffer_bytes % 2], bytes_at(at));
  }
  return synchronize() && good ? 0 : EIO;
}

}  // namespace gdrbench::softverbs::cuda

namespace gdrbench::softverbs {

std::shared_ptr<DeviceMemory> DeviceMemory::of(const cuda::Driver& driver, cuda::Context context,
                                               int ordinal) {
  static std::mutex mutex;
  // Never destroyed, and holds nothing alive: a region may be deregistered while the process ends.
  static auto& known = *new std::map<std::pair<cuda::Context, int>, std::weak_ptr<DeviceMemory>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<DeviceMemory>& entry = known[{context, ordinal}];
  std::shared_ptr<DeviceMemory> memory = entry.lock();
  if (memory == nullptr) entry = memory = std::make_shared<DeviceMemory>(driver, context, ordinal);
  return memory;
}

void DeviceMemory::ready(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  engine_.ready(address);
}

int DeviceMemory::write(std::uint64_t address, std::span<const std::byte> from) const {
  const std::lock_guard lock(mutex_);
  return engine_.to_device(address, from);
}

int DeviceMemory::read(std::uint64_t address, std::span<std::byte> to) const {
  const std::lock_guard lock(mutex_);
  return engine_.to_host(to, address);
}

int DeviceMemory::fetch_add(std::uint64_t address, std::uint64_t add, std::uint64_t& before) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t word = 0;
  if (const int error = engine_.to_host(std::as_writable_bytes(std::span(&word, 1)), address)) return error;
  before = word;
  word += add;
  return engine_.to_device(address, std::as_bytes(std::span(&word, 1)));
}

int DeviceMemory::compare_swap(std::uint64_t address, std::uint64_t compare, std::uint64_t swap,
                               std::uint64_t& before) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t word = 0;
  if (const int error = engine_.to_host(std::as_writable_bytes(std::span(&word, 1)), address)) return error;
  before = word;
  return word == compare ? engine_.to_device(address, std::as_bytes(std::span(&swap, 1))) : 0;
}

}  // namespace gdrbench::softverbs
