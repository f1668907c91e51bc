#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "needs_gpu.hpp"
#include "nvidia_smi_matrix.hpp"
#include "topology/machine.hpp"

namespace gdrbench {
namespace {

using topology::PciDistance;

// Empty where the command fails.
std::string output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t got = fread(piece.data(), 1, piece.size(), pipe)) text.append(piece.data(), got);
  return pclose(pipe) == 0 ? text : "";
}

// "GPU0": "0000:1b:00.0", from lines as "0, 00000000:1B:00.0".
std::map<std::string, std::string> gpu_addresses() {
  std::map<std::string, std::string> addresses;
  std::istringstream lines(output_of("nvidia-smi --query-gpu=index,pci.bus_id --format=csv,noheader"));
  for (std::string line; std::getline(lines, line);) {
    const auto comma = line.find(", ");
    if (comma == std::string::npos) continue;
    std::string address = line.substr(comma + 2);
    for (char& letter : address) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (address.starts_with("0000") && address.find(':') == 8) address.erase(0, 4);
    addresses["GPU" + line.substr(0, comma)] = address;
  }
  return addresses;
}

class GpuTopology : public NeedsGpu {
 protected:
  void SetUp() override {
    NeedsGpu::SetUp();
    if (IsSkipped()) return;
    std::string text = output_of("nvidia-smi topo -mp");  // without NVLink, which hides classes
    if (text.empty()) text = output_of("nvidia-smi topo -m");
    matrix_ = parse_nvidia_smi_matrix(text);
    if (matrix_.cells.empty()) GTEST_SKIP() << "nvidia-smi topo shows no matrix here";
    addresses_ = gpu_addresses();
    for (const auto& [column, device] : matrix_.devices)
      if (const std::string address = topology::rdma_pci_address(device); !address.empty())
        addresses_[column] = address;
  }
  NvidiaSmiMatrix matrix_;
  std::map<std::string, std::string> addresses_;  // of columns
};

// The driver guesses where the kernel tells nothing, and says NV# where there is NVLink: neither is compared.
TEST_F(GpuTopology, agrees_with_nvidia_smi_on_every_pair_that_both_know) {
  int compared = 0, hidden = 0;
  for (const auto& [pair, theirs] : matrix_.cells) {
    const auto from = addresses_.find(pair.first), to = addresses_.find(pair.second);
    if (pair.first == pair.second || from == addresses_.end() || to == addresses_.end()) continue;
    if (topology::pci_distance(theirs) == PciDistance::unknown) continue;
    const PciDistance ours = topology::distance_between(from->second, to->second);
    if (ours == PciDistance::unknown) {
      ++hidden;
      continue;
    }
    ++compared;
    EXPECT_EQ(to_string(ours), theirs)
        << pair.first << " (" << from->second << ") to " << pair.second << " (" << to->second << ")";
  }
  RecordProperty("compared", compared);
  RecordProperty("hidden", hidden);
  fmt::print("{} pairs compared with nvidia-smi, {} hidden by the kernel\n", compared, hidden);
  if (compared == 0) GTEST_SKIP() << "no pair whose class both know";
}

TEST_F(GpuTopology, finds_the_gpus_that_the_driver_has) {
  const topology::Machine machine = topology::read_machine(topology::Root());
  for (const auto& [name, address] : gpu_addresses()) {
    const bool found = std::any_of(machine.gpus.begin(), machine.gpus.end(),
                                   [&](const topology::Gpu& gpu) { return gpu.pci.address == address; });
    EXPECT_TRUE(found) << name << " at " << address << " is not among " << machine.gpus.size();
  }
}

}  // namespace
}  // namespace gdrbench
