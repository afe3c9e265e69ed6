#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "backend/cpu/kernels/float_reference.h"
#include "codec/kv_format.h"

namespace tq {
namespace {

struct Coded {
  std::vector<uint8_t> codes;
  std::vector<uint16_t> scales;
  bool operator==(const Coded&) const = default;
};

Coded Expected(KvFormat format, const std::vector<float>& x, int group) {
  Coded out{std::vector<uint8_t>(x.size()), std::vector<uint16_t>(x.size() / group)};
  KvEncode(format, KvScale::kSearch, x, group, out.codes.data(), out.scales.data());
  return out;
}

Coded Found(Isa isa, KvFormat format, const std::vector<float>& x, int group) {
  Coded out{std::vector<uint8_t>(x.size()), std::vector<uint16_t>(x.size() / group)};
  GetFloatOps(isa).encode_kv(format, x.data(), static_cast<int64_t>(x.size()), group,
                             out.codes.data(), out.scales.data());
  return out;
}

constexpr KvFormat kFormats[] = {KvFormat::kInt8, KvFormat::kTq2, KvFormat::kTq3,
                                 KvFormat::kTq4,  KvFormat::kTq5, KvFormat::kTq8};

TEST(EncodeKv, EveryIsaGivesTheBitsOfThePlainCode) {
  for (const Isa isa : DetectIsas()) {
    for (const KvFormat format : kFormats) {
      for (const int group : {4, 8, 16, 32, 64, 128}) {
        for (const float size : {0.0f, 1e-9f, 0.02f, 1.0f, 900.0f, 1e6f}) {
          std::vector<float> x = reference::Random(5, 256);
          for (float& value : x) value *= size;
          ASSERT_EQ(Found(isa, format, x, group), Expected(format, x, group))
              << IsaName(isa) << " " << KvFormatName(format) << " group " << group << " size "
              << size;
        }
      }
    }
  }
}

// What a broken model may hand over: the same bytes as the plain code, whatever they are.
TEST(EncodeKv, ValuesThatAreNoNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : DetectIsas()) {
    for (const KvFormat format : kFormats) {
      for (const float bad : {kInfinity, -kInfinity, kNan, 3e38f, -0.0f}) {
        std::vector<float> x = reference::Random(6, 64);
        x[17] = bad;
        ASSERT_EQ(Found(isa, format, x, 64), Expected(format, x, 64))
            << IsaName(isa) << " " << KvFormatName(format) << " " << bad;
      }
    }
  }
}

// Halves of a step, where a wrong rounding or comparison shows.
TEST(EncodeKv, TiesOfInt8) {
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) x.push_back(static_cast<float>(i - 32) + 0.5f);
  x[0] = 127.0f;  // scale 1
  for (const Isa isa : DetectIsas()) {
    ASSERT_EQ(Found(isa, KvFormat::kInt8, x, 64), Expected(KvFormat::kInt8, x, 64));
  }
}

}  // namespace
}  // namespace tq
