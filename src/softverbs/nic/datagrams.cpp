#include "nic/datagrams.hpp"

#include <algorithm>
#include <cstring>

#include "nic/engine.hpp"
#include "nic/limits.hpp"
#include "nic/nic.hpp"
#include "nic/queue_pair.hpp"
#include "nic/queue_pair_table.hpp"

namespace gdrbench::softverbs {
namespace {

constexpr auto retry_after = std::chrono::milliseconds(100);
constexpr auto patience = std::chrono::seconds(2);
constexpr int frames_a_pass = 64;
constexpr std::size_t max_origins = 1024;

}  // namespace

Datagrams::Datagrams(Nic& of_nic) : nic_(of_nic) {}

Datagrams::~Datagrams() = default;

Link* Datagrams::link_to(std::uint8_t gid_index, const ibv_gid& to, std::uint32_t slot) {
  Key key{gid_index, {}, slot};
  std::memcpy(std::get<1>(key).data(), to.raw, sizeof to.raw);
  Destination& destination = destinations_[key];
  if (destination.link != nullptr && !destination.link->broken()) return destination.link.get();
  destination.link.reset();
  unreachable_ = Clock::now() < destination.not_before;
  if (destination.dialing || unreachable_) return nullptr;

  destination.dialing = true;
  const GidEntry& source = nic_.gids()[gid_index];
  Hello hello;
  hello.kind = LinkKind::datagrams;
  hello.source_gid = source.gid;
  hello.destination_gid = to;
  nic_.engine().dialer().dial(hello, address_of(source.gid, 0, source.interface),
                              address_of(to, slot, source.interface), Clock::now() + patience,
                              [this, key](DialResult result) {
                                const std::lock_guard guard(out_lock_);
                                Destination& dialed = destinations_[key];
                                dialed.dialing = false;
                                if (result.link == nullptr) dialed.not_before = Clock::now() + retry_after;
                                dialed.link = std::move(result.link);
                              });
  return nullptr;
}

void Datagrams::on_caller(Caller caller) {
  const std::lock_guard guard(in_lock_);
  const ibv_gid source = caller.hello().source_gid, destination = caller.hello().destination_gid;
  const auto is_here = [&](const GidEntry& entry) {
    return std::memcmp(entry.gid.raw, destination.raw, sizeof destination.raw) == 0;
  };
  if (std::none_of(nic_.gids().begin(), nic_.gids().end(), is_here))
    return caller.refuse(Refusal::not_expected);
  if (origins_.size() >= max_origins) return caller.refuse(Refusal::busy);
  if (std::unique_ptr<Link> link = caller.accept(); link != nullptr)
    origins_.push_back({std::move(link), source, destination});
}

std::size_t Datagrams::receive() {
  const std::unique_lock guard(in_lock_, std::try_to_lock);
  if (!guard) return 0;
  std::size_t frames = 0;
  for (Origin& origin : origins_) frames += receive_from(origin);
  std::erase_if(origins_,
                [](Origin& origin) { return origin.link->broken() && origin.link->next() == nullptr; });
  return frames;
}

std::size_t Datagrams::receive_from(Origin& origin) {
  std::size_t frames = 0;
  for (; frames < frames_a_pass; ++frames) {
    const FrameHeader* const frame = origin.link->next();
    if (frame == nullptr) break;
    if (frame->type != FrameType::datagram || frame->payload_bytes > datagram_bytes) {
      origin.link->shut("a frame that is no datagram");
      break;
    }
    nic_.queue_pairs().visit(frame->queue_pair, [&](QueuePair& queue_pair) {
      queue_pair.on_datagram(*frame, origin.link->payload(), origin.source, origin.destination);
    });
    origin.link->consume();
  }
  origin.link->release();
  return frames;
}

bool Datagrams::arm() {
  bool came = false;
  const std::lock_guard guard(in_lock_);
  for (Origin& origin : origins_) came |= origin.link->arm();
  return came;
}

void Datagrams::disarm() {
  const std::lock_guard guard(in_lock_);
  for (Origin& origin : origins_) origin.link->disarm();
}

}  // namespace gdrbench::softverbs
