#include "base/sha256.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tq {
namespace {

std::string Hex(Sha256 hash) {
  std::string out;
  for (const uint8_t byte : hash.Finish()) out += fmt::format("{:02x}", byte);
  return out;
}

std::string HexOf(std::string_view text) {
  Sha256 hash;
  hash.Add(text);
  return Hex(hash);
}

// The examples of FIPS 180-4.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(HexOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexOf(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAreTheWhole) {
  const std::string text(200, 'x');
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.Add(std::string_view(text).substr(0, cut));
    hash.Add(std::string_view(text).substr(cut));
    ASSERT_EQ(Hex(hash), HexOf(text)) << cut;
  }
}

}  // namespace
}  // namespace tq
