#pragma once

#include "doctor/answers.hpp"

namespace gdrbench::doctor {

/// Puts the error's text into the answer, and what the text says of errno ("EFAULT (Bad address)"),
/// completion status and vendor error ("IBV_WC_LOC_PROT_ERR (4), vendor error 0x51"): errors of the other end
/// come as text.
void set_error(ProbeAnswer& answer, const std::string& text);

}  // namespace gdrbench::doctor
