#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "doctor/facts.hpp"

namespace gdrbench::cli {

/// What is asked of a machine.
struct FactsRequest {
  std::uint64_t size_bytes = 64 << 20;  ///< the GPU memory that is to be registered at once
  bool probes = true;                   ///< whether memory is registered to try it
};

/// Reads this machine, asks its drivers and tries registrations, all in child processes: call it before CUDA,
/// devices and threads are used here.
doctor::Facts facts_of_this_machine(const FactsRequest& request);

/// A folder that --record made. Throws UsageError where it is none.
doctor::Facts facts_of_snapshot(const std::filesystem::path& folder, std::uint64_t size_bytes);

/// What `gdrbench serve` tells of its machine: this program run anew, since a server has threads and may have
/// opened the GPU. For ServeOptions::examine.
nlohmann::json examine_this_machine(const std::string& fabric, const nlohmann::json& request);
nlohmann::json to_json(const FactsRequest& request);

/// What that program prints.
int print_facts_for_peer(const FactsRequest& request);

/// What a server has told. The recorded files lie in a folder of their own until this object goes.
class PeerFacts {
 public:
  PeerFacts(const nlohmann::json& told, std::uint64_t size_bytes);
  ~PeerFacts();
  PeerFacts(const PeerFacts&) = delete;
  PeerFacts& operator=(const PeerFacts&) = delete;
  const doctor::Facts& facts() const { return facts_; }

 private:
  std::filesystem::path folder_;
  doctor::Facts facts_;
};

}  // namespace gdrbench::cli
