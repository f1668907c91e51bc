#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/facts.hpp"

/// What kind of machine the facts are of, as several checks need it.
namespace gdrbench::doctor {

/// By the processor's "hypervisor" flag or the names that hypervisors give in DMI.
bool is_virtual_machine(const topology::Root& root);

/// NVIDIA's Grace, by the part number of its cores (Arm Neoverse V2, 0xd4f). GPU and NIC are below different
/// host bridges there, and still near.
bool is_grace(const topology::Root& root);

/// A version, "6.1.0-31-amd64" or "580.95.05".
struct Version {
  int major = 0, minor = 0;
  bool operator<(const Version& other) const {
    return std::pair(major, minor) < std::pair(other.major, other.minor);
  }
};
/// The first two numbers of the text; absent where it does not begin with one.
std::optional<Version> version_in(std::string_view text);

/// The NICs that have an RDMA device: the others matter to no transfer.
std::vector<const topology::Nic*> rdma_nics(const topology::Machine& machine);

/// Whether a peer-memory module or dma-buf could serve any GPU: false where CUDA says of all of them that
/// they do not support GPUDirect RDMA.
bool some_gpu_supports_rdma(const Answers& answers);
/// Whether every GPU exports dma-bufs and every RDMA device takes them, as far as both were asked.
bool dmabuf_serves(const Answers& answers);

/// Whether a 4 KiB transfer from or to this GPU's memory was tried and passed.
bool transfer_passed(const Answers& answers, const std::string& gpu_address);

/// The first line in which `pattern` occurs; empty where there is none.
std::string line_with(std::string_view text, std::string_view pattern);

}  // namespace gdrbench::doctor
