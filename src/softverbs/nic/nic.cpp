#include "nic/nic.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "nic/context.hpp"
#include "nic/datagrams.hpp"
#include "nic/device.hpp"
#include "nic/engine.hpp"
#include "nic/queue_pair.hpp"

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
    static_cast<void>(
        shared_memory_allowed());  // throws here, not when a remote is called, if it is misspelt
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

// Numbers start anywhere, so that a process that takes a dead one's port is not taken for it.
QueuePairTable::QueuePairTable(std::uint32_t slot)
    : slot_(slot), next_index_(std::random_device{}() & index_mask), by_index_(index_mask + 1) {}

std::uint32_t QueuePairTable::insert(QueuePair& queue_pair) {
  const std::unique_lock guard(lock_);
  if (all_.size() >= static_cast<std::size_t>(max_queue_pairs))
    throw std::system_error(ENOMEM, std::generic_category(), "no queue-pair number is left");
  do {
    next_index_ = (next_index_ + 1) & index_mask;
    // Numbers 0 and 1 are for management.
  } while (next_index_ < 2 || by_index_[next_index_] != nullptr);
  by_index_[next_index_] = &queue_pair;
  all_.push_back(&queue_pair);
  return slot_ << queue_pair_index_bits | next_index_;
}

void QueuePairTable::remove(QueuePair& queue_pair) {
  const std::unique_lock guard(lock_);
  by_index_[queue_pair.qp_base.qp_num & index_mask] = nullptr;
  all_.erase(std::find(all_.begin(), all_.end(), &queue_pair));
}

Context::Context(ibv_device& device) : verbs_context{}, nic_(Nic::acquire()) {
  sz = sizeof(verbs_context);
  context.device = &device;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.cmd_fd = -1;  // there is no kernel driver to command
  context.async_fd = events_.descriptor();
  context.num_comp_vectors = 1;
  pthread_mutex_init(&context.mutex, nullptr);
}

Context::~Context() {
  pthread_mutex_destroy(&context.mutex);
}

bool Context::unused() const {
  return domains.unused() && channels.unused() && completion_queues.unused();
}

int check_address(const ibv_ah_attr& attributes, int gids) {
  const bool valid =
      attributes.is_global != 0 && attributes.port_num == 1 && attributes.grh.sgid_index < gids;
  return valid ? 0 : EINVAL;
}

}  // namespace gdrbench::softverbs
