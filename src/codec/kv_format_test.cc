#include "codec/kv_format.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tensor/half.h"

namespace tq {
namespace {

std::vector<float> Normal(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

double RelativeError(KvFormat format, KvScale scale, const std::vector<float>& x, int group) {
  std::vector<uint8_t> codes(x.size());
  std::vector<uint16_t> scales(x.size() / static_cast<size_t>(group));
  KvEncode(format, scale, x, group, codes.data(), scales.data());
  double error = 0, energy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double value =
        double{KvUnits(format)[codes[i]]} * F16ToF32(scales[i / static_cast<size_t>(group)]);
    error += (x[i] - value) * (x[i] - value);
    energy += double{x[i]} * x[i];
  }
  return error / energy;
}

// The published 8-bit table (index 128 on), every sixteenth entry, and the whole 5-bit one.
TEST(KvFormat, ComputedCodebooks) {
  const std::vector<float>& wide = KvCodebookOf(8).stored;
  ASSERT_EQ(wide.size(), 256u);
  constexpr uint16_t kEight[] = {0x21de, 0x360d, 0x39f5, 0x3c72, 0x3dea, 0x3f62, 0x4076, 0x4189};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(F32ToF16(wide[128 + 16 * i]), kEight[i]) << i;
  }
  EXPECT_EQ(F32ToF16(wide.back()), 0x44a4);
  constexpr uint16_t kFive[] = {0x2c3c, 0x325d, 0x3552, 0x377f, 0x38db, 0x39ff, 0x3b2e, 0x3c35,
                                0x3cdc, 0x3d8f, 0x3e52, 0x3f2a, 0x4011, 0x40a4, 0x4164, 0x4287};
  const std::vector<float>& five = KvCodebookOf(5).stored;
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(F32ToF16(five[16 + i]), kFive[i]) << i;
    EXPECT_EQ(five[15 - i], -five[16 + i]);
  }
}

// Squared errors on normal values; those of the codebooks are known.
TEST(KvFormat, ErrorBounds) {
  const std::vector<float> x = Normal(64 * 256, 1);
  const struct {
    KvFormat format;
    double rms, search;
  } bounds[] = {{KvFormat::kTq2, .119, .115},     {KvFormat::kTq3, .036, .0315},
                {KvFormat::kTq4, .0102, .0085},   {KvFormat::kTq5, .0028, .0028},
                {KvFormat::kTq6, .00075, .00075}, {KvFormat::kTq7, .00021, .00021},
                {KvFormat::kTq8, .00006, .00006}, {KvFormat::kInt8, .000045, .000045}};
  for (const auto& bound : bounds) {
    EXPECT_LT(RelativeError(bound.format, KvScale::kRms, x, 64), bound.rms)
        << KvFormatName(bound.format);
    EXPECT_LT(RelativeError(bound.format, KvScale::kSearch, x, 64), bound.search)
        << KvFormatName(bound.format);
  }
  // Groups that are no multiple of four are searched all the same.
  EXPECT_LT(RelativeError(KvFormat::kTq4, KvScale::kSearch, Normal(42 * 100, 2), 42), .0085);
}

TEST(KvFormat, ZerosAndExtremes) {
  std::vector<float> x(32, 0.0f);
  x[20] = 3e38f;
  x[25] = -1e30f;
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kTq2, KvFormat::kTq4, KvFormat::kTq8}) {
    std::vector<uint8_t> codes(32);
    std::vector<uint16_t> scales(2);
    KvEncode(format, KvScale::kSearch, x, 16, codes.data(), scales.data());
    EXPECT_LT(F16ToF32(scales[0]) * std::fabs(KvUnits(format)[codes[0]]), 1e-6f);
    EXPECT_EQ(scales[1], 0x7BFF) << KvFormatName(format);  // the largest number, not infinity
  }
}

TEST(KvFormat, NamesAndGroups) {
  EXPECT_EQ(KvFormatFromName("8"), KvFormat::kInt8);
  EXPECT_EQ(KvFormatFromName("3"), KvFormat::kTq3);
  EXPECT_EQ(KvFormatFromName("tq8"), KvFormat::kTq8);
  EXPECT_EQ(KvFormatFromName("16"), KvFormat::kF16);
  EXPECT_FALSE(KvFormatFromName("9"));
  EXPECT_FALSE(KvFormatFromName("1"));
  EXPECT_FALSE(KvFormatFromName(""));
  EXPECT_EQ(KvSettingsText(KvFormat::kF16), "f16");
  KvSettings settings;
  settings.k = KvFormat::kInt8;
  settings.v = KvFormat::kTq3;
  settings.min_tokens = 128;
  settings.group_size = 32;
  EXPECT_EQ(KvSettingsText(settings), "K8/V3 group 32 first 128 f16");
  EXPECT_EQ(KvSettingsText(ParseKvSettings("K:tq8/v:bf16", {}).value()), "K:tq8/V:bf16");
  EXPECT_EQ(KvSettingsText(ParseKvSettings("k4/V3", {}).value()), "K4/V3");
  for (const char* bad : {"", "9", "K4", "4/", "/3", "4/3/2", "K4/V9"}) {
    EXPECT_FALSE(ParseKvSettings(bad, {}).ok()) << bad;
  }
  for (const auto& [dim, group] : {std::pair{64, 64},
                                   {80, 16},
                                   {96, 32},
                                   {72, 8},
                                   {40, 40},
                                   {56, 56},
                                   {112, 16},
                                   {160, 32},
                                   {576, 64}}) {
    EXPECT_EQ(KvGroup(64, dim), group) << dim;
  }
}

}  // namespace
}  // namespace tq
