#include "session/handshake.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"
#include "gdrbench/version.hpp"
#include "session/channel.hpp"

namespace gdrbench {

std::string make_key() {
  return session::random_hex(16);
}

}  // namespace gdrbench

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t mac_bytes = 32;  // SHA-256

std::string hex(std::span<const unsigned char> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool says_true(const json& message, const char* key) {
  const auto member = message.find(key);
  return member != message.end() && member->is_boolean() && member->get<bool>();
}

[[noreturn]] void refuse(wire::Socket& socket, const Error& error, Deadline deadline) {
  send_message(socket, error_message(error), deadline, "refusing");
  throw error;
}

std::string checked_nonce(const json& hello, const std::string& remote) {
  std::string nonce = text_of(hello, "nonce");
  if (!is_nonce(nonce)) throw PeerLost(fmt::format("{}: protocol violation: its hello has no nonce", remote));
  return nonce;
}

}  // namespace

json make_hello(const std::string& kind) {
  return {{"gdrbench", protocol_version}, {"version", version}, {"commit", commit}, {"kind", kind}};
}

void check_protocol(const json& hello, const std::string& remote) {
  const auto theirs = hello.find("gdrbench");
  if (theirs == hello.end() || !theirs->is_number_integer())
    throw PeerLost(fmt::format("{}: the greeting is not one of gdrbench", remote));
  const auto number = theirs->get<std::int64_t>();
  if (number == protocol_version) return;
  throw Error(
      fmt::format("{} speaks protocol {} (gdrbench {}) and this end protocol {} (gdrbench {}): update {}",
                  remote, number, text_of(hello, "version"), protocol_version, version,
                  number < protocol_version ? "gdrbench on " + remote : "gdrbench on this end"));
}

void greet_server(wire::Socket& socket, const std::string& server, const std::string& key,
                  const std::string& visit, Deadline deadline) {
  const std::string nonce = random_hex(nonce_bytes);
  json hello = make_hello("control");
  hello["nonce"] = nonce;
  hello["key"] = !key.empty();
  if (!visit.empty()) hello["visit"] = visit;
  send_message(socket, hello, deadline, fmt::format("greeting {}", server));

  const std::string waiting = fmt::format("waiting for the greeting of {}", server);
  const json answer = receive_message(socket, deadline, waiting);
  if (type_of(answer) == "error") throw_error(answer, server + ": ");
  check_protocol(answer, server);
  const bool asks = says_true(answer, "key");
  if (asks && key.empty())
    throw UsageError(
        fmt::format("{}: the server asks for a key: pass --key-file FILE or set GDRBENCH_KEY", server));
  if (!asks && !key.empty())
    throw UsageError(fmt::format(
        "{}: a key was given, but the server has none (loopback, or --no-key) and cannot prove that it "
        "is the one meant: drop the key, or start the server with it",
        server));
  if (!asks) return;

  const std::string their_nonce = checked_nonce(answer, server);
  // The client proves first: who connects to a server without the key learns nothing to test keys against.
  send_message(socket, {{"type", "proof"}, {"proof", prove_key(key, Prover::client, nonce, their_nonce)}},
               deadline, fmt::format("proving the key to {}", server));
  const json reply =
      receive_message(socket, deadline, fmt::format("waiting for {} to check the key", server));
  expect_type(reply, "proof", server + ": ");
  if (!same_secret(text_of(reply, "proof"), prove_key(key, Prover::server, nonce, their_nonce)))
    throw UsageError(fmt::format("{}: the server does not know the key: is this the right server?", server));
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
  if (!same_secret(text_of(proof, "proof"), prove_key(key, Prover::client, their_nonce, nonce)))
    refuse(socket, UsageError("the key is wrong"), deadline);
  send_message(socket, {{"type", "proof"}, {"proof", prove_key(key, Prover::server, their_nonce, nonce)}},
               deadline, "proving the key");
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

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (RAND_bytes(random.data(), static_cast<int>(bytes)) != 1)
    throw Error(
        "drawing random bytes (RAND_bytes): OpenSSL's generator failed; is the system's entropy source "
        "there?");
  return hex(random);
}

bool is_nonce(std::string_view text) {
  return text.size() == 2 * nonce_bytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string prove_key(std::string_view key, Prover prover, std::string_view client_nonce,
                      std::string_view server_nonce) {
  const std::string_view role = prover == Prover::client ? "client" : "server";
  const std::string said = fmt::format("gdrbench key check/{}/{}/{}", role, client_nonce, server_nonce);
  std::array<unsigned char, mac_bytes> mac{};
  std::size_t length = 0;
  if (EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key.data(), key.size(),
                reinterpret_cast<const unsigned char*>(said.data()), said.size(), mac.data(), mac.size(),
                &length) == nullptr)
    throw Error("checking the key (HMAC-SHA256): refused by OpenSSL; does its configuration forbid SHA-256?");
  return hex(std::span(mac).first(length));
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace gdrbench::session
