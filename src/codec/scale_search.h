// The scale of a TurboQuant group with the least squared error, instead of the RMS that the
// published converter stores. Same format, same reader; about a tenth to a quarter less error.
#pragma once

#include <cstdint>
#include <span>

namespace tq {

// f16 bits of the best of 33 scales, rms * (0.8, 0.8125, .. 1.2), for rounding x to the codebook of
// that many entries. Values are compared and rebuilt with the scale as stored. A tie goes to the
// smaller scale. Requires: x.size() is a multiple of 16; rms > 0. An rms that is not finite or
// beyond f16 gives bits that are not finite. Thread: any.
uint16_t SearchTurboQuantScale(int codebook_entries, std::span<const float> x, float rms);

}  // namespace tq
