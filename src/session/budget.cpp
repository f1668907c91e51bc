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

struct Budget::Buffers {
  Buffers(std::shared_ptr<Counters> counters, const Case& c, std::uint64_t length)
      : used(std::move(counters)), kind(payload_kind(c)), gpu(c.gpu), bytes(length) {
    used->payload_bytes += bytes;
  }
  ~Buffers() { used->payload_bytes -= bytes; }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  bool fits(const Case& c, std::uint64_t length) const {
    return kind == payload_kind(c) && gpu == c.gpu && length <= bytes;
  }

  std::shared_ptr<Counters> used;
  MemoryKind kind;
  int gpu;
  std::uint64_t bytes;
};

Budget::Hold::Hold(std::shared_ptr<Counters> used, std::shared_ptr<Buffers> buffers,
                   std::uint64_t bounce_bytes, std::uint32_t queue_pairs)
    : used_(std::move(used)),
      buffers_(std::move(buffers)),
      bounce_bytes_(bounce_bytes),
      queue_pairs_(queue_pairs) {
  used_->bounce_bytes += bounce_bytes_;
  used_->queue_pairs += queue_pairs_;
}

Budget::Hold::~Hold() {
  used_->bounce_bytes -= bounce_bytes_;
  used_->queue_pairs -= queue_pairs_;
}

Budget::Budget(std::uint64_t max_bytes, std::uint32_t max_queue_pairs)
    : max_bytes_(max_bytes), max_queue_pairs_(max_queue_pairs) {}

bool Budget::has_room(std::uint64_t payload_bytes, std::uint64_t bounce_bytes) const {
  const std::uint64_t used = used_->bytes();
  return used <= max_bytes_ && payload_bytes <= max_bytes_ - used &&
         bounce_bytes <= max_bytes_ - used - payload_bytes;
}

std::unique_ptr<Budget::Hold> Budget::reserve(const Case& c, std::uint64_t payload_bytes,
                                              std::uint64_t bounce_bytes) {
  if (c.queue_pairs > max_queue_pairs_ - used_->queue_pairs)
    throw Unavailable(
        fmt::format("{} queue pairs asked for, and {} are in use by open cases, but this server's limit is "
                    "{}; raise it with gdrbench serve --max-queue-pairs",
                    c.queue_pairs, used_->queue_pairs, max_queue_pairs_));

  bool shared = present_ && present_->fits(c, payload_bytes);
  // Buffers that no open case uses make room first.
  if (present_ && present_.use_count() == 1 && !(shared && has_room(0, bounce_bytes))) {
    present_.reset();
    payload_ = {};
    shared = false;
  }
  if (!has_room(shared ? 0 : payload_bytes, bounce_bytes))
    refuse_memory(payload_bytes, bounce_bytes, used_->bytes(), max_bytes_);
  if (!shared) present_ = std::make_shared<Buffers>(used_, c, payload_bytes);
  return std::make_unique<Hold>(used_, present_, bounce_bytes, c.queue_pairs);
}

void Budget::settle() {
  const std::uint64_t really = size_of(payload_.outgoing) + size_of(payload_.incoming);
  if (really <= present_->bytes) return;
  const std::uint64_t before = used_->bytes();
  used_->payload_bytes += really - present_->bytes;
  present_->bytes = really;
  if (used_->bytes() <= max_bytes_) return;
  present_.reset();
  payload_ = {};
  refuse_memory(really, 0, before, max_bytes_);
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
