#include "codec/qjl.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "codec/hadamard.h"

namespace tq {

float EncodeQjlRow(std::span<float> residual, std::span<const float> signs, uint32_t* words) {
  TQ_CHECK(residual.size() == signs.size());
  float sum = 0;
  for (const float x : residual) sum += x * x;
  for (size_t i = 0; i < residual.size(); ++i) residual[i] *= signs[i];
  HadamardForward(residual);
  std::fill_n(words, QjlWords(static_cast<int64_t>(residual.size())), 0u);
  for (size_t i = 0; i < residual.size(); ++i) {
    words[i / 32] |= (residual[i] >= 0.0f ? 1u : 0u) << (i % 32);
  }
  return std::sqrt(sum);
}

}  // namespace tq
