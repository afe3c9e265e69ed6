// Stored rows to tiles at load: 16 rows at a time, a vector holds one dword of each. The plain code
// of repack.cc defines the result.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/repack_rows.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kRows = 16;
constexpr int64_t kWordsAtOnce = 16;  // a cache line of every row

using WordTag = hn::CappedTag<uint32_t, kRows>;
using Words = hn::VFromD<WordTag>;
constexpr int64_t kLanes = hn::MaxLanes(WordTag());

// out[i * 16 + r] = dword i of row r, i < n. Tensors start at any byte of a file.
HWY_INLINE void TransposeWords(const std::byte* rows, int64_t row_bytes, int64_t n, uint32_t* out) {
  const hn::CappedTag<uint32_t, 4> d;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int64_t r = 0; r < kRows; r += 4) {
      const auto load = [&](int64_t row) {
        const std::byte* from = rows + (r + row) * row_bytes + i * 4;
        return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, decltype(d)>(),
                                        reinterpret_cast<const uint8_t*>(from)));
      };
      const auto a = load(0), b = load(1), c = load(2), e = load(3);
      const auto low_ab = hn::InterleaveLower(d, a, b), high_ab = hn::InterleaveUpper(d, a, b);
      const auto low_ce = hn::InterleaveLower(d, c, e), high_ce = hn::InterleaveUpper(d, c, e);
      uint32_t* to = out + i * kRows + r;
      hn::StoreU(hn::ConcatLowerLower(d, low_ce, low_ab), d, to);
      hn::StoreU(hn::ConcatUpperUpper(d, low_ce, low_ab), d, to + kRows);
      hn::StoreU(hn::ConcatLowerLower(d, high_ce, high_ab), d, to + 2 * kRows);
      hn::StoreU(hn::ConcatUpperUpper(d, high_ce, high_ab), d, to + 3 * kRows);
    }
  }
  for (; i < n; ++i) {
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(out + i * kRows + r, rows + r * row_bytes + i * 4, 4);
    }
  }
}

// Exchanges the bits of `mask` with those `kShift` above them.
template <int kShift>
HWY_INLINE Words SwapBits(Words v, uint32_t mask) {
  const Words changed = hn::And(hn::Xor(v, hn::ShiftRight<kShift>(v)), hn::Set(WordTag(), mask));
  return hn::Xor(v, hn::Xor(changed, hn::ShiftLeft<kShift>(changed)));
}

// Eight codes of 4 bits: column 4 t + j from nibble 4 t + j to nibble 2 j + t.
HWY_INLINE Words SpreadNibbles(Words v) {
  return SwapBits<4>(SwapBits<8>(v, 0x0000FF00u), 0x00F000F0u);
}

// Sixteen codes of 2 bits: column 4 t + j from pair 4 t + j to pair 4 j + t, a transposition.
HWY_INLINE Words SpreadPairs(Words v) {
  return SwapBits<12>(SwapBits<6>(v, 0x00CC00CCu), 0x0000F0F0u);
}

// Sixteen codes of 1 bit as codes of 2.
HWY_INLINE Words WidenBits(Words v) {
  const auto step = [](Words w, Words moved, uint32_t mask) {
    return hn::And(hn::Or(w, moved), hn::Set(WordTag(), mask));
  };
  v = step(v, hn::ShiftLeft<8>(v), 0x00FF00FFu);
  v = step(v, hn::ShiftLeft<4>(v), 0x0F0F0F0Fu);
  v = step(v, hn::ShiftLeft<2>(v), 0x33333333u);
  return step(v, hn::ShiftLeft<1>(v), 0x55555555u);
}

// Bits [kFrom, kFrom + kWidth) to kTo and up, everything else 0.
template <int kFrom, int kTo, int kWidth>
HWY_INLINE Words MoveBits(Words v) {
  const Words mask = hn::Set(WordTag(), ((1u << kWidth) - 1u) << kTo);
  if constexpr (kFrom > kTo) return hn::And(hn::ShiftRight<kFrom - kTo>(v), mask);
  if constexpr (kFrom < kTo) return hn::And(hn::ShiftLeft<kTo - kFrom>(v), mask);
  return hn::And(v, mask);
}

// Bits [kSkip, kSkip + kWidth) of column kColumn of a run of 160 columns (16 words of ten 3-bit
// codes).
template <int kColumn, int kSkip, int kWidth, int kTo>
HWY_INLINE Words Code3(const uint32_t* words) {
  const Words word = hn::Load(WordTag(), words + kColumn / 10 * kRows);
  return MoveBits<kColumn % 10 * 3 + kSkip, kTo, kWidth>(word);
}

