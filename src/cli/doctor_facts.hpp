#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/options.hpp"
#include "doctor/facts/facts.hpp"
#include "gdrbench/session.hpp"

/// Where the facts of `gdrbench doctor` come from: this machine, a snapshot, the remote end, transfers; and a
/// recording of them.
namespace gdrbench::cli {

/// What is wanted of a machine.
struct FactsRequest {
  std::uint64_t size_bytes = 64 << 20;  ///< the GPU memory to be registered at once
  bool probes = true;                   ///< whether registrations are tried
};

/// Reads this machine, queries its drivers and tries registrations, all in child processes: call it before
/// CUDA, devices and threads are used here.
doctor::Facts facts_of_this_machine(const FactsRequest& request);

/// A folder that --record made. Throws UsageError for any other.
doctor::Facts facts_of_snapshot(const std::filesystem::path& folder, std::uint64_t size_bytes);

/// What `gdrbench serve` reports of its machine: this program executed anew, since a server has threads and
/// may have opened the GPU. For ServeOptions::examine.
nlohmann::json examine_this_machine(const std::string& fabric, const nlohmann::json& request);
nlohmann::json to_json(const FactsRequest& request);

/// What that program prints.
int print_facts_for_remote(const FactsRequest& request);

/// What a server has reported. The recorded files lie in a folder of their own until this object is
/// destroyed.
class RemoteFacts {
 public:
  RemoteFacts(const nlohmann::json& reported, std::uint64_t size_bytes);
  ~RemoteFacts();
  RemoteFacts(const RemoteFacts&) = delete;
  RemoteFacts& operator=(const RemoteFacts&) = delete;
  const doctor::Facts& facts() const { return facts_; }

 private:
  std::filesystem::path folder_;
  doctor::Facts facts_;
};

/// Writes what was looked at into `folder`, without names, and says so on standard error. SIGINT and SIGTERM
/// end it with Interrupted, before anything is written or once the recording is whole. Throws SystemError,
/// UsageError.
void record_to(const std::string& folder, const doctor::Facts& facts);

struct TransferRequest {
  bool loopback = false;  ///< both ends here; `connect` is ignored then
  ConnectOptions connect;
  benchmarks::MeasureOptions measure;
};

struct TransferResults {
  std::vector<doctor::ProbeResult> probes;
  std::string remote_lost;  ///< how the remote end was lost; empty if it was not
};

/// 4 KiB over tcp, rdma and gdr, by write and read, each way, in child processes. Throws SystemError where no
/// process can be created, Interrupted.
TransferResults probe_transfers(const TransferRequest& request);

}  // namespace gdrbench::cli
