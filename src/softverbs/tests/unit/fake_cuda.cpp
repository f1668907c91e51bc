#include "fake_cuda.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "fake_cuda_state.hpp"
#include "memory/cuda_driver.hpp"

namespace gdrbench::softverbs {

namespace {

using namespace cuda;
using fake::Allocation;
using fake::capture_mode;
using fake::context_stack;
using fake::Kind;
using fake::other_context;
using fake::owner_of;
using fake::primary_context;
using fake::state;
using fake::streams;

constexpr Device device_handle = 100 + fake::ordinal;  // no ordinal, so that mixing them up shows

/// What all entries have in common.
template <class Body>
Result call(Body body) {
  const std::lock_guard lock(state().mutex);
  return state().gone ? error_deinitialized : body();
}

Context current_context() {
  return context_stack.empty() ? nullptr : context_stack.back();
}

/// Real drivers refuse these during a capture, which they break.
void endanger_capture() {
  if (capture_mode != capture_mode_relaxed) ++state().counters.captures_endangered;
}

/// Ends the process, as real drivers do, when the stream is no more.
void use(Stream stream) {
  if (std::none_of(streams().begin(), streams().end(), [&](const StreamTag& one) { return &one == stream; }))
    std::abort();
}

Result run_all(Stream stream) {
  for (const auto& copy : std::exchange(stream->pending, {})) copy();
  return success;
}

/// Checks that hold for copies of either direction.
Result check_copy(std::uint64_t device_address, std::size_t bytes, Stream stream) {
  use(stream);
  if (state().copies_until_failure > 0 && --state().copies_until_failure == 0) return error_invalid_value;
  const auto found = state().find(device_address, bytes);
  if (bytes == 0 || found == state().allocations.end() || !found->second.on_device())
    return error_invalid_value;
  const Context owner = owner_of(found->second) != nullptr ? owner_of(found->second) : &primary_context;
  if (current_context() != owner || stream->context != owner) return error_invalid_context;
  return success;
}

Result attribute(void* value, PointerAttribute name, std::uint64_t address) {
  const auto give = [value](auto what) {
    std::memcpy(value, &what, sizeof what);
    return success;
  };
  if (const fake::Pinned* pinned = state().find_pinned(address);
      pinned != nullptr && name == attribute_context)
    return give(pinned->context);
  const auto found = state().find(address, 1);
  if (found == state().allocations.end()) return error_invalid_value;
  const auto& [start, allocation] = *found;
  std::uint64_t mapping = start;
  std::size_t mapping_bytes =
      (allocation.bytes + 4095) / 4096 * 4096;  // of cudaMalloc too: more than its range
  if (allocation.in_segments()) {
    const std::uint64_t segment = (address - start) / fake::segment_bytes * fake::segment_bytes;
    if (allocation.kind == Kind::vmm_with_hole && segment == fake::segment_bytes) return error_invalid_value;
    mapping = start + segment;
    mapping_bytes = std::min(fake::segment_bytes, allocation.bytes - segment);
  }
  const bool range_is_mapping = state().old && allocation.in_segments();
  switch (name) {
    case attribute_context:
      return give(owner_of(allocation));
    case attribute_memory_type:
      return give(allocation.kind == Kind::host ? memory_type_host : memory_type_device);
    case attribute_is_managed:
      return give(allocation.kind == Kind::managed ? 1U : 0U);
    case attribute_device_ordinal:
      return give(fake::ordinal);
    case attribute_range_start:
      return give(range_is_mapping ? mapping : start);
    case attribute_range_size:
      return give(range_is_mapping ? mapping_bytes : allocation.bytes);
    case attribute_mapping_base:
      return state().old ? error_invalid_value : give(mapping);
    case attribute_mapping_size:
      return state().old ? error_invalid_value : give(mapping_bytes);
    case attribute_rdma_capable:
      // Managed memory too: its pages could be registered, and be in the wrong place.
      return give(allocation.kind != Kind::vmm_not_rdma_capable && allocation.kind != Kind::host ? 1 : 0);
  }
  return error_invalid_value;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's own names

FAKE_CUDA_ENTRY Result cuPointerGetAttribute(void* value, PointerAttribute name, DevicePointer address) {
  return call([&] { return attribute(value, name, address); });
}

// Unlike the call for one attribute this one succeeds for any address, leaving null values.
FAKE_CUDA_ENTRY Result cuPointerGetAttributes(unsigned count, PointerAttribute* names, void** values,
                                              DevicePointer address) {
  return call([&] {
    for (unsigned i = 0; i < count; ++i) attribute(values[i], names[i], address);
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuDeviceGet(Device* device, int ordinal) {
  return call([&] {
    *device = device_handle;
    return ordinal == fake::ordinal ? success : error_invalid_value;
  });
}

FAKE_CUDA_ENTRY Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  return call([&] {
    if (device != device_handle) return error_invalid_value;
    ++state().counters.primary_retained;
    *context = &primary_context;
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuDevicePrimaryCtxRelease_v2(Device device) {
  return call([&] {
    if (device != device_handle) return error_invalid_value;
    ++state().counters.primary_released;
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuCtxPushCurrent_v2(Context context) {
  return call([&] {
    if (context == nullptr) return error_invalid_context;
    if (context == &other_context && state().other_context_gone) std::abort();
    context_stack.push_back(context);
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuCtxPopCurrent_v2(Context* context) {
  return call([&] {
    if (context_stack.empty()) return error_invalid_context;
    *context = context_stack.back();
    context_stack.pop_back();
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return success;
}

FAKE_CUDA_ENTRY Result cuStreamCreate(Stream* stream, unsigned flags) {
  return call([&] {
    if (current_context() == nullptr) return error_invalid_context;
    if (flags != stream_non_blocking) return error_invalid_value;  // would wait for the program's null stream
    endanger_capture();
    ++state().counters.streams_made;
    streams().push_back({current_context(), {}});
    *stream = &streams().back();
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuStreamSynchronize(Stream stream) {
  return call([&] {
    use(stream);
    if (stream->context != current_context()) return error_invalid_handle;
    endanger_capture();
    return run_all(stream);
  });
}

FAKE_CUDA_ENTRY Result cuStreamDestroy_v2(Stream stream) {
  return call([&] {
    use(stream);
    if (stream->context != current_context()) return error_invalid_handle;
    ++state().counters.streams_destroyed;
    run_all(stream);
    streams().remove_if([stream](const StreamTag& other) { return &other == stream; });
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes,
                                            Stream stream) {
  return call([&] {
    if (const Result error = check_copy(to, bytes, stream); error != success) return error;
    ++state().counters.copies_to_device;
    stream->pending.emplace_back([=] {
      std::memcpy(state().inside(to), from, bytes);
      state().counters.last_written_address = to;
      state().counters.last_written_bytes = bytes;
    });
    return state().is_pinned(from) ? success : run_all(stream);
  });
}

FAKE_CUDA_ENTRY Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
  return call([&] {
    if (const Result error = check_copy(from, bytes, stream); error != success) return error;
    ++state().counters.copies_to_host;
    stream->pending.emplace_back([=] { std::memcpy(to, state().inside(from), bytes); });
    return state().is_pinned(to) ? success : run_all(stream);
  });
}

FAKE_CUDA_ENTRY Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return call([&] {
    if (current_context() == nullptr) return error_invalid_context;
    if (state().refuse_pinned) return error_out_of_memory;
    endanger_capture();
    *memory = std::malloc(bytes);
    state().pinned[reinterpret_cast<std::uint64_t>(*memory)] = {bytes, current_context()};
    ++state().counters.pinned_made;
    return success;
  });
}

FAKE_CUDA_ENTRY Result cuMemFreeHost(void* memory) {
  return call([&] {
    if (state().pinned.erase(reinterpret_cast<std::uint64_t>(memory)) == 0) return error_invalid_value;
    std::free(memory);
    ++state().counters.pinned_freed;
    return success;
  });
}

// NOLINTEND(readability-identifier-naming)

}  // namespace gdrbench::softverbs