// Byte kByte of vector kVector of a unit of 32 columns that begins at kFirst: two codes, and two
// bits of the string that the codes 24 + kByte and 28 + kByte make.
template <int kFirst, int kVector, int kByte>
HWY_INLINE Words Byte3(const uint32_t* words) {
  constexpr int kTo = 8 * kByte;
  const Words own = hn::Or(Code3<kFirst + 8 * kVector + kByte, 0, 3, kTo>(words),
                           Code3<kFirst + 8 * kVector + 4 + kByte, 0, 3, kTo + 3>(words));
  constexpr int kLow = kFirst + 24 + kByte, kHigh = kLow + 4;
  if constexpr (kVector == 0) return hn::Or(own, Code3<kLow, 0, 2, kTo + 6>(words));
  if constexpr (kVector == 2) return hn::Or(own, Code3<kHigh, 1, 2, kTo + 6>(words));
  return hn::Or(own, hn::Or(Code3<kLow, 2, 1, kTo + 6>(words), Code3<kHigh, 0, 1, kTo + 7>(words)));
}

template <int kFirst, int kVector>
HWY_INLINE Words Vector3(const uint32_t* words) {
  return hn::Or(hn::Or(Byte3<kFirst, kVector, 0>(words), Byte3<kFirst, kVector, 1>(words)),
                hn::Or(Byte3<kFirst, kVector, 2>(words), Byte3<kFirst, kVector, 3>(words)));
}

template <int kUnit>
HWY_INLINE void Unit3(const uint32_t* words, uint32_t* out) {
  for (int64_t r = 0; r < kRows; r += kLanes) {
    const Words a = Vector3<32 * kUnit, 0>(words + r);
    const Words b = Vector3<32 * kUnit, 1>(words + r);
    const Words c = Vector3<32 * kUnit, 2>(words + r);
    hn::StoreU(a, WordTag(), out + r);
    hn::StoreU(b, WordTag(), out + kRows + r);
    hn::StoreU(c, WordTag(), out + 2 * kRows + r);
  }
}

// Units of 32 columns of 16 words.
void RepackWords3(const uint32_t* words, int64_t units, uint32_t* out) {
  constexpr int64_t kDwords = 3 * kRows;
  if (units > 0) Unit3<0>(words, out);
  if (units > 1) Unit3<1>(words, out + kDwords);
  if (units > 2) Unit3<2>(words, out + 2 * kDwords);
  if (units > 3) Unit3<3>(words, out + 3 * kDwords);
  if (units > 4) Unit3<4>(words, out + 4 * kDwords);
}

HWY_INLINE void RepackWord(const uint32_t* word, int entries, uint32_t* out) {
  for (int64_t r = 0; r < kRows; r += kLanes) {
    const Words v = hn::Load(WordTag(), word + r);
    if (entries == 2) {
      const Words low = hn::And(v, hn::Set(WordTag(), 0xFFFFu));
      hn::StoreU(SpreadPairs(WidenBits(low)), WordTag(), out + r);
      hn::StoreU(SpreadPairs(WidenBits(hn::ShiftRight<16>(v))), WordTag(), out + kRows + r);
    } else {
      hn::StoreU(entries == 4 ? SpreadPairs(v) : SpreadNibbles(v), WordTag(), out + r);
    }
  }
}

}  // namespace

void TransposeRows(const std::byte* rows, int64_t row_bytes, int64_t words, std::byte* tile) {
  TransposeWords(rows, row_bytes, words, reinterpret_cast<uint32_t*>(tile));
}

void RepackCodes(const std::byte* rows, int64_t row_bytes, int entries, int64_t num_cols,
                 std::byte* tile) {
  HWY_ALIGN uint32_t words[kWordsAtOnce * kRows] = {};
  auto* out = reinterpret_cast<uint32_t*>(tile);
  const int64_t per_word = entries == 2 ? 32 : entries == 4 ? 16 : entries == 8 ? 10 : 8;
  const int64_t num_words = (num_cols + per_word - 1) / per_word;
  for (int64_t first = 0; first < num_words; first += kWordsAtOnce) {
    const int64_t n = std::min(kWordsAtOnce, num_words - first);
    TransposeWords(rows + first * 4, row_bytes, n, words);
    if (entries == 8) {
      const int64_t units = std::min<int64_t>(5, (num_cols - first * 10) / 32);
      RepackWords3(words, units, out);
      out += units * 3 * kRows;
      continue;
    }
    const int64_t dwords = entries == 2 ? 2 * kRows : kRows;
    for (int64_t i = 0; i < n; ++i, out += dwords) RepackWord(words + i * kRows, entries, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();
