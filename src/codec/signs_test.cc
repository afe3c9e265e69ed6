#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "codec/hadamard.h"
#include "codec/test_tensors.h"

namespace tq {
namespace {

std::string SignString(uint64_t seed, int64_t n) {
  std::string text;
  for (const float sign : TurboQuantSigns(seed, n)) text += sign < 0 ? '-' : '+';
  return text;
}

TEST(Signs, KnownVectors) {
  EXPECT_EQ(SignString(42, 5), "++---");
  EXPECT_EQ(SignString(42, 64), "-+++---+--+-+-+-+--+-++-+++-++-+-+---------+--+--++++-++-+---++-");
  EXPECT_EQ(SignString(42, 80),
            "++-+-++--+++++-+-----+++-+--+---+++--+--+---+---++++-++-+++--+----+--+++--++-+++");
  EXPECT_EQ(SignString(43, 64), "++-+++-+-++-++-++----+--++-+-++-+--+++--+----++++--++-+-++---+--");
  EXPECT_EQ(SignString(1726638807, 2048).substr(0, 64),
            "-+++++--+--+-+-++-++--++++--++++++-+-+---+-++--+-+++-+-++---++-+");
  EXPECT_EQ(SignString(42, 0), "");
}

TEST(Signs, EveryReferenceVector) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  int compared = 0;
  for (const auto& [name, tensor] : vectors.all()) {
    const auto parts = SplitName(name);
    if (parts[0] != "signs") continue;
    const std::vector<float> signs = TurboQuantSigns(std::stoull(parts[2]), std::stoll(parts[1]));
    EXPECT_EQ(signs, tensor.Floats()) << name;
    ++compared;
  }
  EXPECT_GT(compared, 60);
}

TEST(Signs, DependOnTheLength) { EXPECT_NE(SignString(42, 128).substr(0, 64), SignString(42, 64)); }

TEST(Signs, Crc32) {
  EXPECT_EQ(Crc32(""), 0u);
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926u);
}

TEST(Signs, LayerSeeds) {
  EXPECT_EQ(TurboQuantLayerSeed(42, "model.layers.0.self_attn.q_proj"), 1726638807u);
  EXPECT_EQ(TurboQuantLayerSeed(42, "model.layers.7.mlp.switch_mlp.down_proj"), 21708229u);
  const auto text = ReadTextFile(TQ_TEST_DATA "/turboquant/vectors.json");
  ASSERT_TRUE(text.ok());
  const auto json = ParseJson(text.value(), "vectors.json");
  ASSERT_TRUE(json.ok());
  for (const auto& [key, value] : (*json)["layer_seeds"].items()) {
    const size_t cut = key.find(" base ");
    const uint64_t base = std::stoull(key.substr(cut + 6));
    EXPECT_EQ(TurboQuantLayerSeed(base, key.substr(0, cut)), value.get<uint64_t>()) << key;
  }
}

}  // namespace
}  // namespace tq
