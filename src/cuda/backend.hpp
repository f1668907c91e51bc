#pragma once

#include <string>
#include <string_view>

/// What gdrbench needs of CUDA, in small owning types. The declarations are the same with and without the
/// CUDA Toolkit; without it, or without a driver or GPU, whatever would need one throws Unavailable with the
/// reason.
namespace gdrbench::cuda {

/// "cuda", or "none" when built without the CUDA Toolkit.
std::string_view backend();

/// Why this process can use no GPU, "no CUDA driver" for one; empty when it can. Found out once.
const std::string& unavailable_reason();

}  // namespace gdrbench::cuda
