// The scales that a group of a packed KV format tries (KvScale::kSearch), for KvEncode and for
// kernels that repeat it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/half.h"

namespace tq {

inline constexpr int kKvScaleCandidates = 12;

// As it is stored; beyond f16 (and for a NaN) its largest finite number.
inline uint16_t KvScaleBits(float scale) {
  constexpr uint16_t kLargestF16 = 0x7BFF;
  return std::min(F32ToF16(scale), kLargestF16);
}

// Candidate i = 0 .. 11 as stored: .84 to 1.17 of the RMS.
inline uint16_t KvScaleCandidate(float rms, int i) {
  constexpr float kFirstFactor = 0.84f;
  constexpr float kFactorStep = 0.03f;
  return KvScaleBits(rms * (kFirstFactor + kFactorStep * static_cast<float>(i)));
}

}  // namespace tq
