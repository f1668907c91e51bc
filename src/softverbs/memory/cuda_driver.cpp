#include "memory/cuda_driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <iterator>
#include <optional>
#include <type_traits>

namespace gdrbench::softverbs::cuda {
namespace {

/// Nothing when an entry is missing: a driver from before CUDA 11.
std::optional<Driver> entries_of(void* library) {
  bool complete = true;
  Driver driver{};
  const auto look_up = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name));
    complete = complete && entry != nullptr;
  };
  look_up(driver.pointer_get_attributes, "cuPointerGetAttributes");
  look_up(driver.pointer_get_attribute, "cuPointerGetAttribute");
  look_up(driver.device_get, "cuDeviceGet");
  look_up(driver.primary_context_retain, "cuDevicePrimaryCtxRetain");
  look_up(driver.primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  look_up(driver.context_push, "cuCtxPushCurrent_v2");
  look_up(driver.context_pop, "cuCtxPopCurrent_v2");
  look_up(driver.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  look_up(driver.stream_create, "cuStreamCreate");
  look_up(driver.stream_synchronize, "cuStreamSynchronize");
  look_up(driver.stream_destroy, "cuStreamDestroy_v2");
  look_up(driver.copy_to_device, "cuMemcpyHtoDAsync_v2");
  look_up(driver.copy_to_host, "cuMemcpyDtoHAsync_v2");
  look_up(driver.host_alloc, "cuMemHostAlloc");
  look_up(driver.host_free, "cuMemFreeHost");
  if (!complete) return std::nullopt;
  return driver;
}

}  // namespace

const Driver* loaded_driver() {
  static std::atomic<const Driver*> known = nullptr;
  if (const Driver* driver = known) return driver;
  // Stays open where it is found: its entries are in use from here on.
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  static const std::optional<Driver> driver = entries_of(library);
  known = driver ? &*driver : nullptr;
  return known;
}

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
