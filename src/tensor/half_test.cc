#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/dtype.h"

namespace tq {
namespace {

TEST(F16, EveryPatternSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const float f = F16ToF32(h);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16(f))));
    } else {
      EXPECT_EQ(F32ToF16(f), h);
    }
  }
}

TEST(F16, RoundsToNearestEvenBetweenNeighbours) {
  for (uint16_t h = 0; h < 0x7BFF; ++h) {
    const float low = F16ToF32(h);
    const float high = F16ToF32(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(F32ToF16(middle), (h & 1) != 0 ? h + 1 : h);
    EXPECT_EQ(F32ToF16(std::nextafterf(middle, 0.0f)), h);
    EXPECT_EQ(F32ToF16(std::nextafterf(middle, 1e9f)), h + 1);
  }
  EXPECT_EQ(F32ToF16(65504.0f), 0x7BFF);
  EXPECT_EQ(F32ToF16(65519.996f), 0x7BFF);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7C00);
  EXPECT_EQ(F32ToF16(-1e30f), 0xFC00);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(F32ToBf16(1.0f), 0x3F80);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_TRUE(std::isnan(Bf16ToF32(F32ToBf16(NAN))));
}

TEST(DType, NamesRoundTrip) {
  for (const char* name : {"F32", "F16", "BF16", "U32", "I64", "F8_E4M3"}) {
    EXPECT_EQ(DTypeName(*DTypeFromName(name)), name);
  }
  EXPECT_FALSE(DTypeFromName("F4").has_value());
}

}  // namespace
}  // namespace tq
