#include <algorithm>
#include <cmath>

#include "backend/ref/ref_ops.h"
#include "codec/hadamard.h"

namespace tq::ref {

void Rotate(std::span<float> x, std::span<const float> signs) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * signs[i];
  HadamardForward(x);
}

void Quantize(ActivationRow& activation, int64_t block) {
  const int64_t n = static_cast<int64_t>(activation.x.size());
  activation.block = block;
  activation.q.assign(activation.x.size(), 0);
  activation.scale.assign(static_cast<size_t>((n + block - 1) / block), 0.0f);
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(n, begin + block);
    float m = 0.0f;
    for (int64_t i = begin; i < end; ++i) m = std::max(m, std::fabs(activation.x[i]));
    if (m < kMinActivation) continue;
    activation.scale[begin / block] = m / 127.0f;
    const float inverse = 127.0f / m;
    for (int64_t i = begin; i < end; ++i) {
      activation.q[i] = static_cast<int8_t>(std::nearbyint(activation.x[i] * inverse));
    }
  }
}

ActivationRow Prepare(const StoredMatrix& matrix, const float* x, bool int8) {
  ActivationRow activation;
  activation.x.assign(x, x + matrix.cols);
  const bool rotated = matrix.format.transform == Transform::kHadamard;
  if (rotated) Rotate(activation.x, matrix.signs);
  if (!int8) return activation;
  const std::optional<Grid> grid = GridOf(matrix);
  if (grid) Quantize(activation, std::max(grid->group, kMinGridBlock));
  if (matrix.format.codec == CodecId::kTurboQuant) {
    Quantize(activation, rotated ? 256 : matrix.format.group);
  }
  return activation;
}

}  // namespace tq::ref
