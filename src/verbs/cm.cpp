#include "verbs/cm.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "verbs/check.hpp"
#include "verbs/port.hpp"

namespace gdrbench::verbs {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

// IPv4 alone: an IPoIB interface without it is set up by hand anyway, and then has it.
std::string ipoib_address(const Device& device) {
  const std::vector<std::string> names = netdevs(device.name());
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) throw SystemError(errno, "list the addresses of the network interfaces");
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(first);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if (std::find(names.begin(), names.end(), entry->ifa_name) == names.end()) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    std::array<char, INET_ADDRSTRLEN> text{};
    return inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  }
  throw Unavailable(
      fmt::format("rdma_cm needs an IPv4 address on an IPoIB interface of {}: there is none", device.name()));
}

}  // namespace

IpAddress ip_address(const Device& device, const GidEntry& gid) {
  if (gid.type == GidType::infiniband) return {.ip = ipoib_address(device)};
  return {.ip = to_ip(gid.gid), .scope = is_link_local(gid.gid) ? gid.netdev_ifindex : 0};
}

sockaddr_storage socket_address(const IpAddress& address, std::uint16_t port) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, address.ip.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&storage, &v4, sizeof v4);
  } else if (inet_pton(AF_INET6, address.ip.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_scope_id = address.scope;
    std::memcpy(&storage, &v6, sizeof v6);
  } else {
    throw Error(fmt::format("'{}' is no IP address", address.ip));
  }
  return storage;
}

CmGreeting make_greeting(std::uint64_t token, std::uint32_t queue_pair) {
  CmGreeting greeting{};
  for (std::size_t i = 0; i < 8; ++i) greeting[i] = static_cast<std::uint8_t>(token >> (56 - 8 * i));
  for (std::size_t i = 0; i < 4; ++i) greeting[8 + i] = static_cast<std::uint8_t>(queue_pair >> (24 - 8 * i));
  return greeting;
}

std::optional<std::uint32_t> read_greeting(std::span<const std::uint8_t> data, std::uint64_t token,
                                           std::uint32_t queue_pairs) {
  // rdma_cm pads private data, so more than a greeting may arrive.
  if (data.size() < CmGreeting{}.size()) return std::nullopt;
  std::uint32_t queue_pair = 0;
  for (std::size_t i = 0; i < 4; ++i) queue_pair = queue_pair << 8 | data[8 + i];
  const CmGreeting expected = make_greeting(token, queue_pair);
  if (queue_pair >= queue_pairs || !std::equal(expected.begin(), expected.end(), data.begin()))
    return std::nullopt;
  return queue_pair;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds wait_limit{10'000};
constexpr milliseconds resolve_limit{5'000};

std::uint64_t random_token() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

rdma_conn_param connection(const QueuePair& pair, const QueuePairSettings& settings) {
  rdma_conn_param param{};
  param.responder_resources = settings.max_dest_rd_atomic;
  param.initiator_depth = settings.max_rd_atomic;
  param.flow_control = 1;
  param.retry_count = settings.retry_count;
  param.rnr_retry_count = settings.rnr_retry;
  param.qp_num = pair.number();
  return param;
}

[[noreturn]] void throw_unexpected(const rdma_cm_event& event, const std::string& waiting_for) {
  const std::string tried =
      fmt::format("rdma_cm: {} came instead of {}", rdma_event_str(event.event), waiting_for);
  if (event.event == RDMA_CM_EVENT_DISCONNECTED) throw PeerLost(tried);
  // Errors come as negative errno values, rejections as the reason code of the CM protocol (IBTA 12.6.7.2).
  if (event.status < 0) throw_system_error(Step::connect, -event.status, tried);
  throw Error(
      fmt::format("{} (status {}); check that the responder still runs and that nothing else answers on its "
                  "RDMA address",
                  tried, event.status));
}

}  // namespace

CmConnector::CmConnector(std::shared_ptr<const Device> device, const GidEntry& gid)
    : device_(std::move(device)), own_(ip_address(*device_, gid)) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel == nullptr) throw Unavailable("open rdma_cm: " + explain(Step::connect, errno));
  channel_ = std::shared_ptr<rdma_event_channel>(own<DestroyChannel>(channel));
  const int flags = fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) < 0)
    throw SystemError(errno, "make the rdma_cm event channel non-blocking");
}

