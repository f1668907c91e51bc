#pragma once

#include <chrono>
#include <vector>

#include "doctor/facts/facts.hpp"

namespace gdrbench::doctor {

/// Registers 64 KiB of host memory with each device that could be opened, and of each GPU's memory as dma-buf
/// and as peer memory, in child processes. `timeout` is for each. Throws SystemError where no process can be
/// created, Interrupted.
std::vector<ProbeResult> probe_registrations(const Answers& answers, std::chrono::milliseconds timeout);

/// Sets the error's text, and the errno ("EFAULT (Bad address)"), completion status and vendor error
/// ("IBV_WC_LOC_PROT_ERR (4), vendor error 0x51") that it names: errors of the remote end arrive as text.
void set_error(ProbeResult& result, const std::string& text);

}  // namespace gdrbench::doctor
