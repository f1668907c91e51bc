#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver's binary interface that the NIC uses, declared here so that softverbs builds
/// without the CUDA Toolkit. Names, signatures and numbers are those of the toolkit's cuda.h (13.0); none has
/// changed since it was introduced.
namespace gdrbench::softverbs::cuda {

using Result = int;                   // CUresult
using Device = int;                   // CUdevice
using DevicePointer = std::uint64_t;  // CUdeviceptr
using Context = struct ContextTag*;   // CUcontext
using Stream = struct StreamTag*;     // CUstream

constexpr Result success = 0;                  // CUDA_SUCCESS
constexpr Result error_invalid_value = 1;      // CUDA_ERROR_INVALID_VALUE
constexpr Result error_out_of_memory = 2;      // CUDA_ERROR_OUT_OF_MEMORY
constexpr Result error_deinitialized = 4;      // CUDA_ERROR_DEINITIALIZED
constexpr Result error_invalid_context = 201;  // CUDA_ERROR_INVALID_CONTEXT
constexpr Result error_invalid_handle = 400;   // CUDA_ERROR_INVALID_HANDLE

enum PointerAttribute : int {    // CUpointer_attribute
  attribute_context = 1,         // CUcontext
  attribute_memory_type = 2,     // unsigned: CUmemorytype; 0 for what CUDA does not know
  attribute_is_managed = 8,      // unsigned
  attribute_device_ordinal = 9,  // int
  attribute_range_start = 11,    // CUdeviceptr
  attribute_range_size = 12,     // size_t
  attribute_rdma_capable = 15,   // int: CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
  attribute_mapping_size = 18,   // size_t
  attribute_mapping_base = 19    // CUdeviceptr
};

constexpr unsigned memory_type_host = 1;    // CU_MEMORYTYPE_HOST
constexpr unsigned memory_type_device = 2;  // CU_MEMORYTYPE_DEVICE

constexpr unsigned stream_non_blocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned host_alloc_portable = 1;  // CU_MEMHOSTALLOC_PORTABLE
constexpr int capture_mode_relaxed = 2;      // CU_STREAM_CAPTURE_MODE_RELAXED

struct Driver {
  Result (*pointer_get_attributes)(unsigned count, PointerAttribute* attributes, void** data, DevicePointer);
  Result (*pointer_get_attribute)(void* data, PointerAttribute, DevicePointer);
  Result (*device_get)(Device*, int ordinal);
  Result (*primary_context_retain)(Context*, Device);
  Result (*primary_context_release)(Device);
  Result (*context_push)(Context);
  Result (*context_pop)(Context*);
  Result (*exchange_capture_mode)(int* mode);
  Result (*stream_create)(Stream*, unsigned flags);
  Result (*stream_synchronize)(Stream);
  Result (*stream_destroy)(Stream);
  Result (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes, Stream);
  Result (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes, Stream);
  Result (*host_alloc)(void** memory, std::size_t bytes, unsigned flags);
  Result (*host_free)(void* memory);
};

/// The driver that the program has loaded; null while it has not, in which case no device pointer can exist.
/// Never loads it: a NIC does not either, and the driver takes hundreds of milliseconds and megabytes.
/// Thread-safe.
const Driver* loaded_driver();

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
