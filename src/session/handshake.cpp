#include "session/handshake.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "gdrbench/error.hpp"
#include "gdrbench/version.hpp"
#include "session/frame.hpp"
#include "session/key.hpp"
#include "session/message.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

bool says_true(const json& message, const char* key) {
  const auto member = message.find(key);
  return member != message.end() && member->is_boolean() && member->get<bool>();
}

[[noreturn]] void refuse(wire::Socket& socket, const Error& error, Deadline deadline) {
  send_message(socket, error_message(error), deadline, "refusing");
  throw error;
}

std::string checked_nonce(const json& hello, const std::string& peer) {
  std::string nonce = text_of(hello, "nonce");
  if (!is_nonce(nonce)) throw PeerLost(fmt::format("{}: broke the protocol: its hello has no nonce", peer));
  return nonce;
}

}  // namespace

json make_hello(const std::string& kind) {
  return {{"gdrbench", protocol_version}, {"version", version}, {"commit", commit}, {"kind", kind}};
}

void check_protocol(const json& hello, const std::string& peer) {
  const auto theirs = hello.find("gdrbench");
  if (theirs == hello.end() || !theirs->is_number_integer())
    throw PeerLost(fmt::format("{}: the greeting is not one of gdrbench", peer));
  const auto number = theirs->get<std::int64_t>();
  if (number == protocol_version) return;
  throw Error(
      fmt::format("{} speaks protocol {} (gdrbench {}) and this end protocol {} (gdrbench {}): update {}",
                  peer, number, text_of(hello, "version"), protocol_version, version,
                  number < protocol_version ? "gdrbench on " + peer : "gdrbench on this end"));
}

void greet_server(wire::Socket& socket, const std::string& peer, const std::string& key, Deadline deadline) {
  const std::string nonce = random_hex(nonce_bytes);
  json hello = make_hello("control");
  hello["nonce"] = nonce;
  hello["key"] = !key.empty();
  send_message(socket, hello, deadline, fmt::format("greeting {}", peer));

  const std::string waiting = fmt::format("waiting for the greeting of {}", peer);
  const json answer = receive_message(socket, deadline, waiting);
  if (type_of(answer) == "error") throw_error(answer, peer + ": ");
  check_protocol(answer, peer);
  const bool asks = says_true(answer, "key");
  if (asks && key.empty())
    throw UsageError(
        fmt::format("{}: the server asks for a key: pass --key-file FILE or set GDRBENCH_KEY", peer));
  if (!asks && !key.empty())
    throw UsageError(fmt::format(
        "{}: a key was given, but the server has none (loopback, or --no-key) and cannot prove that it "
        "is the one meant: drop the key, or start the server with it",
        peer));
  if (!asks) return;

  const std::string their_nonce = checked_nonce(answer, peer);
  // The client proves first: strangers who connect to a server learn nothing that they could test keys
  // against.
  send_message(socket, {{"type", "proof"}, {"proof", prove_key(key, Prover::client, nonce, their_nonce)}},
               deadline, fmt::format("proving the key to {}", peer));
  const json reply = receive_message(socket, deadline, fmt::format("waiting for {} to check the key", peer));
  expect_type(reply, "proof", peer + ": ");
  if (!same_proof(text_of(reply, "proof"), prove_key(key, Prover::server, nonce, their_nonce)))
    throw UsageError(fmt::format("{}: the server does not know the key: is this the right server?", peer));
}

void greet_client(wire::Socket& socket, const json& hello, const std::string& key, Deadline deadline) {
  const std::string nonce = random_hex(nonce_bytes);
  json answer = make_hello("control");
  answer["nonce"] = nonce;
  answer["key"] = !key.empty();
  send_message(socket, answer, deadline, "answering the greeting");
  check_protocol(hello, "the client");
  const bool has_key = says_true(hello, "key");
  if (has_key && key.empty())
    throw UsageError("it has a key, but this server has none (loopback, or --no-key)");
  if (!has_key && !key.empty()) throw UsageError("it has no key");
  if (key.empty()) return;

  const std::string their_nonce = checked_nonce(hello, "the client");
  const json proof = receive_message(socket, deadline, "waiting for the proof of the key");
  expect_type(proof, "proof", "the client ");
  if (!same_proof(text_of(proof, "proof"), prove_key(key, Prover::client, their_nonce, nonce)))
    refuse(socket, UsageError("the key is wrong"), deadline);
  send_message(socket, {{"type", "proof"}, {"proof", prove_key(key, Prover::server, their_nonce, nonce)}},
               deadline, "proving the key");
}

wire::Socket open_lane(const wire::Address& server, const std::string& token, std::uint32_t lane,
                       Deadline deadline) {
  wire::Socket socket = wire::connect_tcp(server, deadline);
  const std::string peer = socket.remote_address();
  json hello = make_hello("data");
  hello["token"] = token;
  hello["lane"] = lane;
  send_message(socket, hello, deadline, fmt::format("opening a data connection to {}", peer));
  const json reply = receive_message(socket, deadline, fmt::format("opening a data connection to {}", peer));
  expect_type(reply, "accepted", peer + ": ");
  return socket;
}

void keep_alive(wire::Socket& socket) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.fd(), level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Keepalive rests while sent data is unacknowledged; this limits that time.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000);
}

}  // namespace gdrbench::session
