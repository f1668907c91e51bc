#include "nic/datagram_packet.hpp"

#include <netinet/ip.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "nic/datagrams.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
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
