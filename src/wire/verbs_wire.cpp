#include "wire/verbs_wire.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "cuda/pointer.hpp"
#include "gdrbench/error.hpp"
#include "verbs/port.hpp"

namespace gdrbench::wire {
namespace {

// wr_id: bit 63 receive, bits 48–61 queue pair, below them the caller's id. It is one of the few fields that
// are valid in a failed completion, so kind and queue pair are always known.
constexpr std::uint64_t receive_bit = std::uint64_t{1} << 63;
constexpr unsigned queue_pair_shift = 48;
constexpr std::uint64_t id_mask = (std::uint64_t{1} << queue_pair_shift) - 1;
constexpr std::uint32_t queue_pair_mask = (1U << 14) - 1;

// More reads in flight gain nothing, and some devices allow absurd numbers.
constexpr int max_rd_atomic = 16;

std::uint64_t encode(std::uint64_t id, std::uint32_t queue_pair, Completion::Kind kind) {
  const std::uint64_t located = id | std::uint64_t{queue_pair} << queue_pair_shift;
  return kind == Completion::Kind::received ? located | receive_bit : located;
}

ibv_wr_opcode opcode(Op op) {
  switch (op) {
    case Op::send:
      return IBV_WR_SEND;
    case Op::write:
      return IBV_WR_RDMA_WRITE;
    case Op::write_imm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Op::read:
      return IBV_WR_RDMA_READ;
  }
  return IBV_WR_SEND;
}

// rdma_rxe's provider returns errno values negated.
int positive(int returned) {
  return returned < 0 ? -returned : returned;
}

Completion to_completion(const ibv_wc& wc) {
  Completion completion{
      .id = wc.wr_id & id_mask,
      .kind = (wc.wr_id & receive_bit) != 0 ? Completion::Kind::received : Completion::Kind::sent,
      .queue_pair = static_cast<std::uint32_t>(wc.wr_id >> queue_pair_shift) & queue_pair_mask,
      .status = wc.status};
  if (wc.status != IBV_WC_SUCCESS) {
    completion.vendor_error = wc.vendor_err;
    return completion;
  }
  completion.length = wc.byte_len;
  completion.has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (completion.has_immediate) completion.immediate = ntohl(wc.imm_data);
  return completion;
}

std::uint8_t capped(int depth) {
  return static_cast<std::uint8_t>(std::clamp(depth, 0, max_rd_atomic));
}

std::uint32_t completion_entries(const WireLimits& limits) {
  if (limits.queue_pairs == 0 || limits.queue_pairs > queue_pair_mask)
    throw UsageError(
        fmt::format("{} queue pairs: 1 to {} are possible", limits.queue_pairs, queue_pair_mask));
  const std::uint64_t entries =
      std::uint64_t{limits.queue_pairs} * (std::uint64_t{limits.send_depth} + limits.receive_depth);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(entries, std::numeric_limits<std::uint32_t>::max()));
}

void check_fits(const verbs::Endpoint& own, const verbs::Endpoint& remote) {
  if (own.queue_pairs.size() != remote.queue_pairs.size())
    throw Error(fmt::format("this end has {} queue pairs, the remote end {}", own.queue_pairs.size(),
                            remote.queue_pairs.size()));
  if (own.link_layer != remote.link_layer)
    throw Unavailable(fmt::format(
        "this end's RDMA port is {}, the remote one {}: choose devices of one fabric with --device",
        own.link_layer, remote.link_layer));
}

}  // namespace

std::string unsupported_op(const verbs::Device& device, Op op) {
  // iWARP, the one transport without write_imm, is refused when the device is opened.
  const ibv_device_attr& attributes = device.attributes();
  if (op == Op::read && (attributes.max_qp_init_rd_atom <= 0 || attributes.max_qp_rd_atom <= 0))
    return fmt::format("{} allows no RDMA read in flight", device.name());
  return "";
}

std::string unsupported_op(const VerbsOptions& options, Op op) {
  if (options.transport == Transport::uc && (op == Op::read || op == Op::write_imm))
    return fmt::format(
        "over an unreliable connection send and write are measured, and no {}; use --op send or write",
        to_string(op));
  if (options.transport == Transport::uc && options.connect == ConnectBy::rdma_cm)
    return "rdma_cm connects reliable queue pairs; use --connect control with --transport uc";
  return unsupported_op(*verbs::Device::open(options.device, options.port), op);
}

