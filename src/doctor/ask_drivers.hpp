#pragma once

#include <string>
#include <vector>

#include "doctor/answers.hpp"

/// What drivers say. Each may crash or hang: for a process of its own.
namespace gdrbench::doctor {

/// The GPUs, or why there are none.
Answers ask_cuda();

/// Names of the devices that libibverbs lists.
std::vector<std::string> ask_verbs_devices();
/// One of them; throws Error when it is gone.
RdmaAnswer ask_verbs(const std::string& device);

}  // namespace gdrbench::doctor
