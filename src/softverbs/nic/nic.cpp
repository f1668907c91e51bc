#include "softverbs/nic/nic.hpp"

#include <mutex>

#include "softverbs/nic/datagrams.hpp"
#include "softverbs/nic/engine.hpp"
#include "softverbs/nic/queue_pair_table.hpp"

namespace gdrbench::softverbs {

std::shared_ptr<Nic> Nic::acquire() {
  // Never destroyed: threads of the program may still use verbs while it exits.
  static auto& lock = *new std::mutex;
  static auto& current = *new std::weak_ptr<Nic>;
  const std::lock_guard guard(lock);
  std::shared_ptr<Nic> nic = current.lock();
  if (nic == nullptr) {
    nic = std::shared_ptr<Nic>(new Nic);
    current = nic;
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
