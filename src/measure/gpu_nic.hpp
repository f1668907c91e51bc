#pragma once

#include <nlohmann/json.hpp>

#include "gdrbench/case.hpp"

namespace gdrbench::measure {

/// {"gpu": 0, "gpu_nic_distance": "PIX"}: where the case's GPU sits, seen from the RDMA device of that name;
/// a null distance for a software device. Empty for payload in host memory.
nlohmann::json describe_gpu_nic(const Case& c, const std::string& device);

}  // namespace gdrbench::measure
