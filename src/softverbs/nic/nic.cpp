#include "nic/nic.hpp"

#include <pthread.h>

#include <mutex>
#include <utility>
#include <vector>

#include "nic/datagrams.hpp"
#include "nic/engine.hpp"
#include "nic/queue_pair_table.hpp"

namespace gdrbench::softverbs {

namespace {

struct Registry {
  std::mutex lock;
  std::weak_ptr<Nic> current;
  std::shared_ptr<Nic> at_fork;
  std::vector<std::shared_ptr<Nic>> inherited;  ///< from ancestors: their threads are not here to be joined
};

// Never destroyed: threads of the program may still use verbs while it exits.
Registry& registry() {
  static auto& only = *new Registry;
  return only;
}

void before_fork() {
  registry().lock.lock();
  registry().at_fork = registry().current.lock();
  if (registry().at_fork != nullptr) registry().at_fork->engine().loop().before_fork();
}

void after_fork_in_parent() {
  const std::shared_ptr<Nic> nic = std::move(registry().at_fork);
  if (nic != nullptr) nic->engine().loop().after_fork_in_parent();
  registry().lock.unlock();
}

// The engine's thread is not there. The child may open the device anew; what it has inherited stays as it is,
// for ever.
void after_fork_in_child() {
  if (registry().at_fork != nullptr) registry().at_fork->engine().loop().after_fork_in_child();
  if (registry().at_fork != nullptr) registry().inherited.push_back(std::move(registry().at_fork));
  registry().current.reset();
  registry().lock.unlock();
}

}  // namespace

std::shared_ptr<Nic> Nic::acquire() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  const std::lock_guard guard(registry().lock);
  std::shared_ptr<Nic> nic = registry().current.lock();
  if (nic == nullptr) {
    static_cast<void>(shared_memory_allowed());  // throws here, not when a peer is called, if it is misspelt
    nic = std::shared_ptr<Nic>(new Nic);
    registry().current = nic;
  }
  return nic;
}

Nic::Nic()
    : gids_(host_gids()),
      engine_(std::make_unique<Engine>(*this)),
      queue_pairs_(std::make_unique<QueuePairTable>(engine_->slot())),
      datagrams_(std::make_unique<Datagrams>(*this)) {
  engine_->start();
}

Nic::~Nic() {
  engine_->stop();
}

void Nic::wake() {
  engine_->wake();
}

void Nic::take_over() {
  engine_->take_over();
}

}  // namespace gdrbench::softverbs
