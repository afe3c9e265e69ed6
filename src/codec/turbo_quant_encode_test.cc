#include "codec/turbo_quant_encode.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/hadamard.h"
#include "codec/test_tensors.h"

namespace tq {
namespace {

struct Encoded {
  std::vector<uint32_t> words;
  std::vector<uint16_t> scales;
  bool finite = false;
};

Encoded Encode(const TurboQuantSpec& spec, std::span<const float> row,
               std::span<const float> signs) {
  Encoded out;
  const int64_t cols = static_cast<int64_t>(row.size());
  out.words.resize(static_cast<size_t>(TurboQuantWords(spec.codebook_entries, cols)));
  out.scales.resize(static_cast<size_t>(cols / spec.group));
  TurboQuantScratch scratch;
  out.finite = EncodeTurboQuantRow(spec, row, signs, out.words.data(), out.scales.data(), scratch);
  return out;
}

// The row of the published test vectors.
std::vector<float> VectorRow(int n) {
  std::vector<float> row;
  for (int c = 0; c < n; ++c) row.push_back(static_cast<float>((42 + 11 * c) % 23 - 11) / 8);
  return row;
}

struct PublishedVector {
  int n;
  int group;
  int entries;
  std::vector<uint32_t> words;  // the first ones
  std::vector<uint16_t> scales;
};

TEST(TurboQuantEncode, PublishedVectors) {
  const std::vector<uint16_t> scales64 = {0x3a5d, 0x3af3};
  const std::vector<uint16_t> scales96 = {0x3a43, 0x3b5f, 0x3a25};
  const std::vector<uint16_t> scales80 = {0x3b7a, 0x3b59, 0x393e, 0x3ac7, 0x398c};
  const std::vector<uint16_t> scales288 = {0x39ed, 0x3a80, 0x3b58, 0x3acb, 0x3aa9,
                                           0x3a5e, 0x39df, 0x3ac5, 0x3b2d};
  const PublishedVector vectors[] = {
      {64, 32, 4, {0x4e6e8416, 0x676d3957, 0xc6945e62, 0x78244a59}, scales64},
      {64,
       32,
       8,
       {0x3ca5929c, 0x13598d1d, 0x1e7323a3, 0x1ad1c15d, 0x22c5da98, 0x0445195b, 0x00000769},
       scales64},
      {64,
       32,
       16,
       {0xb3642578, 0x71c96bf8, 0x3c96574c, 0x6b7c78d5, 0x75c86929, 0xc37aa560, 0x528a7685,
        0x6ba31942},
       scales64},
      {64, 32, 3, {0x6298f069, 0x6f8540e3, 0x181f09d4, 0x00000030}, scales64},
      {96,
       32,
       4,
       {0x7e465d81, 0x4d292549, 0x28fe8a99, 0x1ee92621, 0xac0aa6aa, 0x94ca1389},
       scales96},
      {96,
       32,
       8,
       {0x1d4eaa4b, 0x1889ed11, 0x2b16b51b, 0x21b628d0, 0x0a369df5, 0x348cd515, 0x1496d0f5,
        0x25c01925, 0x2508d823, 0x0002a4b1},
       scales96},
      {96,
       32,
       16,
       {0x57b5a336, 0x7cb9427b, 0x49676194, 0x51b61ab6, 0x83ab9496, 0x4ba2deca, 0x2b584b25,
        0x17bbc887, 0x9a598bab, 0x8bc22288, 0x253b9196, 0xb554b39a},
       scales96},
      {96, 32, 3, {0x4e9f741d, 0x5acc3c91, 0xac8457c1, 0x8300496b, 0x01d407e4}, scales96},
      {80, 16, 4, {0x8856b6f3, 0x987c9897, 0x76b1dd95, 0x144a626d, 0x66121735}, scales80},
      {80,
       16,
       8,
       {0x1cb55f86, 0x2b7a1a53, 0x225b98a9, 0x2baab4a2, 0x337dc982, 0x11b1411d, 0x1755b291,
        0x1470a50a},
       scales80},
      {80,
       16,
       16,
       {0xab5bdc2c, 0x83a25668, 0x96a3a76b, 0x94845ce2, 0xb6b5b645, 0x7e688c14, 0x681879d6,
        0x345342b8, 0x354e4b66, 0x49792449},
       scales80},
      {80, 16, 3, {0xaf6dd956, 0xb3140962, 0x13264a55, 0x21642b1f}, scales80},
      {288,
       32,
       3,
       {0x631959b7, 0x6e67e517, 0x08d41b2b, 0x3d8ab817, 0x663c56fc, 0x7b505270, 0x86b44ac4,
        0x444eda2a, 0x19aab38c, 0x95335b07, 0x0f7796cb, 0x6ffe20a9, 0x0dfc11cb, 0x81789a38,
        0x00000f14},
       scales288},
      {288, 32, 4, {0x7b6987f5, 0x8f596da3, 0x651b6e13}, scales288},
  };
  for (const PublishedVector& vector : vectors) {
    const TurboQuantSpec spec = {vector.entries, vector.group, true, 42};
    Encoded out = Encode(spec, VectorRow(vector.n), TurboQuantSigns(42, vector.n));
    out.words.resize(vector.words.size());
    EXPECT_EQ(out.words, vector.words) << vector.n << " entries " << vector.entries;
    EXPECT_EQ(out.scales, vector.scales) << vector.n << " entries " << vector.entries;
    EXPECT_TRUE(out.finite);
  }
}

TEST(TurboQuantEncode, EveryReferenceVector) {
  const TestTensors vectors(TQ_TEST_DATA "/turboquant/vectors.safetensors");
  int compared = 0;
  for (const auto& [name, weight] : vectors.all()) {
    const auto parts = SplitName(name);
    if (parts[0] != "q" || parts.back() != "weight") continue;
    TurboQuantSpec spec;
    spec.codebook_entries = parts[3] == "trit" ? 3 : 1 << std::stoi(parts[3]);
    spec.group = std::stoi(parts[2].substr(1));
    const std::vector<float> source = vectors["q/" + parts[1] + "/w"].Floats();
    const size_t cols = std::stoul(parts[1]);
    const std::vector<float> signs = TurboQuantSigns(42, static_cast<int64_t>(cols));
    std::vector<uint32_t> words;
    std::vector<uint16_t> scales;
    for (size_t row = 0; row < source.size(); row += cols) {
      const Encoded out = Encode(spec, std::span(source).subspan(row, cols), signs);
      words.insert(words.end(), out.words.begin(), out.words.end());
      scales.insert(scales.end(), out.scales.begin(), out.scales.end());
    }
    EXPECT_EQ(words, weight.As<uint32_t>()) << name;
    const std::string scales_name = name.substr(0, name.size() - 6) + "scales";
    EXPECT_EQ(scales, vectors[scales_name].As<uint16_t>()) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 100);
}

// Whole checkpoints of the reference converter, from the float weights it was given.
TEST(TurboQuantEncode, CheckpointsOfTheReference) {
  const std::pair<const char*, const char*> checkpoints[] = {
      {"dense_b2", "llama"},    {"dense_b3", "llama"}, {"dense_mixed", "llama"},
      {"dense_norot", "llama"}, {"dense_b4", "qwen3"}, {"dense_f16_b4", "qwen2"}};
  for (const auto& [quantized, model] : checkpoints) {
    const TestTensors stored(std::string(TQ_TEST_DATA "/turboquant/") + quantized +
                             "/model.safetensors");
    const TestTensors floats(std::string(TQ_TEST_DATA "/models/") + model + "/model.safetensors");
    int words_differ = 0, scales_differ = 0, matrices = 0;
    for (const auto& [name, codebook] : stored.all()) {
      const std::string path = name.substr(0, name.rfind('.'));
      if (name != path + ".codebook" || !floats.Has(path + ".weight")) continue;
      const std::vector<float> source = floats[path + ".weight"].Floats();
      const std::vector<float> signs = stored[path + ".signs"].Floats();
      const std::vector<uint32_t> words = stored[path + ".weight"].As<uint32_t>();
      const std::vector<uint16_t> scales = stored[path + ".scales"].As<uint16_t>();
      TurboQuantSpec spec;
      spec.codebook_entries = static_cast<int>(codebook.cols());
      spec.group = static_cast<int>(signs.size() / stored[path + ".scales"].cols());
      spec.rotate = std::string(quantized) != "dense_norot";
      for (size_t row = 0; row * signs.size() < source.size(); ++row) {
        const Encoded out =
            Encode(spec, std::span(source).subspan(row * signs.size(), signs.size()), signs);
        for (size_t i = 0; i < out.words.size(); ++i) {
          words_differ += out.words[i] != words[row * out.words.size() + i];
        }
        for (size_t i = 0; i < out.scales.size(); ++i) {
          scales_differ += out.scales[i] != scales[row * out.scales.size() + i];
        }
      }
      ++matrices;
    }
    EXPECT_GE(matrices, 14) << quantized;
    EXPECT_EQ(words_differ, 0) << quantized;
    EXPECT_EQ(scales_differ, 0) << quantized;
  }
}

float SequentialRms(const std::vector<float>& row) {
  float sum = 0.0f;
  for (const float value : row) sum += value * value;
  return std::sqrt(sum / static_cast<float>(row.size()));
}

TEST(TurboQuantEncode, TiesGoToTheHigherCell) {
  for (const int entries : {3, 4, 8, 16}) {
    const std::vector<float>& boundaries = LloydMaxCodebook(entries).boundaries;
    for (size_t k = 0; k < boundaries.size(); ++k) {
      // A group whose RMS is exactly 1, found by moving its last value: x / r is then x.
      std::vector<float> row(32, 0.0f);
      row[0] = boundaries[k];
      row[1] = std::nextafter(boundaries[k], -8.0f);
      const float square = SequentialRms(row) * SequentialRms(row);
      row[31] = std::sqrt(32.0f * (1.0f - square)) - 1e-4f;
      while (SequentialRms(row) < 1.0f) row[31] = std::nextafter(row[31], 8.0f);
      ASSERT_EQ(SequentialRms(row), 1.0f);
      const Encoded out = Encode({entries, 32, false, 0}, row, {});
      StoredMatrix matrix;
      matrix.rows = 1;
      matrix.cols = 32;
      matrix.data = reinterpret_cast<const std::byte*>(out.words.data());
      matrix.codebook = LloydMaxCodebook(entries).stored;
      uint8_t codes[2];
      TurboQuant::DecodeCodes(matrix, 0, 0, 2, codes);
      EXPECT_EQ(codes[0], k + 1) << entries;
      EXPECT_EQ(codes[1], k) << entries;
    }
  }
  const std::vector<float> negative_zero(16, -0.0f);
  EXPECT_EQ(Encode({4, 16, false, 0}, negative_zero, {}).words[0], 0xAAAAAAAAu);
}

TEST(TurboQuantEncode, ZeroGroupStoresTheFloor) {
  const std::vector<float> row(32, 0.0f);
  const Encoded out = Encode({3, 32, true, 0}, row, std::vector<float>(32, 1.0f));
  EXPECT_EQ(out.scales[0], 0x0002);
  EXPECT_TRUE(out.finite);
  EXPECT_EQ(out.words[0], (3486784401u - 1) / 2);  // all trits 1: the centroid 0
}

TEST(TurboQuantEncode, ReportsValuesThatNoScaleCanHold) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan, 1e6f, 3e38f}) {
    std::vector<float> row(64, 1.0f);
    row[40] = bad;
    EXPECT_FALSE(Encode({8, 32, false, 0}, row, {}).finite) << bad;
    EXPECT_FALSE(Encode({8, 32, true, 0}, row, TurboQuantSigns(1, 64)).finite) << bad;
  }
}

