#include "memory/pointer_attributes.hpp"

#include <iterator>

namespace gdrbench::softverbs::cuda {

PointerAttributes attributes_of(const Driver& driver, DevicePointer address) {
  PointerAttributes found;
  PointerAttribute names[] = {attribute_memory_type,    attribute_is_managed,  attribute_context,
                              attribute_device_ordinal, attribute_range_start, attribute_range_size};
  void* values[] = {&found.memory_type, &found.is_managed,  &found.context,
                    &found.ordinal,     &found.range_start, &found.range_bytes};
  static_assert(std::size(names) == std::size(values));
  if (driver.pointer_get_attributes(std::size(names), names, values, address) != success) return {};
  return found;
}

}  // namespace gdrbench::softverbs::cuda
