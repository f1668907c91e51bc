#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"
#include "gdrbench/memory.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"
#include "measure/payload.hpp"
#include "measure/watch.hpp"
#include "wire/socket.hpp"

namespace gdrbench::measure {

enum class Role { initiator, responder };

/// What connect() gets of another rank.
struct RankLink {
  nlohmann::json offer;                   ///< of that rank's runner
  std::vector<wire::Socket> connections;  ///< one a queue pair for TCP paths, else empty
};

/// One rank of a case, whatever its path and wire: made at every rank from the same Case, connected through
/// offers that the control channel carries, then run any number of times.
class Runner {
 public:
  virtual ~Runner() = default;
  /// What connect() needs at the other ranks.
  virtual nlohmann::json offer() = 0;
  /// `ranks`: by rank, with this one. Returns when traffic may flow.
  virtual void connect(std::vector<RankLink> ranks) = 0;
  /// Fills the pattern, scrubs the receiving side and posts the first receives. All ranks prepare before any
  /// runs.
  virtual void prepare(const RunRequest& request) = 0;
  /// The timed loop. The responder's returns when the initiator's loop is over (told through `watch`).
  virtual RankResult run(Watch& watch) = 0;
  /// Checks the bytes received in the last run; the text of the first wrong byte, empty if there is none.
  virtual std::string verify() = 0;
  /// Registration, device, GID, MTU, staging, cores: the proof of the path.
  virtual PathProof describe() = 0;
};

/// Throws Unavailable when this end cannot run the case, with the reason. `payload` is grown when too small.
std::unique_ptr<Runner> make_runner(const Case& c, Role role, Payload& payload);

}  // namespace gdrbench::measure
