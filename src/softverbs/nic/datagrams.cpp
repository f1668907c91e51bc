#include "nic/datagrams.hpp"

#include <netinet/ip.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "nic/device.hpp"
#include "nic/engine.hpp"
#include "nic/nic.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
namespace {

constexpr auto retry_after = std::chrono::milliseconds(100);
constexpr auto connect_timeout = std::chrono::seconds(2);
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
                              address_of(to, slot, source.interface), Clock::now() + connect_timeout,
                              [this, key](DialResult result) {
                                const std::lock_guard guard(out_lock_);
                                Destination& dialed = destinations_[key];
                                dialed.dialing = false;
                                if (result.link == nullptr) dialed.not_before = Clock::now() + retry_after;
                                dialed.link = std::move(result.link);
                              });
  return nullptr;
}

void Datagrams::on_connection_request(ConnectionRequest request) {
  const std::lock_guard guard(in_lock_);
  const ibv_gid source = request.hello().source_gid, destination = request.hello().destination_gid;
  const auto is_here = [&](const GidEntry& entry) {
    return std::memcmp(entry.gid.raw, destination.raw, sizeof destination.raw) == 0;
  };
  if (std::none_of(nic_.gids().begin(), nic_.gids().end(), is_here))
    return request.refuse(Refusal::not_expected);
  if (origins_.size() >= max_origins) return request.refuse(Refusal::busy);
  if (std::unique_ptr<Link> link = request.accept(); link != nullptr)
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

namespace {

// A Q_Key with this bit stands for the queue pair's own (InfiniBand specification, 10.2.5).
constexpr std::uint32_t own_qkey_bit = 0x80000000;
constexpr std::uint8_t hop_limit = 64;
constexpr std::size_t ipv4_offset = grh_bytes - sizeof(iphdr);

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, mapped, sizeof mapped) == 0;
}

