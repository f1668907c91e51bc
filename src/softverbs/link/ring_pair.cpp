#include "link/ring_pair.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

namespace gdrbench::softverbs {

struct RingPair::Memory {
  RingMemory of_dialing, of_accepting;  ///< named for the end that writes
  std::uint64_t cookie;
};

namespace {

// Pages of a file that shrinks raise SIGBUS in whoever has mapped them.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

void* map_memory(std::size_t bytes, const Descriptor& file) {
  const int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  return place == MAP_FAILED ? nullptr : place;
}

Descriptor sealed_file(std::size_t bytes) {
  Descriptor file(memfd_create("gdrbench-softverbs-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), off_t(bytes)) != 0 || fcntl(file.get(), F_ADD_SEALS, seals) != 0) {
    return {};
  }
  return file;
}

}  // namespace

std::unique_ptr<RingPair> RingPair::offer(std::uint64_t cookie) {
  Descriptor file = sealed_file(sizeof(Memory));
  void* const place = map_memory(sizeof(Memory), file);
  if (place == nullptr) throw std::bad_alloc();
  auto* const memory = new (place) Memory;
  memory->cookie = cookie;
  return std::unique_ptr<RingPair>(new RingPair(memory, true, std::move(file)));
}

std::unique_ptr<RingPair> RingPair::map(const Descriptor& offered, std::uint64_t cookie) {
  struct stat status {};
  if (!offered || fstat(offered.get(), &status) != 0 || status.st_size != off_t(sizeof(Memory)))
    return nullptr;
  const int found = fcntl(offered.get(), F_GET_SEALS);
  if (found < 0 || (found & seals) != seals) return nullptr;
  void* const place = map_memory(sizeof(Memory), offered);
  if (place == nullptr) return nullptr;
  auto* const memory = static_cast<Memory*>(place);
  std::unique_ptr<RingPair> pair(new RingPair(memory, false, {}));
  return memory->cookie == cookie ? std::move(pair) : nullptr;
}

std::unique_ptr<RingPair> RingPair::make_private() {
  void* const place = map_memory(sizeof(Memory), {});
  if (place == nullptr) throw std::bad_alloc();
  return std::unique_ptr<RingPair>(new RingPair(new (place) Memory, false, {}));
}

RingPair::~RingPair() {
  munmap(memory_, sizeof(Memory));
}

RingMemory& RingPair::outgoing() {
  return dialing_ ? memory_->of_dialing : memory_->of_accepting;
}
RingMemory& RingPair::incoming() {
  return dialing_ ? memory_->of_accepting : memory_->of_dialing;
}

}  // namespace gdrbench::softverbs
