#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gdrbench/case.hpp"
#include "gdrbench/end_info.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"

/// The two ends of a session: a server answers, a client measures. They talk over one TCP control channel of
/// length-prefixed JSON messages; the payload goes over the wire of each case.
namespace gdrbench {

inline constexpr std::uint16_t default_port = 7471;
/// What a server may take to examine its machine; a client waits a little longer.
inline constexpr std::chrono::seconds examination_limit{90};

struct ServeOptions {
  std::string bind = "127.0.0.1";
  std::uint16_t port = default_port;  ///< 0: any free one
  std::string key;                    ///< empty: no key is asked for
  std::uint64_t max_payload_bytes =
      0;  ///< a client may ask for, over its open cases; 0: half of MemAvailable
  std::uint32_t max_queue_pairs = 1024;          ///< a client may ask for, over its open cases
  std::chrono::milliseconds idle_limit{60'000};  ///< a client that says nothing for so long is dropped
  std::function<void(const std::string&)> log;   ///< one line an event; may be empty
  /// Answers Session::examine() with what this end knows of its machine, within examination_limit; where it
  /// is empty, clients are told that this server cannot.
  std::function<nlohmann::json(const nlohmann::json& request)> examine;
};

/// Answers clients one after another; a second client meanwhile is told who is served.
class Server {
 public:
  explicit Server(ServeOptions options);  ///< binds and listens; throws Error that names the address
  ~Server();
  std::uint16_t port() const;
  /// Serves until a termination signal (returns) or, with `sessions` > 0, until so many clients were served.
  void run(int sessions = 0);
  /// Makes run() return soon, dropping a client being served. From any thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A fresh key for `serve`: 128 random bits, hexadecimal.
std::string make_key();

struct ConnectOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = default_port;
  std::string key;  ///< empty: none
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds reply_timeout{20'000};  ///< longest silence while a reply is due
  std::chrono::milliseconds stall_limit{10'000};    ///< longest time without any progress in a run
};

/// A case that both ends have built and connected. Closed on both ends by the destructor.
class OpenCase {
 public:
  virtual ~OpenCase() = default;
  /// Runs and verifies once. Throws Error when a byte is wrong or the fabric fails, naming the first status
  /// that is not a flush from either end; PeerLost; Interrupted.
  virtual RunResult run(const RunRequest& request) = 0;
  /// By rank: what each recorded as proof of the path.
  virtual const std::vector<PathProof>& proofs() const = 0;
};

/// A client's visit to a server.
class Session {
 public:
  explicit Session(ConnectOptions options);
  ~Session();
  /// What the server says of its machine.
  const EndInfo& remote() const;
  /// `responder_case` is the same case with the fields of the other end (device, gid index, gpu). Throws
  /// Unavailable with the reason and the end that cannot run it.
  std::unique_ptr<OpenCase> open(const Case& initiator_case, const Case& responder_case);
  /// What the responder knows of its machine, for the doctor: any JSON value, not checked. Throws Unavailable
  /// where it cannot tell, Error where that failed, PeerLost.
  nlohmann::json examine(const nlohmann::json& request);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gdrbench
