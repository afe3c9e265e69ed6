#include "codec/affine_encode.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tq {
namespace {

constexpr float kMinScale = 1e-7f;

struct Line {
  float scale;
  float bias;
};

// The end that is farther from zero is kept exactly; the code of zero is whole, so that zeros stay.
Line FitLine(float low, float high, float max_code) {
  float scale = std::max((high - low) / max_code, kMinScale);
  const bool from_low = std::fabs(low) > std::fabs(high);
  if (!from_low) scale = -scale;
  const float edge = from_low ? low : high;
  const float code_of_zero = std::nearbyint(edge / scale);
  if (code_of_zero == 0.0f) return {scale, 0.0f};
  return {edge / code_of_zero, edge};
}

void PutCode(uint8_t* codes, int64_t bit, int bits, uint32_t code) {
  const int shift = static_cast<int>(bit % 8);
  const uint32_t shifted = code << shift;
  codes[bit / 8] = static_cast<uint8_t>(codes[bit / 8] | (shifted & 0xFFu));
  if (shift + bits > 8) codes[bit / 8 + 1] = static_cast<uint8_t>(shifted >> 8);
}

}  // namespace

bool EncodeAffineRow(const AffineSpec& spec, std::span<const float> row, uint8_t* codes,
                     float* scales, float* biases) {
  const auto cols = static_cast<int64_t>(row.size());
  TQ_CHECK(spec.group > 0 && cols % spec.group == 0);
  const float max_code = static_cast<float>((1 << spec.bits) - 1);
  std::fill_n(codes, AffineRowBytes(spec.bits, cols), uint8_t{0});
  bool finite = true;
  for (int64_t group = 0; group < cols / spec.group; ++group) {
    const float* x = row.data() + group * spec.group;
    float low = x[0];
    float high = x[0];
    for (int i = 0; i < spec.group; ++i) {
      finite = finite && std::isfinite(x[i]);
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    if (!finite) return false;
    const Line line = FitLine(low, high, max_code);
    for (int i = 0; i < spec.group; ++i) {
      const float code = std::nearbyint((x[i] - line.bias) / line.scale);
      PutCode(codes, (group * spec.group + i) * spec.bits, spec.bits,
              static_cast<uint32_t>(std::clamp(code, 0.0f, max_code)));
    }
    scales[group] = line.scale;
    biases[group] = line.bias;
  }
  return true;
}

}  // namespace tq
