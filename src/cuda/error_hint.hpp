#pragma once

#include <string>

namespace gdrbench::cuda {

/// What usually causes an error of the CUDA runtime or driver, what to try, and the check of the doctor that
/// would see it; "" where the name says all. `code` is a cudaError_t or a CUresult: since CUDA 10.1 both
/// number alike what is in this table.
std::string error_hint(int code);

}  // namespace gdrbench::cuda