CmConnector::Id CmConnector::own_id(rdma_cm_id* id) const {
  return own<DestroyId>(id, channel_);
}

CmConnector::Id CmConnector::create_id() const {
  rdma_cm_id* id = nullptr;
  check_negative(rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP), Step::connect,
                 "create an rdma_cm identifier");
  return own_id(id);
}

void CmConnector::check_device(const rdma_cm_id& id) const {
  const char* const found = id.verbs != nullptr ? id.verbs->device->name : "no RDMA device";
  if (device_->name() == found && id.port_num == device_->info().port) return;
  throw Unavailable(
      fmt::format("rdma_cm takes {} port {} for address {}, not {} port {}: choose the device whose netdev "
                  "has the address, or connect without rdma_cm",
                  found, id.port_num, own_.ip, device_->name(), device_->info().port));
}

CmConnector::Event CmConnector::next_event(const std::string& waiting_for) const {
  const auto deadline = steady_clock::now() + wait_limit;
  for (;;) {
    throw_if_interrupted();
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_.get(), &event) == 0) return own<AcknowledgeEvent>(event, channel_);
    if (errno != EAGAIN && errno != EINTR) throw_system_error(Step::connect, errno, "take an rdma_cm event");
    if (steady_clock::now() >= deadline)
      throw_system_error(Step::connect, ETIMEDOUT,
                         fmt::format("rdma_cm on {} ({}): {} did not come within {} s", device_->name(),
                                     own_.ip, waiting_for, wait_limit.count() / 1000));
    // Short, because a signal that arrives just before poll does not interrupt it.
    pollfd readable{channel_->fd, POLLIN, 0};
    poll(&readable, 1, 100);
  }
}

void CmConnector::expect(rdma_cm_event_type wanted, const std::string& waiting_for) const {
  const Event event = next_event(waiting_for);
  if (event->event != wanted) throw_unexpected(*event, waiting_for);
}

void CmConnector::make_ready(rdma_cm_id& id, const QueuePair& pair, const QueuePairSettings& settings) {
  const auto attributes_for = [&id](ibv_qp_state state) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = state;
    check_negative(rdma_init_qp_attr(&id, &attr, &mask), Step::connect,
                   "take queue pair attributes from rdma_cm");
    return attr;
  };
  const ibv_qp_attr receive = attributes_for(IBV_QPS_RTR);
  to_ready_to_receive(pair, {.address = receive.ah_attr,
                             .destination_qpn = receive.dest_qp_num,
                             .receive_psn = receive.rq_psn,
                             .path_mtu_bytes = settings.path_mtu_bytes,
                             .max_dest_rd_atomic = settings.max_dest_rd_atomic,
                             .min_rnr_timer = settings.min_rnr_timer});
  const ibv_qp_attr send = attributes_for(IBV_QPS_RTS);
  to_ready_to_send(pair, {.send_psn = send.sq_psn,
                          .max_rd_atomic = settings.max_rd_atomic,
                          .timeout = settings.timeout,
                          .retry_count = settings.retry_count,
                          .rnr_retry = settings.rnr_retry});
  if (receive.ah_attr.is_global != 0) gid_index_ = receive.ah_attr.grh.sgid_index;
}

CmAddress CmConnector::listen(std::uint32_t queue_pairs) {
  listener_ = create_id();
  sockaddr_storage address = socket_address(own_, 0);
  const std::string tried =
      fmt::format("listen for rdma_cm connections on {} ({})", own_.ip, device_->name());
  check_negative(rdma_bind_addr(listener_.get(), reinterpret_cast<sockaddr*>(&address)), Step::connect,
                 tried);
  check_device(*listener_);
  check_negative(rdma_listen(listener_.get(), static_cast<int>(queue_pairs)), Step::connect, tried);
  token_ = random_token();
  return {.ip = own_.ip, .port = ntohs(rdma_get_src_port(listener_.get())), .token = token_};
}

