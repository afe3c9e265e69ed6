// The AVX2 kernels' half of the skeleton, for leaf files that have at least AVX2: vpshufb tables of
// 16 entries (an entry may ignore upper bits of the index), vpmaddubsw dot. vpmaddubsw adds two
// products in int16 and saturates: the unsigned table is at most 126, so one step fits (2 * 126 *
// 127 = 32004); with a table of at most 32 four steps do.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/int_matmul_tile.h"

namespace tq {
namespace {

// smallest: what becomes 0.
TQ_INLINE __m256i Table(const int8_t* integers, int smallest, int shift, int mask) {
  alignas(32) uint8_t table[32];
  for (int i = 0; i < 32; ++i)
    table[i] = static_cast<uint8_t>(integers[((i & 15) >> shift) & mask] - smallest);
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(table));
}

TQ_INLINE __m256i LoadHalf(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
TQ_INLINE __m256i And(__m256i v, char mask) { return _mm256_and_si256(v, _mm256_set1_epi8(mask)); }

template <int kBits>
struct Avx2Decoder;

template <>
struct Avx2Decoder<4> {
  using Unit = __m256i;
  __m256i table;
  Avx2Decoder(const int8_t* integers, int smallest) : table(Table(integers, smallest, 0, 15)) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadHalf(p); }
  inline __attribute__((always_inline)) __m256i Step(Unit v, int t) const {
    return _mm256_shuffle_epi8(table, And(t == 0 ? v : _mm256_srli_epi16(v, 4), 0x0F));
  }
};

template <>
struct Avx2Decoder<2> {
  using Unit = __m256i;
  __m256i low, high;
  Avx2Decoder(const int8_t* integers, int smallest)
      : low(Table(integers, smallest, 0, 3)), high(Table(integers, smallest, 2, 3)) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadHalf(p); }
  inline __attribute__((always_inline)) __m256i Step(Unit v, int t) const {
    const __m256i nibble = And(t < 2 ? v : _mm256_srli_epi16(v, 4), 0x0F);
    return _mm256_shuffle_epi8(t % 2 == 0 ? low : high, nibble);
  }
};

template <>
struct Avx2Decoder<3> {
  struct Unit {
    __m256i a, b, c;
  };
  __m256i table;
  Avx2Decoder(const int8_t* integers, int smallest) : table(Table(integers, smallest, 0, 7)) {}
  TQ_INLINE Unit Load(const std::byte* p) {
    return {LoadHalf(p), LoadHalf(p + 64), LoadHalf(p + 128)};
  }
  // The two codes spread over bits 6 and 7 of a, b and c, gathered into bits 0 - 5.
  TQ_INLINE __m256i Spread(const Unit& v) {
    return _mm256_or_si256(And(_mm256_srli_epi16(v.a, 6), 0x03),
                           _mm256_or_si256(And(_mm256_srli_epi16(v.b, 4), 0x0C),
                                           And(_mm256_srli_epi16(v.c, 2), 0x30)));
  }
  inline __attribute__((always_inline)) __m256i Step(const Unit& v, int t) const {
    const __m256i raw = t < 2 ? v.a : t < 4 ? v.b : t < 6 ? v.c : Spread(v);
    return _mm256_shuffle_epi8(table, And(t % 2 == 0 ? raw : _mm256_srli_epi16(raw, 3), 0x0F));
  }
};

// As signed bytes.
template <>
struct Avx2Decoder<8> {
  using Unit = __m256i;
  Avx2Decoder(const int8_t*, int) {}
  TQ_INLINE Unit Load(const std::byte* p) {
    return _mm256_xor_si256(LoadHalf(p), _mm256_set1_epi8(static_cast<char>(0x80)));
  }
  inline __attribute__((always_inline)) __m256i Step(Unit v, int) const { return v; }
};

// kSmallTable: no entry above 32.
template <bool kSmallTable>
struct Avx2 {
  using Vi = __m256i;
  using Vf = __m256;
  static constexpr int kRows = 8;
  static constexpr int PartsAtOnce(int tokens) { return tokens < 4 ? 2 : 1; }  // 16 registers
  static constexpr int ChainsPerSum(int) { return 1; }
  // 32 columns. Wider bodies make GCC hoist loads and spill: with more tokens already one unit
  // does.
  template <int kBits>
  static constexpr int UnitsAtOnce(int tokens) {
    return tokens < 4 ? 32 / UnitShape<kBits>::kColumns : 1;
  }
  template <int kBits>
  using Decoder = Avx2Decoder<kBits>;
  template <int kBits>
  TQ_INLINE void Prefetch(const std::byte* p) {
    __builtin_prefetch(p + 4096, 0, 3);
  }
  TQ_INLINE void PrefetchScales(const std::byte* p) { PrefetchScalesAhead(p); }
  // What the table's bytes leave out of each integer.
  TQ_INLINE int TableBase(const int8_t* integers) { return SmallestInteger(integers); }

