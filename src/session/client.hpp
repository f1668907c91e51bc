#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gdrbench/session.hpp"
#include "session/harness.hpp"
#include "wire/socket.hpp"

namespace gdrbench::session {

/// The client's side of a session: the control channel, and what all its cases share. Several clients may be
/// used from as many threads at the same time.
class Client {
 public:
  Client(ConnectOptions options, Harness harness);
  /// Says good-bye and waits a moment for the server to have freed everything.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// One more session of the same visit, with a payload of its own. From any thread.
  std::shared_ptr<Client> join() const;

  const EndInfo& remote() const { return remote_; }
  const ConnectOptions& options() const { return options_; }
  const Harness& harness() const { return harness_; }
  measure::Payload& payload() { return payload_; }
  int control_fd() const { return control_.fd(); }
  std::uint64_t next_id() { return next_id_++; }
  wire::Address address() const { return {options_.host, options_.port}; }
  /// The server as another server may reach it: its numeric address.
  wire::Address numeric_address() const { return {numeric_host_, options_.port}; }
  /// "node-b:7471" and "server node-b:7471", for error texts.
  const std::string& name() const { return name_; }
  const std::string& server_name() const { return server_name_; }

  /// Error texts call the server `who`, which is the name of the rank that it runs, or server_name().
  void send(const nlohmann::json& message, const std::string& who);
  /// The next message, "error" or not; waits for the reply timeout or `patience`. After PeerLost the session
  /// is over.
  nlohmann::json receive(const std::string& who);
  nlohmann::json receive(const std::string& who, std::chrono::milliseconds patience);
  /// Whether there is a message to receive, or the server is gone.
  bool has_message() const;
  /// Whether the server is gone; the session is over then.
  bool lost() const { return lost_; }
  /// For destructors: sends, unless the server is lost; never throws.
  void try_send(const nlohmann::json& message) noexcept;

 private:
  Client(const Client& first, std::string visit);
  nlohmann::json greet();

  ConnectOptions options_;
  Harness harness_;
  std::string name_, server_name_, numeric_host_;
  wire::Socket control_;
  EndInfo remote_;
  std::string visit_;  ///< token of the visit, for sessions that join it
  measure::Payload payload_;
  std::uint64_t next_id_ = 1;
  bool lost_ = false;
};

/// Session::examine().
nlohmann::json examine(Client& client, const nlohmann::json& request);

/// As gdrbench::RankPlace.
struct Place {
  std::shared_ptr<Client> client;  ///< null: this process
  Case c;
};
/// Builds and connects a case at all its ranks; at most one is in this process.
std::unique_ptr<OpenCase> open_case(std::vector<Place> places);
/// Rank 0 in this process, rank 1 at the server.
std::unique_ptr<OpenCase> open_case(std::shared_ptr<Client> client, const Case& initiator_case,
                                    const Case& responder_case);

}  // namespace gdrbench::session
