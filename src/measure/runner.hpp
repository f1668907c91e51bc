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

/// One end of one case, whatever its path and wire: made on both ends from the same Case, connected through
/// offers that the control channel carries, then run any number of times.
class Runner {
 public:
  virtual ~Runner() = default;
  /// What the other end's connect() needs.
  virtual nlohmann::json offer() = 0;
  /// `sockets`: one a queue pair for TCP paths, else empty. Returns when traffic may flow.
  virtual void connect(const nlohmann::json& peer_offer, std::vector<wire::Socket> sockets) = 0;
  /// Fills the pattern, scrubs the receiving side and posts the first receives. Both ends prepare before
  /// either runs.
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
