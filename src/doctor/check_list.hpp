#pragma once

#include "doctor/check.hpp"

/// Every check, each defined in the file of its name.
namespace gdrbench::doctor {

extern const Check peermem_check;

}  // namespace gdrbench::doctor
