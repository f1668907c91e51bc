#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gdrbench::doctor {

/// The lines that speak of GPUs, RDMA devices, their modules, or errors of PCIe and the IOMMU, the last ones
/// where there are many; bytes that are no ASCII become '?'.
std::string lines_that_concern(std::string_view log);

/// Those of this machine's kernel; absent where it may not be read.
std::optional<std::string> read_kernel_log();

}  // namespace gdrbench::doctor
