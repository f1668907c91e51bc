#pragma once

#include "memory/staging_choice.hpp"

namespace gdrbench::memory {

/// Times the copies of the staged paths on the GPU. No kernel of this process may be waiting for the host.
/// Throws Unavailable, CudaError.
StagingCalibration calibrate_staging(int gpu);

}  // namespace gdrbench::memory
