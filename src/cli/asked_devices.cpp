#include "cli/asked_devices.hpp"

#include <fmt/format.h>

#include "gdrbench/error.hpp"

namespace gdrbench::cli {

void require_gpu(const char* flag, std::optional<int> asked, const doctor::Answers& answers) {
  if (!asked || (*asked >= 0 && static_cast<std::size_t>(*asked) < answers.gpus.size())) return;
  throw UsageError(fmt::format("{} {}: CUDA has {} GPU{} here, numbered from 0{}{}; see gdrbench topology",
                               flag, *asked, answers.gpus.size(), answers.gpus.size() == 1 ? "" : "s",
                               answers.cuda_unavailable.empty() ? "" : ": ", answers.cuda_unavailable));
}

void require_device(const char* flag, const std::string& asked, const doctor::Answers& answers) {
  std::string known;
  for (const doctor::RdmaAnswer& device : answers.rdma) {
    if (device.device == asked) return;
    known += (known.empty() ? "" : ", ") + device.device;
  }
  if (asked.empty()) return;
  throw UsageError(fmt::format("{} '{}': there is no such RDMA device; libibverbs has {}", flag, asked,
                               known.empty() ? "none" : known));
}

}  // namespace gdrbench::cli
