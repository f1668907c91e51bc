#include "session/key.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench {

std::string make_key() {
  return session::random_hex(16);
}

namespace session {
namespace {

constexpr std::size_t mac_bytes = 32;  // SHA-256

std::string hex(std::span<const unsigned char> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

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

bool same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace session
}  // namespace gdrbench
