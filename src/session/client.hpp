#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "gdrbench/session.hpp"
#include "session/harness.hpp"
#include "wire/socket.hpp"

namespace gdrbench::session {

/// The client's side of a session: the control channel, and what all its cases share.
class Client {
 public:
  Client(ConnectOptions options, Harness harness);
  /// Says good-bye and waits a moment for the server to have freed everything.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const EndInfo& remote() const { return remote_; }
  const ConnectOptions& options() const { return options_; }
  const Harness& harness() const { return harness_; }
  measure::Payload& payload() { return payload_; }
  int control_fd() const { return control_.fd(); }
  std::uint64_t next_id() { return next_id_++; }
  wire::Address server() const { return {options_.host, options_.port}; }
  /// "responder node-b:7471", for error texts.
  const std::string& responder() const { return responder_; }

  void send(const nlohmann::json& message);
  /// The next message, "error" or not; waits for the reply timeout or `patience`. After PeerLost the session
  /// is over.
  nlohmann::json receive();
  nlohmann::json receive(std::chrono::milliseconds patience);
  /// Whether the server has said something, or is gone, within so long.
  bool has_answer(std::chrono::milliseconds patience);
  /// Whether the server is gone; the session is over then.
  bool lost() const { return lost_; }
  /// For destructors: sends, unless the server is lost; never throws.
  void try_send(const nlohmann::json& message) noexcept;

 private:
  ConnectOptions options_;
  Harness harness_;
  std::string responder_;
  wire::Socket control_;
  EndInfo remote_;
  measure::Payload payload_;
  std::uint64_t next_id_ = 1;
  bool lost_ = false;
};

/// Builds and connects a case on both ends.
std::unique_ptr<OpenCase> open_case(std::shared_ptr<Client> client, const Case& initiator_case,
                                    const Case& responder_case);

}  // namespace gdrbench::session
