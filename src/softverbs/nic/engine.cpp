#include "nic/engine.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "nic/datagrams.hpp"
#include "nic/nic.hpp"
#include "nic/queue_pair.hpp"

namespace gdrbench::softverbs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long polling threads are left alone: what a message may wait at most when they stop.
constexpr auto stand_back = milliseconds(1);
// Half-open connections are looked at this often.
constexpr auto max_sleep = seconds(1);

}  // namespace

Engine::Engine(Nic& of_nic) : Engine(of_nic, claim_slot()) {}

Engine::Engine(Nic& of_nic, ListeningSlot listening)
    : nic_(of_nic),
      slot_(listening.slot),
      dialer_(loop_),
      listener_(loop_, std::move(listening.socket),
                [this](ConnectionRequest request) { on_connection_request(std::move(request)); }) {}

Engine::~Engine() {
  stop();
}

void Engine::start() {
  // Signals are the program's: its handlers run on its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "softverbs");
}

void Engine::stop() {
  stop_ = true;
  loop_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void Engine::wake() {
  loop_.interrupt();
}

void Engine::run() {
  while (!stop_) {
    const Clock::time_point now = Clock::now();
    dialer_.expire(now);
    listener_.expire(now);
    const Pass done = pass();
    const std::size_t polled = polled_.exchange(0, std::memory_order_relaxed);
    const Clock::time_point wake_at = std::min(done.wake_at, now + max_sleep);
    sleeps_until_ = wake_at;
    if (done.more) {
      loop_.wait(now);
    } else if (done.frames == 0 && polled > 0 && !asked_) {
      disarm();
      standing_back_ = true;
      if (!asked_) loop_.nap(std::min(wake_at, now + stand_back));
      standing_back_ = false;
      loop_.wait(now);
    } else {
      asked_ = false;
      loop_.wait(arm() ? now : wake_at);
    }
    sleeps_until_ = awake;
  }
}

Engine::Pass Engine::pass() {
  Pass all;
  all.frames = nic_.datagrams().receive();
  nic_.queue_pairs().visit_all([&](QueuePair& queue_pair) {
    const StepResult one = queue_pair.run();
    all.frames += one.frames;
    all.more |= one.more;
    all.wake_at = std::min(all.wake_at, one.wake_at);
  });
  return all;
}

bool Engine::arm() {
  bool came = nic_.datagrams().arm();
  nic_.queue_pairs().visit_all([&](QueuePair& queue_pair) { came |= queue_pair.arm(); });
  return came;
}

void Engine::disarm() {
  nic_.datagrams().disarm();
  nic_.queue_pairs().visit_all([](QueuePair& queue_pair) { queue_pair.disarm(); });
}

void Engine::on_connection_request(ConnectionRequest request) {
  if (request.hello().kind == LinkKind::datagrams)
    return nic_.datagrams().on_connection_request(std::move(request));
  const std::uint32_t qpn = request.hello().destination_qpn;
  const bool found = nic_.queue_pairs().visit(
      qpn, [&](QueuePair& queue_pair) { queue_pair.on_connection_request(std::move(request)); });
  if (!found) request.refuse(Refusal::no_queue_pair);
}

}  // namespace gdrbench::softverbs
