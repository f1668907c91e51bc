#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/facts/facts.hpp"

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
bool dmabuf_works(const Answers& answers);

/// Whether a 4 KiB transfer from or to this GPU's memory was tried and passed.
bool transfer_passed(const Answers& answers, const std::string& gpu_address);

/// The first line in which `pattern` occurs; empty where there is none.
std::string line_with(std::string_view text, std::string_view pattern);
/// Whether a list, " one two ", has the word.
bool is_in_list(std::string_view list, std::string_view word);
/// With ASCII letters in lower case.
std::string lower_case(std::string_view text);
/// Whether an ASCII letter or digit.
bool is_word_character(char c);

/// The module that makes RDMA devices of a NIC, "mlx5_ib", where vendor and network driver leave no doubt;
/// else empty.
std::string rdma_module(const topology::PciFunction& nic);

/// Whether no RDMA driver makes a device of what the function's network driver drives: virtio's, and those of
/// plain Ethernet and wireless cards. False in doubt.
bool does_no_rdma(const topology::PciFunction& nic);

/// Whether ib_core gives each network namespace RDMA devices of its own; false where it does not tell.
bool netns_is_exclusive(const topology::Root& root);
inline constexpr const char* netns_mode_file = "sys/module/ib_core/parameters/netns_mode";

/// Whether the machine has an RDMA NIC whose device is in another network namespace.
bool hidden_by_netns(const Facts& facts);

}  // namespace gdrbench::doctor
