#pragma once

#include <cstddef>
#include <string>

#include "doctor/report.hpp"

namespace gdrbench::report {

struct DoctorTextOptions {
  std::size_t width = 100;  ///< columns that text is wrapped to
  bool colours = false;     ///< by ANSI escapes, for a terminal
  bool verbose = false;     ///< what is all right, and evidence in full
};

/// The report for people: for each end what it comes to, and then every finding with what was seen, the fix
/// and its risk; what several devices have alike is told once. Nothing in it steers a terminal, whatever was
/// read.
std::string doctor_text(const doctor::Report& report, const DoctorTextOptions& options);

}  // namespace gdrbench::report