VerbsWire::VerbsWire(const VerbsOptions& options, const WireLimits& limits, VerbsWireRole role)
    : options_(options),
      completion_(limits.completion),
      role_(role),
      device_(verbs::Device::open(options.device, options.port)),
      gid_(device_->select_gid(options.gid_index)),
      domain_(device_->allocate_protection_domain()),
      completions_(device_->create_completion_queue(
          {.entries = completion_entries(limits), .events = limits.completion == CompletionMode::event})) {
  own_ = {.gid = gid_.gid,
          .lid = device_->port().lid,
          .link_layer = device_->info().link_layer,
          .active_mtu = device_->info().active_mtu,
          .rd_atomic = capped(device_->attributes().max_qp_rd_atom)};
  std::random_device random;
  for (std::uint32_t queue_pair = 0; queue_pair < limits.queue_pairs; ++queue_pair) {
    queue_pairs_.push_back(domain_->create_queue_pair(completions_, {.send_depth = limits.send_depth,
                                                                     .receive_depth = limits.receive_depth,
                                                                     .inline_bytes = limits.inline_bytes,
                                                                     .transport = options.transport}));
    to_init(queue_pairs_.back(), {.port = options.port});
    own_.queue_pairs.push_back({.qpn = queue_pairs_.back().number(), .psn = random() & 0xffffff});
  }
  // Devices grant more than was asked for; what was asked for is the limit that the user set.
  inline_bytes_ = std::min(queue_pairs_.front().inline_bytes(), limits.inline_bytes);
  if (options.connect == ConnectBy::rdma_cm) {
    cm_.emplace(device_, gid_);
    if (role == VerbsWireRole::passive) own_.cm = cm_->listen(limits.queue_pairs);
  }
}

Region VerbsWire::register_memory(const MemoryView& view) {
  // Managed memory, for one, could be registered, and would be no GPU memory to the NIC.
  if (view.on_gpu) cuda::require_registrable(view.address);
  const verbs::MemoryRegion& region = regions_.emplace_back(domain_->register_memory(
      view, {.relaxed_ordering = options_.relaxed_ordering, .registration = options_.registration}));
  return {.address = view.address,
          .length = view.length,
          .lkey = region.lkey(),
          .rkey = region.rkey(),
          .registration = region.registration()};
}

nlohmann::json VerbsWire::offer() const {
  return to_json(own_);
}

void VerbsWire::connect(const nlohmann::json& remote_offer, const std::vector<Socket>& /*sockets*/) {
  const verbs::Endpoint remote = verbs::endpoint(remote_offer);
  check_fits(own_, remote);
  path_mtu_ = verbs::choose_path_mtu(own_.active_mtu, remote.active_mtu, options_.path_mtu);
  // Never more reads in flight than the remote end serves at once.
  const std::uint8_t reads = std::min(capped(device_->attributes().max_qp_init_rd_atom), remote.rd_atomic);
  const verbs::QueuePairSettings settings{.path_mtu_bytes = path_mtu_,
                                          .max_dest_rd_atomic = own_.rd_atomic,
                                          .max_rd_atomic = reads,
                                          .min_rnr_timer = options_.min_rnr_timer,
                                          .timeout = options_.timeout,
                                          .retry_count = options_.retry_count,
                                          .rnr_retry = options_.rnr_retry};
  if (!cm_) {
    connect_queue_pairs(remote, settings);
  } else if (role_ == VerbsWireRole::passive) {
    cm_->accept(queue_pairs_, settings);
  } else {
    if (!remote.cm) throw Error("the remote offer has no rdma_cm address: both ends must connect by rdma_cm");
    cm_->connect(*remote.cm, queue_pairs_, settings);
  }
}

