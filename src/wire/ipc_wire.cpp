#include "wire/ipc_wire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>
#include <utility>

#include "cuda/device.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::wire {

IpcQueuePair::IpcQueuePair(int gpu, std::uint32_t index, const WireLimits& limits)
    : gpu_(gpu), index_(index), limits_(limits), stream_(gpu) {
  // Made here so that the measured loop makes none, unless more marks than this are in flight.
  constexpr int usual_marks = 16;
  for (int i = 0; i < usual_marks; ++i) spare_.emplace_back(gpu);
}

void IpcQueuePair::connect(Socket socket) {
  socket_ = std::move(socket);
}

int IpcQueuePair::post_copy(const SendRequest& request, std::byte* destination, const std::byte* source) {
  if (!has_room()) return ENOMEM;
  stream_.copy(destination, source, request.length, cuda::CopyKind::gpu_to_gpu);
  ++outstanding_;
  ++unmarked_;
  if (request.signaled) mark(request, false);
  return 0;
}

int IpcQueuePair::post_token(const SendRequest& request) {
  if (!has_room()) return ENOMEM;
  ++outstanding_;
  mark(request, true);
  return 0;
}

int IpcQueuePair::post_receive(const ReceiveRequest& request) {
  if (receives_.size() >= limits_.receive_depth) return ENOMEM;
  receives_.push_back(request);
  return 0;
}

void IpcQueuePair::mark(const SendRequest& request, bool token) {
  Send send{
      .id = request.id, .requests = unmarked_ + (token ? 1 : 0), .after = {}, .signaled = request.signaled};
  send.token = token;
  if (unmarked_ > 0) {
    if (spare_.empty()) spare_.emplace_back(gpu_);
    send.after.emplace(std::move(spare_.back()));
    spare_.pop_back();
    stream_.record(*send.after);
    unmarked_ = 0;
  }
  sends_.push_back(std::move(send));
}

void IpcQueuePair::progress(Ring<Completion>& completed) {
  finish_sends(completed);
  // Asking the socket costs a system call, which a ping-pong would feel.
  if (!receives_.empty()) take_tokens(completed);
}

void IpcQueuePair::finish_sends(Ring<Completion>& completed) {
  while (!sends_.empty()) {
    Send& send = sends_.front();
    if (send.after) {
      if (!send.after->done()) return;
      spare_.push_back(std::move(*send.after));
      send.after.reset();
    }
    if (send.token && !send_byte()) return;
    outstanding_ -= send.requests;
    if (send.signaled)
      completed.push_back({.id = send.id, .kind = Completion::Kind::sent, .queue_pair = index_});
    sends_.pop_front();
  }
}

bool IpcQueuePair::send_byte() {
  const char token = 't';
  const ssize_t n = ::send(socket_.fd(), &token, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno != EAGAIN && errno != EINTR) lost(errno, "sending a token");
  return n == 1;
}

// Never more than there are receives for: the others stay in the socket.
void IpcQueuePair::take_tokens(Ring<Completion>& completed) {
  char token = 0;
  while (!receives_.empty()) {
    const ssize_t n = ::recv(socket_.fd(), &token, 1, MSG_DONTWAIT);
    if (n == 0) lost(0, "waiting for a token");
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) lost(errno, "waiting for a token");
      return;
    }
    completed.push_back(
        {.id = receives_.front().id, .kind = Completion::Kind::received, .queue_pair = index_});
    receives_.pop_front();
  }
}

void IpcQueuePair::drain() noexcept {
  try {
    stream_.wait();
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "ending a queue pair of the p2p path: %s\n", fault.what());
  }
}

void IpcQueuePair::lost(int error, const char* tried) const {
  throw PeerLost(fmt::format("p2p path: {}: {}", tried,
                             error == 0 ? "the remote end closed the connection" : errno_name(error)));
}

