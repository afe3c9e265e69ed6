#include "codec/scale_search.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "codec/turbo_quant.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr int kFactors = 33;
constexpr float kFirstFactor = 0.8f;
constexpr float kFactorStep = 0.0125f;
constexpr size_t kLanes = 16;

// The codebook is symmetric, so |x| and its upper half are enough: |value| = first + the steps
// whose boundary |x| has reached.
template <int kSteps>
struct HalfCodebook {
  float first = 0;
  float boundaries[kSteps == 0 ? 1 : kSteps] = {};
  float steps[kSteps == 0 ? 1 : kSteps] = {};

  explicit HalfCodebook(const LloydMaxTable& table) {
    const size_t base = table.stored.size() - kSteps - 1;
    first = table.stored[base];
    for (size_t k = 0; k < kSteps; ++k) {
      boundaries[k] = table.boundaries[base + k];
      steps[k] = table.stored[base + k + 1] - table.stored[base + k];
    }
  }
};

// Four lanes: every target of the compilers has them.
typedef float Lanes __attribute__((vector_size(16)));
typedef int32_t Mask __attribute__((vector_size(16)));
constexpr size_t kVectors = kLanes / 4;

template <int kSteps>
float SquaredError(const HalfCodebook<kSteps>& half, std::span<const float> x, float scale) {
  Lanes boundaries[kSteps == 0 ? 1 : kSteps];
  Mask steps[kSteps == 0 ? 1 : kSteps];
  for (int k = 0; k < kSteps; ++k) {
    boundaries[k] = Lanes{} + half.boundaries[k] * scale;
    steps[k] = reinterpret_cast<Mask>(Lanes{} + half.steps[k] * scale);
  }
  const Lanes first = Lanes{} + half.first * scale;
  const Mask magnitude = Mask{} + 0x7FFFFFFF;
  Lanes sums[kVectors] = {};
  for (size_t i = 0; i < x.size(); i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      Mask bits;
      std::memcpy(&bits, &x[i + 4 * v], sizeof(bits));
      const Lanes size = reinterpret_cast<Lanes>(bits & magnitude);
      Lanes value = first;
      for (int k = 0; k < kSteps; ++k) {
        value += reinterpret_cast<Lanes>(static_cast<Mask>(size >= boundaries[k]) & steps[k]);
      }
      const Lanes error = size - value;
      sums[v] += error * error;
    }
  }
  float sum = 0;
  for (const Lanes& four : sums) sum += (four[0] + four[1]) + (four[2] + four[3]);
  return sum;
}

template <int kSteps>
uint16_t Search(int entries, std::span<const float> x, float rms) {
  const HalfCodebook<kSteps> half(LloydMaxCodebook(entries));
  uint16_t best = F32ToF16(rms);
  float best_error = INFINITY;
  for (int i = 0; i < kFactors; ++i) {
    const float factor = kFirstFactor + kFactorStep * static_cast<float>(i);
    const uint16_t bits = F32ToF16(rms * factor);
    const float error = SquaredError(half, x, F16ToF32(bits));
    if (error < best_error) {  // false for the NaN that an infinite scale gives
      best = bits;
      best_error = error;
    }
  }
  return best;
}

}  // namespace

uint16_t SearchTurboQuantScale(int codebook_entries, std::span<const float> x, float rms) {
  TQ_CHECK(x.size() % kLanes == 0);
  switch (codebook_entries) {
    case 2:
      return Search<0>(codebook_entries, x, rms);
    case 3:
    case 4:
      return Search<1>(codebook_entries, x, rms);
    case 8:
      return Search<3>(codebook_entries, x, rms);
    case 16:
      return Search<7>(codebook_entries, x, rms);
    default:
      CheckFailed(__FILE__, __LINE__, "a codebook has 2, 3, 4, 8 or 16 entries");
  }
}

}  // namespace tq