// Relative squared error on Gaussian weights, the bound that docs/formats/turboquant.md states.
TEST(TurboQuantEncode, ErrorBounds) {
  const std::pair<int, double> bounds[] = {
      {2, 0.37}, {3, 0.195}, {4, 0.12}, {8, 0.036}, {16, 0.0101}};
  std::mt19937 generator(3);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  const int64_t cols = 4096;
  const std::vector<float> signs = TurboQuantSigns(5, cols);
  for (const auto& [entries, bound] : bounds) {
    double error = 0, energy = 0;
    for (int r = 0; r < 8; ++r) {
      std::vector<float> row(static_cast<size_t>(cols));
      for (float& value : row) value = normal(generator);
      const Encoded out = Encode({entries, 64, true, 5}, row, signs);
      StoredMatrix matrix;
      matrix.format = {CodecId::kTurboQuant, 0, 64, Transform::kHadamard};
      matrix.rows = 1;
      matrix.cols = cols;
      matrix.data = reinterpret_cast<const std::byte*>(out.words.data());
      matrix.scales = reinterpret_cast<const std::byte*>(out.scales.data());
      matrix.codebook = LloydMaxCodebook(entries).stored;
      std::vector<float> decoded(row.size());
      TurboQuant::DecodeRow(matrix, 0, 0, cols, decoded.data());
      HadamardInverse(decoded);
      for (size_t i = 0; i < row.size(); ++i) {
        const double difference = double{decoded[i]} * signs[i] - row[i];
        error += difference * difference;
        energy += double{row[i]} * row[i];
      }
    }
    EXPECT_LT(error / energy, bound) << entries;
    EXPECT_GT(error / energy, 0.8 * bound) << entries;
  }
}

}  // namespace
}  // namespace tq