namespace {

using nlohmann::json;

std::string host_name() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

// The same for all containers of a host, other than its name.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

std::string to_hex(const cuda::IpcHandle& handle) {
  std::string text;
  for (const std::uint8_t byte : handle) text += fmt::format("{:02x}", byte);
  return text;
}

int digit(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto place = digits.find(c);
  if (place == std::string_view::npos) throw Error("the remote IPC handle is not hexadecimal");
  return static_cast<int>(place);
}

cuda::IpcHandle from_hex(const std::string& text) {
  cuda::IpcHandle handle{};
  if (text.size() != 2 * handle.size())
    throw Error(fmt::format("the remote IPC handle has {} digits, not {}", text.size(), 2 * handle.size()));
  for (std::size_t i = 0; i < handle.size(); ++i)
    handle[i] = static_cast<std::uint8_t>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  return handle;
}

}  // namespace

IpcWire::IpcWire(int gpu, const WireLimits& limits) : gpu_(gpu), uuid_(cuda::device_uuid(gpu)) {
  cuda::use_device(gpu);
  for (std::uint32_t i = 0; i < limits.queue_pairs; ++i) queue_pairs_.emplace_back(gpu, i, limits);
}

IpcWire::~IpcWire() {
  for (IpcQueuePair& pair : queue_pairs_) pair.drain();
  imported_.clear();
  say_goodbye();
}

// Memory that another process has mapped must not be freed. The end of the remote end's stream says that it
// has nothing mapped any more; what else it sent is of no use now.
void IpcWire::say_goodbye() noexcept {
  if (queue_pairs_.empty() || queue_pairs_.front().fd() < 0) return;
  const int fd = queue_pairs_.front().fd();
  ::shutdown(fd, SHUT_WR);
  const Deadline deadline = after(std::chrono::seconds(1));
  std::array<char, 256> rest;
  while (std::chrono::steady_clock::now() < deadline) {
    const ssize_t n = ::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return;
    pollfd wanted{fd, POLLIN, 0};
    if (n < 0) ::poll(&wanted, 1, 100);
  }
}

Region IpcWire::register_memory(const MemoryView& view) {
  if (!view.on_gpu)
    throw Unavailable("the p2p path is from GPU to GPU: host memory has none of it; use --memory cuda");
  const auto key = static_cast<std::uint32_t>(exported_.size());
  const Region region{.address = view.address,
                      .length = view.length,
                      .lkey = key,
                      .rkey = key,
                      .registration = Registration::ipc};
  exported_.push_back({.region = region, .memory = cuda::export_memory(gpu_, view.address)});
  return region;
}

json IpcWire::offer() const {
  json regions = json::array();
  for (const Exported& exported : exported_) {
    json region = to_json(exported.region);
    region["handle"] = to_hex(exported.memory.handle);
    region["offset"] = exported.memory.offset;
    region["allocation_bytes"] = exported.memory.allocation_bytes;
    regions.push_back(std::move(region));
  }
  return {
      {"host", host_name()}, {"boot_id", boot_id()}, {"gpu_uuid", uuid_}, {"regions", std::move(regions)}};
}

void IpcWire::connect(const json& remote_offer, std::vector<Socket> sockets) {
  if (sockets.size() != queue_pairs_.size())
    throw Error(
        fmt::format("the p2p path needs {} connections and got {}", queue_pairs_.size(), sockets.size()));
  waited_for_.resize(1);
  for (std::size_t i = 0; i < queue_pairs_.size(); ++i) {
    queue_pairs_[i].connect(std::move(sockets[i]));
    waited_for_.push_back({queue_pairs_[i].fd(), POLLIN, 0});
  }
  if (remote_offer.at("boot_id").get<std::string>() != boot_id())
    throw Unavailable(
        fmt::format("the p2p path works within one node only: this end is on {}, the other on {}",
                    host_name(), remote_offer.at("host").get<std::string>()));
  remote_uuid_ = remote_offer.at("gpu_uuid").get<std::string>();
  const int other = cuda::find_gpu(remote_uuid_);
  if (other < 0)
    throw Unavailable(fmt::format(
        "the remote {} is not visible to this process, which could therefore not copy to it; give "
        "both ends all GPUs (CUDA_VISIBLE_DEVICES, container) and choose by --gpu and --remote-gpu",
        remote_uuid_));
  link_ = cuda::p2p_link(gpu_, other);
  if (!link_->can_access)
    throw Unavailable(
        fmt::format("GPU {} cannot access the memory of GPU {} (cudaDeviceCanAccessPeer): no NVLink, and no "
                    "peer-to-peer over PCIe between them; see nvidia-smi topo -p2p rw",
                    gpu_, other));
  for (const json& region : remote_offer.at("regions")) import(region);
}

