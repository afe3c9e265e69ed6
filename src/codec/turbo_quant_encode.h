// Writing TurboQuant rows: signs, block Hadamard, RMS per group, nearest cell, packed words. The
// same bits as the reference converter, so files made here and there are interchangeable. Not here:
// choosing widths, groups and seeds, rounding by a calibration (quantize/), the layer's name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/turbo_quant.h"

namespace tq {

struct TurboQuantSpec {
  int codebook_entries = 8;  // 2, 3 (trits), 4, 8 or 16
  int group = 64;
  bool rotate = true;
  uint64_t seed = 0;          // of TurboQuantSigns: TurboQuantLayerSeed(rotation_seed, path)
  bool search_scale = false;  // SearchTurboQuantScale instead of the RMS: groups of 16, 32, ...
};

// Buffers of one thread, reused from row to row.
struct TurboQuantScratch {
  std::vector<float> values;
  std::vector<uint8_t> codes;
};

// words[TurboQuantWords(entries, cols)], scales[cols / group] (f16 bits) = the codes of row[cols].
// signs[cols] is read only when spec.rotate. Requires: cols % spec.group == 0. Thread: any.
// Returns whether every scale is a finite f16: false means that the row holds a NaN, an infinity or
// a group whose RMS exceeds 65504, and that what was written is of no use. Order: the squares of a
// group are summed in f32 from its first column to its last, from +0.
bool EncodeTurboQuantRow(const TurboQuantSpec& spec, std::span<const float> row,
                         std::span<const float> signs, uint32_t* words, uint16_t* scales,
                         TurboQuantScratch& scratch);

// codes[i] = number of the codebook's boundaries <= x[i]. The two may not overlap.
void CountTurboQuantBoundaries(int codebook_entries, const float* x, int64_t n, uint8_t* codes);

// codes[i] = the cell of x[i], units[i] = what it stands for (the codebook's value as stored). What
// a code means is known here and in the decoder, not to those who choose codes (quantize/ldlq.h).
void RoundTurboQuant(int codebook_entries, const float* x, int64_t n, uint8_t* codes, float* units);

// Root mean square of a group, at least 1e-7: the squares are summed in order, in f32.
float TurboQuantRms(std::span<const float> group);

// words[TurboQuantWords(entries, codes.size())]: the last word is padded with code 0.
void PackTurboQuantCodes(int codebook_entries, std::span<const uint8_t> codes, uint32_t* words);

}  // namespace tq
