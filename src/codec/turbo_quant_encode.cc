#include "codec/turbo_quant_encode.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "codec/hadamard.h"
#include "codec/scale_search.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr float kMinRms = 1e-7f;

template <int kBits>
uint32_t PackWord(const uint8_t* codes) {
  uint32_t word = 0;
  for (int i = 0; i < 32 / kBits; ++i) word |= static_cast<uint32_t>(codes[i]) << (i * kBits);
  return word;
}

uint32_t PackTritWord(const uint8_t* codes) {
  uint32_t word = 0;
  for (int i = 19; i >= 0; --i) word = word * 3 + codes[i];
  return word;
}

template <int kPerWord, uint32_t (*kPack)(const uint8_t*)>
void PackRow(std::span<const uint8_t> codes, uint32_t* words) {
  size_t done = 0;
  for (; done + kPerWord <= codes.size(); done += kPerWord) *words++ = kPack(&codes[done]);
  if (done == codes.size()) return;
  uint8_t padded[kPerWord] = {};
  std::copy(codes.begin() + static_cast<std::ptrdiff_t>(done), codes.end(), padded);
  *words = kPack(padded);
}

// codes[i] = number of boundaries <= x[i]. kBoundaries is a constant so that the loop vectorizes.
template <int kBoundaries>
void CountBoundaries(const float* boundaries, const float* x, int64_t n, uint8_t* codes) {
  constexpr int kLanes = 16;
  float b[kBoundaries];
  std::copy_n(boundaries, kBoundaries, b);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    int32_t count[kLanes] = {};
    for (int k = 0; k < kBoundaries; ++k) {
      for (int lane = 0; lane < kLanes; ++lane) count[lane] += x[i + lane] >= b[k] ? 1 : 0;
    }
    for (int lane = 0; lane < kLanes; ++lane) codes[i + lane] = static_cast<uint8_t>(count[lane]);
  }
  for (; i < n; ++i) {
    int32_t count = 0;
    for (int k = 0; k < kBoundaries; ++k) count += x[i] >= b[k] ? 1 : 0;
    codes[i] = static_cast<uint8_t>(count);
  }
}

using CountFunction = void (*)(const float* boundaries, const float* x, int64_t n, uint8_t* codes);

CountFunction CountFunctionFor(int entries) {
  switch (entries) {
    case 2:
      return CountBoundaries<1>;
    case 3:
      return CountBoundaries<2>;
    case 4:
      return CountBoundaries<3>;
    case 8:
      return CountBoundaries<7>;
    default:
      return CountBoundaries<15>;
  }
}

float RmsOfSum(float sum, int64_t n) {
  const float root = std::sqrt(sum / static_cast<float>(n));
  return root < kMinRms ? kMinRms : root;  // a NaN stays
}

// rms[j] of `num_groups` <= kParallelGroups neighbouring groups: each sum is one chain in column
// order, as the reference adds them; several chains hide the latency of an add.
constexpr int kParallelGroups = 8;

void GroupRms(const float* x, int group, int num_groups, float* rms) {
  float sums[kParallelGroups] = {};
  if (num_groups == kParallelGroups) {
    for (int i = 0; i < group; ++i) {
      for (int j = 0; j < kParallelGroups; ++j) {
        const float value = x[j * group + i];
        sums[j] += value * value;
      }
    }
  } else {
    for (int j = 0; j < num_groups; ++j) {
      for (int i = 0; i < group; ++i) sums[j] += x[j * group + i] * x[j * group + i];
    }
  }
  for (int j = 0; j < num_groups; ++j) {
    rms[j] = RmsOfSum(sums[j], group);
  }
}

bool IsFiniteF16(uint16_t bits) { return (bits & 0x7C00u) != 0x7C00u; }

}  // namespace

void CountTurboQuantBoundaries(int codebook_entries, const float* x, int64_t n, uint8_t* codes) {
  CountFunctionFor(codebook_entries)(LloydMaxCodebook(codebook_entries).boundaries.data(), x, n,
                                     codes);
}

void RoundTurboQuant(int codebook_entries, const float* x, int64_t n, uint8_t* codes,
                     float* units) {
  CountTurboQuantBoundaries(codebook_entries, x, n, codes);
  const float* stored = LloydMaxCodebook(codebook_entries).stored.data();
  for (int64_t i = 0; i < n; ++i) units[i] = stored[codes[i]];
}

float TurboQuantRms(std::span<const float> group) {
  float sum = 0;
  for (const float value : group) sum += value * value;
  return RmsOfSum(sum, static_cast<int64_t>(group.size()));
}

void PackTurboQuantCodes(int codebook_entries, std::span<const uint8_t> codes, uint32_t* words) {
  switch (codebook_entries) {
    case 2:
      return PackRow<32, PackWord<1>>(codes, words);
    case 3:
      return PackRow<20, PackTritWord>(codes, words);
    case 4:
      return PackRow<16, PackWord<2>>(codes, words);
    case 8:
      return PackRow<10, PackWord<3>>(codes, words);
    case 16:
      return PackRow<8, PackWord<4>>(codes, words);
    default:
      CheckFailed(__FILE__, __LINE__, "a codebook has 2, 3, 4, 8 or 16 entries");
  }
}

bool EncodeTurboQuantRow(const TurboQuantSpec& spec, std::span<const float> row,
                         std::span<const float> signs, uint32_t* words, uint16_t* scales,
                         TurboQuantScratch& scratch) {
  const size_t cols = row.size();
  const int group = spec.group;
  TQ_CHECK(group > 0 && cols % static_cast<size_t>(group) == 0);
  scratch.values.assign(row.begin(), row.end());
  scratch.codes.resize(cols);
  float* x = scratch.values.data();
  if (spec.rotate) {
    TQ_CHECK(signs.size() == cols);
    for (size_t i = 0; i < cols; ++i) x[i] *= signs[i];
    HadamardForward(scratch.values);
  }
  const float* boundaries = LloydMaxCodebook(spec.codebook_entries).boundaries.data();
  const CountFunction count = CountFunctionFor(spec.codebook_entries);
  const int64_t num_groups = static_cast<int64_t>(cols) / group;
  bool finite = true;
  for (int64_t first = 0; first < num_groups; first += kParallelGroups) {
    const int n = static_cast<int>(std::min<int64_t>(kParallelGroups, num_groups - first));
    float rms[kParallelGroups];
    GroupRms(x + first * group, group, n, rms);
    for (int j = 0; j < n; ++j) {
      float* values = x + (first + j) * group;
      float divisor = rms[j];  // not rounded: the reference's
      scales[first + j] = F32ToF16(rms[j]);
      if (spec.search_scale) {
        const std::span<const float> all(values, static_cast<size_t>(group));
        scales[first + j] = SearchTurboQuantScale(spec.codebook_entries, all, rms[j]);
        divisor = F16ToF32(scales[first + j]);
      }
      for (int i = 0; i < group; ++i) values[i] /= divisor;
      count(boundaries, values, group, &scratch.codes[(first + j) * group]);
      finite = finite && IsFiniteF16(scales[first + j]);
    }
  }
  PackTurboQuantCodes(spec.codebook_entries, scratch.codes, words);
  return finite;
}

}  // namespace tq
