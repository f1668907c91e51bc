#pragma once

#include "doctor/check.hpp"

/// Every check, each defined in the file of its name.
namespace gdrbench::doctor {

extern const Check driver_answers_check;
extern const Check peermem_check;
extern const Check probe_registration_check;
extern const Check probe_transfer_check;

}  // namespace gdrbench::doctor