void CmConnector::accept(std::span<const QueuePair> queue_pairs, const QueuePairSettings& settings) {
  const auto count = static_cast<std::uint32_t>(queue_pairs.size());
  for (std::uint32_t established = 0; established < count;) {
    const std::string waiting_for = fmt::format("the remote connection {} of {}", established + 1, count);
    Event event = next_event(waiting_for);
    switch (event->event) {
      case RDMA_CM_EVENT_CONNECT_REQUEST: {
        const rdma_conn_param& request = event->param.conn;
        const auto queue_pair =
            read_greeting({static_cast<const std::uint8_t*>(request.private_data), request.private_data_len},
                          token_, count);
        Id id = own_id(event->id);
        event.reset();
        answer(std::move(id), queue_pair, queue_pairs, settings);
        break;
      }
      case RDMA_CM_EVENT_ESTABLISHED:
        ++established;
        break;
      default:
        throw_unexpected(*event, waiting_for);
    }
  }
}

void CmConnector::answer(Id id, std::optional<std::uint32_t> queue_pair,
                         std::span<const QueuePair> queue_pairs, const QueuePairSettings& settings) {
  if (!queue_pair) {
    std::fprintf(
        stderr,
        "gdrbench: rejected an rdma_cm connection request that does not carry this session's token\n");
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  check_device(*id);
  const QueuePair& pair = queue_pairs[*queue_pair];
  make_ready(*id, pair, settings);
  rdma_conn_param param = connection(pair, settings);
  check_negative(rdma_accept(id.get(), &param), Step::connect,
                 fmt::format("accept the rdma_cm connection of queue pair {}", *queue_pair));
  ids_.push_back(std::move(id));
}

void CmConnector::connect(const CmAddress& remote, std::span<const QueuePair> queue_pairs,
                          const QueuePairSettings& settings) {
  for (std::uint32_t queue_pair = 0; queue_pair < queue_pairs.size(); ++queue_pair)
    connect_queue_pair(remote, queue_pair, queue_pairs[queue_pair], settings);
}

void CmConnector::connect_queue_pair(const CmAddress& remote, std::uint32_t queue_pair, const QueuePair& pair,
                                     const QueuePairSettings& settings) {
  Id id = create_id();
  const std::string to = fmt::format("{} port {}", remote.ip, remote.port);
  sockaddr_storage source = socket_address(own_, 0);
  // A link-local address of the remote end is reached through this end's own interface.
  sockaddr_storage destination = socket_address({.ip = remote.ip, .scope = own_.scope}, remote.port);
  check_negative(rdma_resolve_addr(id.get(), reinterpret_cast<sockaddr*>(&source),
                                   reinterpret_cast<sockaddr*>(&destination), resolve_limit.count()),
                 Step::connect, fmt::format("resolve RDMA address {} from {}", remote.ip, own_.ip));
  expect(RDMA_CM_EVENT_ADDR_RESOLVED, "the resolution of address " + remote.ip);
  check_device(*id);
  check_negative(rdma_resolve_route(id.get(), resolve_limit.count()), Step::connect,
                 "resolve the RDMA route to " + to);
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED, "the route to " + to);

  const CmGreeting greeting = make_greeting(remote.token, queue_pair);
  rdma_conn_param param = connection(pair, settings);
  param.private_data = greeting.data();
  param.private_data_len = greeting.size();
  check_negative(rdma_connect(id.get(), &param), Step::connect,
                 fmt::format("connect queue pair {} to {}", queue_pair, to));
  expect(RDMA_CM_EVENT_CONNECT_RESPONSE, fmt::format("the answer of {} for queue pair {}", to, queue_pair));
  make_ready(*id, pair, settings);
  check_negative(rdma_establish(id.get()), Step::connect,
                 fmt::format("establish queue pair {} to {}", queue_pair, to));
  ids_.push_back(std::move(id));
}

}  // namespace gdrbench::verbs
