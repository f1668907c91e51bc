#pragma once

#include <cstdint>
#include <string>

/// For the sources of the cuda backend alone. Codes are ints so that no CUDA header is needed here.
namespace gdrbench::cuda {

/// Throw CudaError for a cudaError_t or a CUresult that is not success; `tried` says what was called on what.
/// Without a hint the text has that of error_hint().
void check_runtime(int code, const std::string& tried, const std::string& hint = "");
void check_driver(int code, const std::string& tried, const std::string& hint = "");

/// For destructors: says on stderr what failed, unless the process is ending anyway.
void log_runtime_failure(int code, const char* tried) noexcept;
void log_driver_failure(int code, const char* tried) noexcept;

/// A function of the driver library. Nothing links with libcuda, so that the program starts without a driver.
/// Throws Unavailable when there is no driver or it is too old to have the function.
void* driver_entry_point(const char* symbol);

template <class Function>
Function* driver_function(const char* symbol) {
  return reinterpret_cast<Function*>(driver_entry_point(symbol));
}

/// Bytes in the whole units that hold `length`. Throws Error when that does not fit in 64 bits.
std::uint64_t whole_units(std::uint64_t length, std::uint64_t unit);

/// The CUdevice of a GPU.
int device_handle(int gpu);

/// A boolean device attribute that only the driver interface has; `attribute` is a CUdevice_attribute.
bool device_has(int gpu, int attribute);

}  // namespace gdrbench::cuda
