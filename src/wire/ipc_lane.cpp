#include "wire/ipc_lane.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "gdrbench/error.hpp"

namespace gdrbench::wire {

IpcLane::IpcLane(int gpu, std::uint32_t index, const WireLimits& limits)
    : gpu_(gpu), index_(index), limits_(limits), stream_(gpu) {
  // Made here so that the measured loop makes none, unless more marks than this are in flight.
  constexpr int usual_marks = 16;
  for (int i = 0; i < usual_marks; ++i) spare_.emplace_back(gpu);
}

void IpcLane::connect(Socket socket) {
  socket_ = std::move(socket);
}

int IpcLane::post_copy(const SendRequest& request, std::byte* destination, const std::byte* source) {
  if (!has_room()) return ENOMEM;
  stream_.copy(destination, source, request.length, cuda::CopyKind::gpu_to_gpu);
  ++outstanding_;
  ++unmarked_;
  if (request.signaled) mark(request, false);
  return 0;
}

int IpcLane::post_token(const SendRequest& request) {
  if (!has_room()) return ENOMEM;
  ++outstanding_;
  mark(request, true);
  return 0;
}

int IpcLane::post_receive(const ReceiveRequest& request) {
  if (receives_.size() >= limits_.receive_depth) return ENOMEM;
  receives_.push_back(request);
  return 0;
}

void IpcLane::mark(const SendRequest& request, bool token) {
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

void IpcLane::progress(std::deque<Completion>& completed) {
  finish_sends(completed);
  // Asking the socket costs a system call, which a ping-pong would feel.
  if (!receives_.empty()) take_tokens(completed);
}

void IpcLane::finish_sends(std::deque<Completion>& completed) {
  while (!sends_.empty()) {
    Send& send = sends_.front();
    if (send.after) {
      if (!send.after->done()) return;
      spare_.push_back(std::move(*send.after));
      send.after.reset();
    }
    if (send.token && !send_byte()) return;
    outstanding_ -= send.requests;
    if (send.signaled) completed.push_back({.id = send.id, .kind = Completion::Kind::sent, .lane = index_});
    sends_.pop_front();
  }
}

bool IpcLane::send_byte() {
  const char token = 't';
  const ssize_t n = ::send(socket_.fd(), &token, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno != EAGAIN && errno != EINTR) lost(errno, "sending a token");
  return n == 1;
}

// Never more than there are receives for: the others stay in the socket.
void IpcLane::take_tokens(std::deque<Completion>& completed) {
  char token = 0;
  while (!receives_.empty()) {
    const ssize_t n = ::recv(socket_.fd(), &token, 1, MSG_DONTWAIT);
    if (n == 0) lost(0, "waiting for a token");
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) lost(errno, "waiting for a token");
      return;
    }
    completed.push_back({.id = receives_.front().id, .kind = Completion::Kind::received, .lane = index_});
    receives_.pop_front();
  }
}

void IpcLane::drain() noexcept {
  try {
    stream_.wait();
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "ending a lane of the peer path: %s\n", fault.what());
  }
}

void IpcLane::lost(int error, const char* tried) const {
  throw PeerLost(fmt::format("peer path: {}: {}", tried,
                             error == 0 ? "the peer closed the connection" : errno_name(error)));
}

}  // namespace gdrbench::wire
