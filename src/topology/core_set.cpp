#include "topology/core_set.hpp"

#include <cstdlib>

namespace gdrbench::topology {

CoreBitmap core_bitmap(const std::string& list) {
  CoreBitmap set(hwloc_bitmap_alloc());
  if (list.empty() || hwloc_bitmap_list_sscanf(set.get(), list.c_str()) != 0 ||
      hwloc_bitmap_weight(set.get()) < 0)
    hwloc_bitmap_zero(set.get());
  return set;
}

std::string core_list(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (set == nullptr || hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  std::string list = text;
  std::free(text);
  return list;
}

std::string common_cores(const std::string& one, const std::string& other) {
  const CoreBitmap set = core_bitmap(one);
  hwloc_bitmap_and(set.get(), set.get(), core_bitmap(other).get());
  return core_list(set.get());
}

int count_cores(const std::string& list) {
  return hwloc_bitmap_weight(core_bitmap(list).get());
}

std::string cores_next_to_both(const std::string& first, const std::string& second) {
  if (std::string both = common_cores(first, second); !both.empty()) return both;
  return first.empty() ? second : first;
}

}  // namespace gdrbench::topology