std::uint16_t checksum(const iphdr& header) {
  std::array<std::uint16_t, sizeof(iphdr) / 2> words;
  std::memcpy(words.data(), &header, sizeof header);
  std::uint32_t sum = 0;
  for (const std::uint16_t word : words) sum += word;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// What RoCE v2 leaves in front of a datagram: its IPv6 header, or its IPv4 header at the end of the 40 bytes.
std::array<std::byte, grh_bytes> route_header(const ibv_gid& source, const ibv_gid& destination,
                                              std::size_t payload_bytes) {
  std::array<std::byte, grh_bytes> bytes{};
  if (is_ipv4(source)) {
    iphdr header{};
    header.version = 4;
    header.ihl = 5;
    header.tot_len = htons(static_cast<std::uint16_t>(sizeof header + payload_bytes));
    header.ttl = hop_limit;
    header.protocol = IPPROTO_UDP;
    std::memcpy(&header.saddr, source.raw + 12, sizeof header.saddr);
    std::memcpy(&header.daddr, destination.raw + 12, sizeof header.daddr);
    header.check = checksum(header);
    std::memcpy(bytes.data() + ipv4_offset, &header, sizeof header);
    return bytes;
  }
  ibv_grh header{};
  header.version_tclass_flow = htonl(6U << 28);
  header.paylen = htons(static_cast<std::uint16_t>(payload_bytes));
  header.next_hdr = IPPROTO_UDP;
  header.hop_limit = hop_limit;
  header.sgid = source;
  header.dgid = destination;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

ibv_wc_status check(const QueuePair& queue_pair, const SendWork& work) {
  if (work.length > datagram_bytes) return IBV_WC_LOC_LEN_ERR;
  if ((work.flags & IBV_SEND_INLINE) != 0) return IBV_WC_SUCCESS;
  return queue_pair.list_of(work).allows(work.length, 0) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

FrameHeader header_of(const QueuePair& queue_pair, const SendWork& work) {
  FrameHeader header;
  header.type = FrameType::datagram;
  header.queue_pair = work.destination_qpn;
  header.message = queue_pair.qp_base.qp_num;
  header.key = (work.qkey & own_qkey_bit) != 0 ? queue_pair.attributes.qkey : work.qkey;
  header.length = work.length;
  header.payload_bytes = static_cast<std::uint32_t>(work.length);
  if (work.opcode == IBV_WR_SEND_WITH_IMM) {
    header.flags |= frame_has_immediate;
    header.immediate = work.immediate;
  }
  if ((work.flags & IBV_SEND_SOLICITED) != 0) header.flags |= frame_solicited;
  return header;
}

Datagrams::Outcome send(QueuePair& queue_pair, SendWork& work) {
  const auto fill = [&](const RingSpans& place) {
    if ((work.flags & IBV_SEND_INLINE) != 0) {
      place.fill(work.inline_data.data());
    } else {
      // Checked before; a region that went away since leaves what was in the ring.
      static_cast<void>(queue_pair.list_of(work).gather(0, place));
    }
    if (work.corrupt && work.length > 0) place[work.corrupt_byte()] ^= corrupt_bit;
  };
  return queue_pair.nic->datagrams().add(work.destination.grh.sgid_index, work.destination.grh.dgid,
                                         header_of(queue_pair, work), fill);
}

}  // namespace

void send_datagrams(QueuePair& queue_pair, StepResult& result) {
  while (queue_pair.qp_base.state == IBV_QPS_RTS && !queue_pair.sends.empty()) {
    SendWork& work = queue_pair.sends.front();
    if (!work.begun) {
      work.status = check(queue_pair, work);
      PayloadFault fault;
      if (work.fault) {
        work.status = work.fault->status;
        work.vendor_error = work.fault->vendor_error;
      } else if (Faults::instance().any()) {
        fault = Faults::instance().on_payload();
      }
      work.begun = true;
      work.corrupt = fault.corrupt;
      work.sent = fault.drop || fault.cut;  // what is lost on the way was sent, for all that its sender knows
    }
    if (work.status == IBV_WC_SUCCESS && !work.sent) {
      const Datagrams::Outcome outcome = send(queue_pair, work);
      if (outcome == Datagrams::Outcome::wait) {
        result.wake_at = std::min(result.wake_at, Clock::now() + std::chrono::milliseconds(1));
        return;
      }
    }
    const bool failed = work.status != IBV_WC_SUCCESS;
    queue_pair.complete_send(work);
    queue_pair.sends.pop();
    if (failed) queue_pair.to_send_error();
  }
}

void receive_datagram(QueuePair& queue_pair, const FrameHeader& header, const RingSpans& payload,
                      const ibv_gid& source, const ibv_gid& destination) {
  ReceiveWork work;
  if (header.key != queue_pair.attributes.qkey || !queue_pair.take_receive(work)) return;
  ibv_wc entry{};
  entry.wr_id = work.id;
  entry.opcode = IBV_WC_RECV;
  entry.byte_len = grh_bytes + header.payload_bytes;
  entry.src_qp = header.message;
  entry.wc_flags = IBV_WC_GRH;
  if ((header.flags & frame_has_immediate) != 0) {
    entry.wc_flags |= IBV_WC_WITH_IMM;
    entry.imm_data = header.immediate;
  }
  const SegmentList list = queue_pair.list_of(work);
  auto route = route_header(source, destination, header.payload_bytes);
  if (list.length() < entry.byte_len) {
    entry.status = IBV_WC_LOC_LEN_ERR;
  } else if (list.scatter(0, {.payload = {route, {}}}, 0, grh_bytes) != 0 ||
             list.scatter(grh_bytes, {.payload = payload}, 0, header.payload_bytes) != 0) {
    entry.status = IBV_WC_LOC_PROT_ERR;
  }
  queue_pair.complete_receive(entry, (header.flags & frame_solicited) != 0);
  if (entry.status != IBV_WC_SUCCESS) queue_pair.to_error();
}

}  // namespace gdrbench::softverbs
