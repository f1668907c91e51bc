#include "nic/region_table.hpp"

#include <cerrno>
#include <string>
#include <system_error>

namespace gdrbench::softverbs {
namespace {

constexpr unsigned variant_bits = 8;

}  // namespace

std::uint32_t RegionTable::free_index() {
  // New indexes first, until there are enough for a freed one to rest.
  constexpr std::size_t resting = 256;
  if (free_.size() > resting || given_out_ == max_regions) {
    if (free_.empty())
      throw std::system_error(ENOMEM, std::generic_category(),
                              "cannot register memory: " + std::to_string(max_regions) +
                                  " regions, all that softverbs0 has, are registered; deregister some");
    const std::uint32_t index = free_.front();
    free_.pop_front();
    return index;
  }
  const std::uint32_t index = given_out_ + 1;
  if (auto& chunk = chunks_[index / chunk_slots]; chunk.load(std::memory_order_relaxed) == nullptr) {
    owned_chunks_.push_back(std::make_unique<Chunk>());
    chunk.store(owned_chunks_.back().get(), std::memory_order_release);
  }
  return ++given_out_;
}

RegionTable::Slot* RegionTable::slot_at(std::uint32_t index) {
  if (index / chunk_slots >= max_chunks) return nullptr;
  Chunk* const chunk = chunks_[index / chunk_slots].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[index % chunk_slots];
}

void RegionTable::insert(MemoryRegion& region) {
  const std::lock_guard guard(lock_);
  const std::uint32_t index = free_index();
  Slot& slot = *slot_at(index);
  region.lkey = region.rkey = index << variant_bits | slot.variant++;
  slot.region.store(&region, std::memory_order_release);
}

void RegionTable::remove(MemoryRegion& region) {
  const std::uint32_t index = region.lkey >> variant_bits;
  Slot& slot = *slot_at(index);
  // Sequentially consistent, here and in `find`: whoever raised `users` too late to be waited for sees null.
  slot.region.store(nullptr);
  for (int users; (users = slot.users.load()) != 0;) slot.users.wait(users);

  const std::lock_guard guard(lock_);
  free_.push_back(index);
}

RegionAccess RegionTable::local(std::uint32_t lkey, const ibv_pd* domain, std::uint64_t address,
                                std::uint64_t length, int access) {
  return find(lkey, domain, address, length, access);
}

RegionAccess RegionTable::remote(std::uint32_t rkey, const ibv_pd* domain, std::uint64_t address,
                                 std::uint64_t length, int access) {
  return find(rkey, domain, address, length, access);
}

RegionAccess RegionTable::find(std::uint32_t key, const ibv_pd* domain, std::uint64_t address,
                               std::uint64_t length, int access) {
  Slot* const slot = slot_at(key >> variant_bits);
  if (slot == nullptr) return {};
  slot->users.fetch_add(1);
  RegionAccess result{decltype(RegionAccess::hold)(&slot->users)};
  const MemoryRegion* const region = slot->region.load();
  if (region == nullptr || region->lkey != key || region->pd != domain) return {};
  if ((region->access & access) != access) return {};
  if (address < region->iova || length > region->length) return {};
  const std::uint64_t offset = address - region->iova;
  if (offset > region->length - length) return {};
  result.memory = region->memory.get();
  result.address = region->base + offset;
  return result;
}

}  // namespace gdrbench::softverbs