void IpcWire::import(const json& offered) {
  const RemoteRegion region = remote_region(offered);
  const cuda::IpcExport exported{.handle = from_hex(offered.at("handle").get<std::string>()),
                                 .offset = offered.at("offset").get<std::uint64_t>(),
                                 .allocation_bytes = offered.at("allocation_bytes").get<std::uint64_t>()};
  if (exported.offset > exported.allocation_bytes ||
      region.length > exported.allocation_bytes - exported.offset)
    throw Error("the remote end offers memory that is larger than its allocation");
  imported_.push_back({.region = region, .memory = cuda::ImportedMemory(gpu_, exported)});
}

// Where the request's range of the remote end's memory is mapped here; null when it is not inside.
std::byte* IpcWire::resolve(const SendRequest& request) const {
  for (const Imported& imported : imported_) {
    const RemoteRegion& region = imported.region;
    if (region.rkey != request.rkey) continue;
    const std::uint64_t offset = request.remote_address - region.address;  // wraps below the region's start
    if (offset > region.length || request.length > region.length - offset) return nullptr;
    return imported.memory.address() + offset;
  }
  return nullptr;
}

int IpcWire::post_send(const SendRequest& request) {
  IpcQueuePair& pair = queue_pairs_[request.queue_pair];
  if (request.op == Op::send && request.length == 0) return pair.post_token(request);
  if (request.op != Op::write && request.op != Op::read) return EOPNOTSUPP;
  std::byte* const remote = resolve(request);
  if (remote == nullptr) return EINVAL;
  return request.op == Op::write ? pair.post_copy(request, remote, request.address)
                                 : pair.post_copy(request, request.address, remote);
}

int IpcWire::post_receive(const ReceiveRequest& request) {
  return queue_pairs_[request.queue_pair].post_receive(request);
}

std::size_t IpcWire::poll(std::span<Completion> out) {
  if (completed_.empty())
    for (IpcQueuePair& pair : queue_pairs_) pair.progress(completed_);
  std::size_t count = 0;
  while (count < out.size() && !completed_.empty()) out[count++] = completed_.take_front();
  return count;
}

void IpcWire::wait(int extra_fd, int timeout_ms) {
  const auto copies = [](const IpcQueuePair& pair) { return pair.is_copying(); };
  if (!completed_.empty() || std::any_of(queue_pairs_.begin(), queue_pairs_.end(), copies)) {
    std::this_thread::yield();
    return;
  }
  waited_for_.front() = {extra_fd, POLLIN, 0};
  ::poll(waited_for_.data(), waited_for_.size(), timeout_ms);
}

IpcProof IpcWire::describe() const {
  IpcProof proof;
  proof.gpu_uuid = uuid_;
  proof.queue_pairs = static_cast<std::uint32_t>(queue_pairs_.size());
  if (!link_) return proof;
  proof.remote_gpu_uuid = remote_uuid_;
  proof.link = link_->kind;
  proof.native_atomics = link_->native_atomics;
  proof.performance_rank = link_->performance_rank;
  return proof;
}

}  // namespace gdrbench::wire
