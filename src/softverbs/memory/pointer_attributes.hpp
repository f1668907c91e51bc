#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/cuda_driver.hpp"

namespace gdrbench::softverbs::cuda {

/// What the driver says of an address; the defaults for one that it does not know.
struct PointerAttributes {
  unsigned memory_type = 0;
  unsigned is_managed = 0;
  Context context = nullptr;  ///< null: memory that belongs to no context, mapped by cuMemMap or from a pool
  int ordinal = 0;            ///< of the device
  DevicePointer range_start = 0;
  std::size_t range_bytes = 0;

  DevicePointer range_end() const { return range_start + range_bytes; }
  bool on_device() const { return memory_type == memory_type_device; }
};

/// The defaults too where the driver was not initialised, or is gone already.
PointerAttributes attributes_of(const Driver& driver, DevicePointer address);

}  // namespace gdrbench::softverbs::cuda