void VerbsWire::connect_queue_pairs(const verbs::Endpoint& remote,
                                    const verbs::QueuePairSettings& settings) const {
  const bool grh_required = (device_->port().flags & IBV_QPF_GRH_REQUIRED) != 0;
  const ibv_ah_attr address =
      verbs::make_address({.port = options_.port,
                           .global_route = gid_.type != verbs::GidType::infiniband || grh_required,
                           .source_gid_index = gid_.index,
                           .destination_gid = remote.gid,
                           .destination_lid = remote.lid,
                           .service_level = options_.service_level,
                           .traffic_class = options_.traffic_class});
  for (std::size_t queue_pair = 0; queue_pair < queue_pairs_.size(); ++queue_pair) {
    to_ready_to_receive(queue_pairs_[queue_pair], {.address = address,
                                                   .destination_qpn = remote.queue_pairs[queue_pair].qpn,
                                                   .receive_psn = remote.queue_pairs[queue_pair].psn,
                                                   .path_mtu_bytes = settings.path_mtu_bytes,
                                                   .max_dest_rd_atomic = settings.max_dest_rd_atomic,
                                                   .min_rnr_timer = settings.min_rnr_timer});
    to_ready_to_send(queue_pairs_[queue_pair], {.send_psn = own_.queue_pairs[queue_pair].psn,
                                                .max_rd_atomic = settings.max_rd_atomic,
                                                .timeout = settings.timeout,
                                                .retry_count = settings.retry_count,
                                                .rnr_retry = settings.rnr_retry});
  }
}

int VerbsWire::post_send(const SendRequest& request) const {
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(request.address),
              .length = request.length,
              .lkey = request.lkey};
  ibv_send_wr wr{};
  wr.wr_id = encode(request.id, request.queue_pair, Completion::Kind::sent);
  wr.opcode = opcode(request.op);
  if (request.length > 0) {
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (request.inline_data) wr.send_flags |= IBV_SEND_INLINE;
  }
  if (request.signaled) wr.send_flags |= IBV_SEND_SIGNALED;
  if (request.op != Op::send) {
    wr.wr.rdma.remote_addr = request.remote_address;
    wr.wr.rdma.rkey = request.rkey;
    if (request.op == Op::write_imm) wr.imm_data = htonl(request.immediate);
  }
  ibv_send_wr* refused = nullptr;
  return positive(ibv_post_send(queue_pairs_[request.queue_pair].get(), &wr, &refused));
}

int VerbsWire::post_receive(const ReceiveRequest& request) const {
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(request.address),
              .length = request.length,
              .lkey = request.lkey};
  ibv_recv_wr wr{};
  wr.wr_id = encode(request.id, request.queue_pair, Completion::Kind::received);
  if (request.length > 0) {
    wr.sg_list = &sge;
    wr.num_sge = 1;
  }
  ibv_recv_wr* refused = nullptr;
  return positive(ibv_post_recv(queue_pairs_[request.queue_pair].get(), &wr, &refused));
}

std::size_t VerbsWire::poll(std::span<Completion> out) const {
  std::array<ibv_wc, 32> batch;  // left uninitialised: written by the device's library
  std::size_t total = 0;
  while (total < out.size()) {
    const std::size_t room = std::min(batch.size(), out.size() - total);
    const std::size_t found = completions_->poll({batch.data(), room});
    for (std::size_t i = 0; i < found; ++i) out[total++] = to_completion(batch[i]);
    if (found < room) break;
  }
  return total;
}

void VerbsWire::wait(int extra_fd, int timeout_ms) const {
  if (completion_ == CompletionMode::poll) {
    std::this_thread::yield();
    return;
  }
  // poll(2) skips a negative descriptor.
  std::array<pollfd, 2> fds{{{completions_->event_fd(), POLLIN, 0}, {extra_fd, POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), timeout_ms) > 0 && fds[0].revents != 0) completions_->take_event();
}

VerbsProof VerbsWire::describe() const {
  const verbs::DeviceInfo& info = device_->info();
  VerbsProof proof{.device = info.name,
                   .fabric = info.fabric,
                   .port = info.port,
                   .link_layer = info.link_layer,
                   // rdma_cm chooses the slot itself.
                   .gid_index = cm_ && cm_->gid_index() >= 0 ? cm_->gid_index() : gid_.index,
                   .gid = verbs::to_hex(gid_.gid),
                   .path_mtu = path_mtu_,
                   .active_mtu = info.active_mtu,
                   .link_bytes_per_second = static_cast<double>(info.link_bytes_per_second),
                   .registrations = {},
                   .inline_bytes = inline_bytes_,
                   .settings = options_};
  proof.settings.gid_index = proof.gid_index;
  std::set<Registration> registrations;
  for (const verbs::MemoryRegion& region : regions_) registrations.insert(region.registration());
  proof.registrations.assign(registrations.begin(), registrations.end());
  return proof;
}

std::optional<std::uint64_t> VerbsWire::port_bytes() const {
  return verbs::transmitted_bytes(device_->name(), options_.port);
}

}  // namespace gdrbench::wire
