#include "session/budget.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <utility>

#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::session {
namespace {

MemoryKind payload_kind(const Case& c) {
  return is_baseline(c.path) ? MemoryKind::host : c.memory;
}

std::uint64_t size_of(const std::shared_ptr<Buffer>& buffer) {
  return buffer ? buffer->size() : 0;
}

[[noreturn]] void refuse_memory(std::uint64_t payload, std::uint64_t bounce, std::uint64_t used,
                                std::uint64_t limit) {
  const std::string staging = bounce == 0 ? "" : fmt::format(" and {} of bounce memory", format_size(bounce));
  throw Unavailable(fmt::format(
      "{} of payload{} asked for, and {} are in use by open cases, but this server's limit is {}; raise it "
      "with gdrbench serve --max-memory",
      format_size(payload), bounce == 0 ? " memory" : staging, format_size(used), format_size(limit)));
}

}  // namespace

/// The payload memory of a session, counted for as long as it is there.
struct Budget::Buffers {
  Buffers(std::shared_ptr<Limits> shared, const Case& c, std::uint64_t length)
      : limits(std::move(shared)), kind(payload_kind(c)), gpu(c.gpu), bytes(length) {
    const std::lock_guard lock(limits->mutex);
    limits->used.payload_bytes += bytes;
  }
  ~Buffers() {
    const std::lock_guard lock(limits->mutex);
    limits->used.payload_bytes -= bytes;
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  bool fits(const Case& c, std::uint64_t length) const {
    return kind == payload_kind(c) && gpu == c.gpu && length <= bytes;
  }

  std::shared_ptr<Limits> limits;
  MemoryKind kind;
  int gpu;
  std::uint64_t bytes;
};

Budget::Hold::Hold(std::shared_ptr<Limits> limits, std::shared_ptr<Buffers> buffers,
                   std::uint64_t bounce_bytes, std::uint32_t queue_pairs)
    : limits_(std::move(limits)),
      buffers_(std::move(buffers)),
      bounce_bytes_(bounce_bytes),
      queue_pairs_(queue_pairs) {
  const std::lock_guard lock(limits_->mutex);
  limits_->used.bounce_bytes += bounce_bytes_;
  limits_->used.queue_pairs += queue_pairs_;
}

Budget::Hold::~Hold() {
  const std::lock_guard lock(limits_->mutex);
  limits_->used.bounce_bytes -= bounce_bytes_;
  limits_->used.queue_pairs -= queue_pairs_;
}

Limits::Counters Budget::used() const {
  const std::lock_guard lock(limits_->mutex);
  return limits_->used;
}

bool Budget::has_room(std::uint64_t payload_bytes, std::uint64_t bounce_bytes) const {
  const std::uint64_t used = limits_->used.bytes(), limit = limits_->max_bytes;
  return used <= limit && payload_bytes <= limit - used && bounce_bytes <= limit - used - payload_bytes;
}

std::unique_ptr<Budget::Hold> Budget::reserve(const Case& c, std::uint64_t payload_bytes,
                                              std::uint64_t bounce_bytes, std::uint32_t remotes) {
  const std::lock_guard lock(limits_->mutex);
  const std::uint64_t queue_pairs = std::uint64_t{c.queue_pairs} * remotes;
  if (queue_pairs > limits_->max_queue_pairs - limits_->used.queue_pairs)
    throw Unavailable(
        fmt::format("{} queue pairs asked for, and {} are in use by open cases, but this server's limit is "
                    "{}; raise it with gdrbench serve --max-queue-pairs",
                    queue_pairs, limits_->used.queue_pairs, limits_->max_queue_pairs));

  bool shared = present_ && present_->fits(c, payload_bytes);
  // Buffers that no open case uses make room first.
  if (present_ && present_.use_count() == 1 && !(shared && has_room(0, bounce_bytes))) {
    present_.reset();
    payload_ = {};
    shared = false;
  }
  if (!has_room(shared ? 0 : payload_bytes, bounce_bytes))
    refuse_memory(payload_bytes, bounce_bytes, limits_->used.bytes(), limits_->max_bytes);
  if (!shared) present_ = std::make_shared<Buffers>(limits_, c, payload_bytes);
  return std::make_unique<Hold>(limits_, present_, bounce_bytes, static_cast<std::uint32_t>(queue_pairs));
}

void Budget::settle() {
  const std::uint64_t really = size_of(payload_.outgoing) + size_of(payload_.incoming);
  if (really <= present_->bytes) return;
  const std::lock_guard lock(limits_->mutex);
  const std::uint64_t before = limits_->used.bytes();
  limits_->used.payload_bytes += really - present_->bytes;
  present_->bytes = really;
  if (limits_->used.bytes() <= limits_->max_bytes) return;
  present_.reset();
  payload_ = {};
  refuse_memory(really, 0, before, limits_->max_bytes);
}

std::uint64_t half_of_available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  while (meminfo >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024 / 2;
    meminfo.ignore(64, '\n');
  }
  throw Error("reading MemAvailable from /proc/meminfo: not found; give gdrbench serve --max-memory");
}

}  // namespace gdrbench::session