  TQ_INLINE Vi Broadcast(const int8_t* q) {
    int32_t four;
    __builtin_memcpy(&four, q, 4);
    return _mm256_set1_epi32(four);
  }
  TQ_INLINE Vi AddPairs(Vi acc, Vi sums) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
  }

  // Weights are the unsigned operand, so values are signed: two products of 255 * 63 do not
  // saturate, nor those of 7-bit weights and bytes.
  template <int kBits>
  using ValueDecoder = Avx2Decoder<kBits>;
  template <int kBits>
  TQ_INLINE Avx2Decoder<kBits> MakeValueDecoder(const int8_t* integers) {
    return {integers, 0};
  }
  template <int kBits>
  TQ_INLINE int32_t ValueStart(const ValueArgs&, int, int) {
    return 0;
  }
  template <int kBits, int kSums>
  TQ_INLINE void DotValues(const Avx2Decoder<kBits>& decoder, const std::byte* codes,
                           const uint8_t* weights, Vi (&acc)[kSums]) {
    const auto unit = decoder.Load(codes);
#pragma GCC unroll 8
    for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
      const Vi v = decoder.Step(unit, t);
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) {
        const Vi w = Broadcast(reinterpret_cast<const int8_t*>(weights) + (t * kSums + i) * 4);
        acc[i] = AddPairs(acc[i], _mm256_maddubs_epi16(w, v));
      }
    }
  }

  // One part of the rows.
  template <int kBits, int kM>
  TQ_INLINE void DotPart(const Decoder<kBits>& decoder, const std::byte* codes, const int8_t* q,
                         Vi* acc) {
    const auto unit = decoder.Load(codes);
    if constexpr (kSmallTable && kBits == 2) {
      const Vi w0 = decoder.Step(unit, 0), w1 = decoder.Step(unit, 1);
      const Vi w2 = decoder.Step(unit, 2), w3 = decoder.Step(unit, 3);
#pragma GCC unroll 8
      for (int m = 0; m < kM; ++m) {
        const Vi s01 = _mm256_add_epi16(_mm256_maddubs_epi16(w0, Broadcast(q + m * 4)),
                                        _mm256_maddubs_epi16(w1, Broadcast(q + (kM + m) * 4)));
        const Vi s23 = _mm256_add_epi16(_mm256_maddubs_epi16(w2, Broadcast(q + (2 * kM + m) * 4)),
                                        _mm256_maddubs_epi16(w3, Broadcast(q + (3 * kM + m) * 4)));
        acc[m] = AddPairs(acc[m], _mm256_add_epi16(s01, s23));
      }
    } else if constexpr (kBits == 8) {
      // The sign moves to q: |w| <= 128, and 2 * 128 * 127 does not saturate.
      const Vi magnitude = _mm256_abs_epi8(unit);
#pragma GCC unroll 8
      for (int m = 0; m < kM; ++m) {
        const Vi x = _mm256_sign_epi8(Broadcast(q + m * 4), unit);
        acc[m] = AddPairs(acc[m], _mm256_maddubs_epi16(magnitude, x));
      }
    } else {
#pragma GCC unroll 8
      for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
        const Vi w = decoder.Step(unit, t);
#pragma GCC unroll 8
        for (int m = 0; m < kM; ++m) {
          acc[m] = AddPairs(acc[m], _mm256_maddubs_epi16(w, Broadcast(q + (t * kM + m) * 4)));
        }
      }
    }
  }

  template <int kBits, int kM, int kParts, int kSums>
  TQ_INLINE void DotUnit(const Decoder<kBits>& decoder, const std::byte* codes, int64_t stride,
                         const int8_t* q, Vi (&acc)[kParts][kSums]) {
#pragma GCC unroll 2
    for (int i = 0; i < kParts; ++i) DotPart<kBits, kM>(decoder, codes + i * stride, q, acc[i]);
  }

  struct Codebook {
    Vf low, high;
    explicit Codebook(const float* codebook)
        : low(_mm256_loadu_ps(codebook)), high(_mm256_loadu_ps(codebook + 8)) {}
    inline __attribute__((always_inline)) Vf Get(Vi codes) const {
      const Vf bit3 = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28));
      return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, codes),
                              _mm256_permutevar8x32_ps(high, codes), bit3);
    }
  };
  template <int kBits>
  TQ_INLINE Vi ShiftRight(Vi v) {
    return _mm256_srli_epi32(v, kBits);
  }

  TQ_INLINE Vi Mask(int rows) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(rows), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  TQ_INLINE Vi Set(int32_t value) { return _mm256_set1_epi32(value); }
  TQ_INLINE Vf SetFloat(float value) { return _mm256_set1_ps(value); }
  TQ_INLINE Vf ZeroFloat() { return _mm256_setzero_ps(); }
  TQ_INLINE Vf ToFloat(Vi v) { return _mm256_cvtepi32_ps(v); }
  TQ_INLINE Vf Fma(Vf a, Vf b, Vf c) { return _mm256_fmadd_ps(a, b, c); }
  TQ_INLINE Vf Mul(Vf a, Vf b) { return _mm256_mul_ps(a, b); }
  TQ_INLINE Vf Add(Vf a, Vf b) { return _mm256_add_ps(a, b); }
  TQ_INLINE Vf LoadScales(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  TQ_INLINE Vf LoadBf16(const uint16_t* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  TQ_INLINE Vf LoadInt8(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
  TQ_INLINE Vf LoadAll(const float* p) { return _mm256_loadu_ps(p); }
  TQ_INLINE Vf LoadRows(const float* p, int rows) { return _mm256_maskload_ps(p, Mask(rows)); }
  TQ_INLINE void StoreRows(float* p, Vf v, int rows) { _mm256_maskstore_ps(p, Mask(rows), v); }
  TQ_INLINE void StoreAll(float* p, Vf v) { _mm256_storeu_ps(p, v); }
};

}  // namespace
}  // namespace tq
