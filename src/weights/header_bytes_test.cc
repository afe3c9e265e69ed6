#include "weights/header_bytes.h"

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/safetensors.h"

namespace tq {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

TEST(HeaderBytes, SafetensorsSayTheirLength) {
  std::string file(8, '\0');
  const uint64_t length = 100'000;
  std::memcpy(file.data(), &length, 8);
  EXPECT_EQ(*HeaderBytes("m.safetensors", Bytes(file), 1 << 20), 100'008);
  EXPECT_EQ(*HeaderBytes("m.safetensors", {}, 1 << 20), 8);
  for (const uint64_t bad : {uint64_t{1} << 20, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::memcpy(file.data(), &bad, 8);
    EXPECT_FALSE(HeaderBytes("m.safetensors", Bytes(file), 1 << 20).ok()) << bad;
  }
  EXPECT_FALSE(HeaderBytes("m.safetensors", {}, 7).ok());
  EXPECT_FALSE(HeaderBytes("m.bin", Bytes(file), 1 << 20).ok());
}

// Asked with ever longer beginnings, the answer settles on the same length, which a reader of the
// file with nothing behind it accepts.
TEST(HeaderBytes, GgufIsWalkedPieceByPiece) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TQ_TEST_DATA "/gguf")) {
    if (entry.path().extension() != ".gguf") continue;
    if (entry.path().string().find("/bad/") != std::string::npos) continue;
    const auto text = ReadTextFile(entry.path());
    ASSERT_TRUE(text.ok());
    const auto size = static_cast<int64_t>(text->size());
    const auto whole = HeaderBytes(entry.path(), Bytes(*text), size);
    ASSERT_TRUE(whole.ok()) << entry.path() << whole.status().message();
    int64_t have = 24;
    for (int turn = 0; turn < 100; ++turn) {
      const auto more = HeaderBytes(
          entry.path(), Bytes(*text).subspan(0, static_cast<size_t>(std::min(have, size))), size);
      ASSERT_TRUE(more.ok()) << more.status().message();
      if (*more <= have) {
        EXPECT_EQ(*more, *whole) << entry.path();
        break;
      }
      have = *more;
    }
    ++files;
  }
  EXPECT_GT(files, 3);
}

TEST(HeaderBytes, LyingCountsEndAtOnce) {
  std::string file = "GGUF";
  const auto add = [&file](auto value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  add(uint32_t{3});
  add(uint64_t{1});
  add(~uint64_t{0} >> 1);  // keys
  EXPECT_FALSE(HeaderBytes("m.gguf", Bytes(file), static_cast<int64_t>(file.size())).ok());
  add(uint64_t{1});
  file += 'k';
  add(uint32_t{9});
  add(uint32_t{4});
  add(~uint64_t{0} / 2);  // items
  EXPECT_FALSE(HeaderBytes("m.gguf", Bytes(file), static_cast<int64_t>(file.size())).ok());
  EXPECT_FALSE(HeaderBytes("m.gguf", Bytes("what"), 4).ok());
}

}  // namespace
}  // namespace tq
