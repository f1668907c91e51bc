#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrbench/session.hpp"
#include "session/handshake.hpp"

namespace gdrbench::session {
namespace {

const std::string nonce_a(32, 'a');
const std::string nonce_b(32, 'b');

TEST(Key, AFreshKeyHas128BitsInHexadecimalAndIsNotRepeated) {
  EXPECT_THAT(make_key(), ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(make_key().size(), 32);
  EXPECT_NE(make_key(), make_key());
}

// HMAC-SHA256 as Python's hmac module computes it.
TEST(Key, TheProofIsAnHmacSha256) {
  EXPECT_EQ(prove_key("sesame", Prover::client, nonce_a, nonce_b),
            "8c1702eb51794c27470c042750ce50e03a1b77bdaa44d0d054b9d05ed71863af");
}

TEST(Key, TheProofDependsOnKeyRoleAndBothNonces) {
  const std::string proof = prove_key("sesame", Prover::client, nonce_a, nonce_b);
  EXPECT_EQ(proof, prove_key("sesame", Prover::client, nonce_a, nonce_b));
  EXPECT_NE(proof, prove_key("sesamf", Prover::client, nonce_a, nonce_b));
  EXPECT_NE(proof, prove_key("sesame", Prover::server, nonce_a, nonce_b));
  EXPECT_NE(proof, prove_key("sesame", Prover::client, nonce_b, nonce_b));
  EXPECT_NE(proof, prove_key("sesame", Prover::client, nonce_a, nonce_a));
  EXPECT_NE(proof, prove_key("sesame", Prover::client, nonce_b, nonce_a));
}

TEST(Key, OnlyEqualProofsAreTheSame) {
  EXPECT_TRUE(same_secret("00ff", "00ff"));
  EXPECT_FALSE(same_secret("00ff", "00fe"));
  EXPECT_FALSE(same_secret("00ff", "00f"));
  EXPECT_FALSE(same_secret("", "00ff"));
}

TEST(Key, ANonceHas32HexadecimalDigits) {
  EXPECT_TRUE(is_nonce(random_hex(nonce_bytes)));
  EXPECT_FALSE(is_nonce(random_hex(nonce_bytes - 1)));
  EXPECT_FALSE(is_nonce(std::string(32, 'g')));
  EXPECT_FALSE(is_nonce(""));
}

}  // namespace
}  // namespace gdrbench::session
