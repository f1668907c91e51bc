#include "wire/ipc_wire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "cuda/device.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::wire {
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
  if (place == std::string_view::npos) throw Error("the peer's IPC handle is not hexadecimal");
  return static_cast<int>(place);
}

cuda::IpcHandle from_hex(const std::string& text) {
  cuda::IpcHandle handle{};
  if (text.size() != 2 * handle.size())
    throw Error(fmt::format("the peer's IPC handle has {} digits, not {}", text.size(), 2 * handle.size()));
  for (std::size_t i = 0; i < handle.size(); ++i)
    handle[i] = static_cast<std::uint8_t>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  return handle;
}

}  // namespace

IpcWire::IpcWire(int gpu, const WireLimits& limits) : gpu_(gpu), uuid_(cuda::device_uuid(gpu)) {
  cuda::use_device(gpu);
  for (std::uint32_t lane = 0; lane < limits.lanes; ++lane) lanes_.emplace_back(gpu, lane, limits);
}

IpcWire::~IpcWire() {
  for (IpcLane& lane : lanes_) lane.drain();
  imported_.clear();
  say_goodbye();
}

// Memory that another process has mapped must not be freed. The end of the peer's stream says that it has
// nothing mapped any more; what else it sent is of no use now.
void IpcWire::say_goodbye() noexcept {
  if (lanes_.empty() || lanes_.front().fd() < 0) return;
  const int fd = lanes_.front().fd();
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
    throw Unavailable("the peer path is from GPU to GPU: host memory has none of it; use --memory cuda");
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

void IpcWire::connect(const json& peer_offer, std::vector<Socket> sockets) {
  if (sockets.size() != lanes_.size())
    throw Error(fmt::format("the peer path needs {} connections and got {}", lanes_.size(), sockets.size()));
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) lanes_[lane].connect(std::move(sockets[lane]));
  if (peer_offer.at("boot_id").get<std::string>() != boot_id())
    throw Unavailable(
        fmt::format("the peer path works within one node only: this end is on {}, the other on {}",
                    host_name(), peer_offer.at("host").get<std::string>()));
  peer_uuid_ = peer_offer.at("gpu_uuid").get<std::string>();
  const int other = cuda::find_gpu(peer_uuid_);
  if (other < 0)
    throw Unavailable(fmt::format(
        "the peer's {} is not visible to this process, which could therefore not copy to it; give "
        "both ends all GPUs (CUDA_VISIBLE_DEVICES, container) and choose by --gpu and --remote-gpu",
        peer_uuid_));
  link_ = cuda::peer_link(gpu_, other);
  if (!link_->can_access)
    throw Unavailable(
        fmt::format("GPU {} cannot access the memory of GPU {} (cudaDeviceCanAccessPeer): no NVLink, and no "
                    "peer-to-peer over PCIe between them; see nvidia-smi topo -p2p rw",
                    gpu_, other));
  for (const json& region : peer_offer.at("regions")) import(region);
}

void IpcWire::import(const json& offered) {
  const RemoteRegion region = remote_region(offered);
  const cuda::IpcExport exported{.handle = from_hex(offered.at("handle").get<std::string>()),
                                 .offset = offered.at("offset").get<std::uint64_t>(),
                                 .allocation_bytes = offered.at("allocation_bytes").get<std::uint64_t>()};
  if (exported.offset > exported.allocation_bytes ||
      region.length > exported.allocation_bytes - exported.offset)
    throw Error("the peer offers memory that is larger than its allocation");
  imported_.push_back({.region = region, .memory = cuda::ImportedMemory(gpu_, exported)});
}

// Where the request's range of the peer's memory is mapped here; null when it is not inside.
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
  IpcLane& lane = lanes_[request.lane];
  if (request.op == Op::send && request.length == 0) return lane.post_token(request);
  if (request.op != Op::write && request.op != Op::read) return EOPNOTSUPP;
  std::byte* const remote = resolve(request);
  if (remote == nullptr) return EINVAL;
  return request.op == Op::write ? lane.post_copy(request, remote, request.address)
                                 : lane.post_copy(request, request.address, remote);
}

int IpcWire::post_receive(const ReceiveRequest& request) {
  return lanes_[request.lane].post_receive(request);
}

std::size_t IpcWire::poll(std::span<Completion> out) {
  if (completed_.empty())
    for (IpcLane& lane : lanes_) lane.progress(completed_);
  const std::size_t count = std::min(out.size(), completed_.size());
  std::copy_n(completed_.begin(), count, out.begin());
  completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void IpcWire::wait(int extra_fd, int timeout_ms) {
  const auto copies = [](const IpcLane& lane) { return lane.is_copying(); };
  if (!completed_.empty() || std::any_of(lanes_.begin(), lanes_.end(), copies)) {
    std::this_thread::yield();
    return;
  }
  std::vector<pollfd> wanted{{extra_fd, POLLIN, 0}};
  for (const IpcLane& lane : lanes_) wanted.push_back({lane.fd(), POLLIN, 0});
  ::poll(wanted.data(), wanted.size(), timeout_ms);
}

IpcProof IpcWire::describe() const {
  IpcProof proof;
  proof.gpu_uuid = uuid_;
  proof.queue_pairs = static_cast<std::uint32_t>(lanes_.size());
  if (!link_) return proof;
  proof.remote_gpu_uuid = peer_uuid_;
  proof.link = link_->kind;
  proof.native_atomics = link_->native_atomics;
  proof.performance_rank = link_->performance_rank;
  return proof;
}

}  // namespace gdrbench::wire
