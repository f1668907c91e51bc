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

/// A server answers on its node, a client directs. They talk over a TCP control channel of length-prefixed
/// JSON messages for each session; the payload goes over the wire of each case, between the ranks of that
/// case: at servers, and one in the client's process.
namespace gdrbench {

namespace session {
class Client;
}

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

/// Answers clients one after another, each with one session or several; another client meanwhile is told who
/// is served.
class Server {
 public:
  explicit Server(ServeOptions options);  ///< binds and listens; throws Error that names the address
  ~Server();
  std::uint16_t port() const;
  /// Serves until a termination signal (returns) or, with `visits` > 0, until so many clients were served.
  /// Each session is served in a thread of its own.
  void run(int visits = 0);
  /// Makes run() return soon, dropping a client being served with all its sessions. From any thread.
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

/// A case that all its ranks have built and connected. Closed at all of them by the destructor.
class OpenCase {
 public:
  virtual ~OpenCase() = default;
  /// Runs and verifies once. Throws Error when a byte is wrong or the fabric fails, naming the ranks with a
  /// status that is not a flush; PeerLost; Interrupted; OutOfTime. Cases of different sessions may run at the
  /// same time, in a thread each; their CPU costs then are those of all together.
  virtual RunResult run(const RunRequest& request) = 0;
  /// By rank: what each recorded as proof of the path.
  virtual const std::vector<PathProof>& proofs() const = 0;
};

struct RankPlace;

/// A client's session with a server, in which one case runs at a time.
class Session {
 public:
  explicit Session(ConnectOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();
  /// One more session with the same server, for cases that run beside those of this one, from another thread;
  /// a server takes 64 of a client. Either may end first. Throws as the constructor.
  Session join() const;
  /// What the server says of its machine.
  const EndInfo& remote() const;
  /// Opens a case between this process, as rank 0, and the server. As open_case() below.
  std::unique_ptr<OpenCase> open(const Case& initiator_case, const Case& responder_case);
  /// What the server knows of its machine, for the doctor: any JSON value, not checked. Throws Unavailable
  /// where it cannot tell, Error where that failed, PeerLost.
  nlohmann::json examine(const nlohmann::json& request);

 private:
  friend std::unique_ptr<OpenCase> open_case(std::vector<RankPlace> ranks);
  explicit Session(std::shared_ptr<session::Client> client);

  std::shared_ptr<session::Client> client_;
};

/// Where a rank runs, and the case with the fields of that rank (device, gid index, gpu).
struct RankPlace {
  Session* server = nullptr;  ///< null: in this process, as one rank of a case may
  Case c;
};

/// Opens a case over as many ranks as its suite has, rank 0 first, which measures. Where this process is none
/// of them, it only directs: two servers can measure between themselves, over data connections that one of
/// them opens to the other's port. Each rank needs a session of its own. Throws Unavailable with the reason
/// and the ranks that cannot run it, Error, PeerLost.
std::unique_ptr<OpenCase> open_case(std::vector<RankPlace> ranks);

}  // namespace gdrbench
