// The 512-bit vectors of AVX-512 with VNNI and VBMI, for int_matmul_tile.h. vpermb reads six bits
// of an index, so 64-entry tables that repeat ignore the bits of neighbouring codes and no mask is
// needed. Included only by leaf files.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/int_matmul_tile.h"
#include "backend/cpu/kernels/value_dot.h"

namespace tq {
namespace {

// Bits [shift, shift + width) of the index choose the entry.
// smallest: what becomes 0.
TQ_INLINE __m512i Table(const int8_t* integers, int smallest, int shift, int mask) {
  alignas(64) uint8_t table[64];
  for (int i = 0; i < 64; ++i)
    table[i] = static_cast<uint8_t>(integers[(i >> shift) & mask] - smallest);
  return _mm512_load_si512(table);
}

TQ_INLINE __m512i LoadVector(const std::byte* p) { return _mm512_loadu_si512(p); }

template <int kBits>
struct Avx512Decoder;

template <>
struct Avx512Decoder<4> {
  using Unit = __m512i;
  __m512i table;
  Avx512Decoder(const int8_t* integers, int smallest) : table(Table(integers, smallest, 0, 15)) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadVector(p); }
  inline __attribute__((always_inline)) __m512i Step(Unit v, int t) const {
    return _mm512_permutexvar_epi8(t == 0 ? v : _mm512_srli_epi16(v, 4), table);
  }
};

template <>
struct Avx512Decoder<2> {
  using Unit = __m512i;
  __m512i table0, table1, table2;
  Avx512Decoder(const int8_t* integers, int smallest)
      : table0(Table(integers, smallest, 0, 3)),
        table1(Table(integers, smallest, 2, 3)),
        table2(Table(integers, smallest, 4, 3)) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadVector(p); }
  inline __attribute__((always_inline)) __m512i Step(Unit v, int t) const {
    if (t == 0) return _mm512_permutexvar_epi8(v, table0);
    if (t == 1) return _mm512_permutexvar_epi8(v, table1);
    if (t == 2) return _mm512_permutexvar_epi8(v, table2);
    return _mm512_permutexvar_epi8(_mm512_srli_epi16(v, 6), table0);
  }
};

template <>
struct Avx512Decoder<3> {
  struct Unit {
    __m512i a, b, c;
  };
  __m512i low, high;
  Avx512Decoder(const int8_t* integers, int smallest)
      : low(Table(integers, smallest, 0, 7)), high(Table(integers, smallest, 3, 7)) {}
  TQ_INLINE Unit Load(const std::byte* p) {
    return {LoadVector(p), LoadVector(p + 64), LoadVector(p + 128)};
  }
  // The two codes spread over bits 6 and 7 of a, b and c, gathered into bits 0 - 5.
  TQ_INLINE __m512i Spread(const Unit& v) {
    constexpr int kSelect = 0xCA;  // first ? second : third
    const __m512i bc = _mm512_ternarylogic_epi32(_mm512_set1_epi8(0x0F), _mm512_srli_epi16(v.b, 4),
                                                 _mm512_srli_epi16(v.c, 2), kSelect);
    return _mm512_ternarylogic_epi32(_mm512_set1_epi8(0x03), _mm512_srli_epi16(v.a, 6), bc,
                                     kSelect);
  }
  inline __attribute__((always_inline)) __m512i Step(const Unit& v, int t) const {
    const __m512i raw = t < 2 ? v.a : t < 4 ? v.b : t < 6 ? v.c : Spread(v);
    return _mm512_permutexvar_epi8(raw, t % 2 == 0 ? low : high);
  }
};

template <>
struct Avx512Decoder<8> {
  using Unit = __m512i;
  Avx512Decoder(const int8_t*, int) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadVector(p); }
  inline __attribute__((always_inline)) __m512i Step(Unit v, int) const { return v; }
};

struct Avx512 {
  using Vi = __m512i;
  using Vf = __m512;
  static constexpr int kRows = 16;
  // One stream of codes: memory likes it, and from the cache two tiles that share q are no faster.
  static constexpr int PartsAtOnce(int) { return 1; }
  // A dot has a latency of 4 or 5 cycles: a few sums alone would wait for themselves.
  static constexpr int ChainsPerSum(int tokens) { return tokens == 1 ? 4 : tokens == 2 ? 2 : 1; }
  // Most of what decoding 2 bits costs is not hidden behind memory: a short body is 1 % faster.
  template <int kBits>
  static constexpr int UnitsAtOnce(int) {
    return kBits == 2 ? 2 : 8;
  }
  template <int kBits>
  using Decoder = Avx512Decoder<kBits>;

  // Compilers gather the prefetches of several units in one place, and there are more of them than
  // the first cache can wait for. Where these are most of a unit's loads they keep their places.
  template <int kBits>
  static constexpr bool InOrder() {
    return kBits == 2 || kBits == 4;
  }
  // To the second cache from afar, to the first one from near by. The window is what keeps memory
  // at work while the decoding of 2 bits falls behind for a moment.
  template <int kBits>
  TQ_INLINE void Prefetch(const std::byte* p) {
    if constexpr (InOrder<kBits>()) {
      __asm__ volatile("prefetcht1 %0" : : "m"(p[12288]));
      __asm__ volatile("prefetcht0 %0" : : "m"(p[4096]));
    } else if constexpr (kBits == 3) {
      __builtin_prefetch(p + 12288, 0, 2);
      __builtin_prefetch(p + 3072, 0, 3);
    } else {
      PrefetchAhead(p);
    }
  }
  TQ_INLINE void PrefetchScales(const std::byte* p) {
    __builtin_prefetch(p + 2048, 0, 2);
    __builtin_prefetch(p + 1024, 0, 3);
  }
  // sum += w times the four bytes at q, in every lane. One instruction that reads memory: compilers
  // make a load and a dot of it, and then only half as many units are under way at a time.
  template <int kBits>
  TQ_INLINE void DotFour(Vi& sum, Vi w, const int8_t* q) {
    using Four = int32_t __attribute__((may_alias, aligned(1)));
    const auto& four = *reinterpret_cast<const Four*>(q);
    if constexpr (InOrder<kBits>()) {
      __asm__ volatile("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(four));
    } else {
      __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(four));
    }
  }
  // What the table's bytes leave out of each integer.
  TQ_INLINE int TableBase(const int8_t* integers) { return SmallestInteger(integers); }

  template <int kBits, int kM, int kSums>
  TQ_INLINE void DotUnit(const Decoder<kBits>& decoder, const std::byte* codes, int64_t,
                         const int8_t* q, Vi (&acc)[1][kSums]) {
    const typename Decoder<kBits>::Unit unit = decoder.Load(codes);
#pragma GCC unroll 8
    for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
      const Vi w = decoder.Step(unit, t);
#pragma GCC unroll 8
      for (int m = 0; m < kM; ++m) {
        DotFour<kBits>(acc[0][t % ChainsPerSum(kM) * kM + m], w, q + (t * kM + m) * 4);
      }
    }
  }

  // Weights are the unsigned operand, so values are signed: tables as they are, bytes less 128.
  template <int kBits>
  using ValueDecoder = Avx512Decoder<kBits>;
  template <int kBits>
  TQ_INLINE Avx512Decoder<kBits> MakeValueDecoder(const int8_t* integers) {
    return {integers, 0};
  }
  template <int kBits>
  TQ_INLINE int32_t ValueStart(const ValueArgs&, int, int) {
    return 0;
  }
  template <int kBits, int kSums>
  TQ_INLINE void DotValues(const Avx512Decoder<kBits>& decoder, const std::byte* codes,
                           const uint8_t* weights, Vi (&acc)[kSums]) {
    const auto unit = decoder.Load(codes);
#pragma GCC unroll 8
    for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
      Vi v = decoder.Step(unit, t);
      if constexpr (kBits == 8) v = _mm512_xor_si512(v, _mm512_set1_epi8(static_cast<char>(0x80)));
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) {
        int32_t four;
        __builtin_memcpy(&four, weights + (t * kSums + i) * 4, 4);
        acc[i] = _mm512_dpbusd_epi32(acc[i], _mm512_set1_epi32(four), v);
      }
    }
  }

  struct Codebook {
    Vf values;
    explicit Codebook(const float* codebook) : values(_mm512_loadu_ps(codebook)) {}
    inline __attribute__((always_inline)) Vf Get(Vi codes) const {
      return _mm512_permutexvar_ps(codes, values);
    }
  };
  template <int kBits>
  TQ_INLINE Vi ShiftRight(Vi v) {
    return _mm512_srli_epi32(v, kBits);
  }

  TQ_INLINE __mmask16 Mask(int rows) { return static_cast<__mmask16>((1u << rows) - 1u); }
  TQ_INLINE Vi Set(int32_t value) { return _mm512_set1_epi32(value); }
  TQ_INLINE Vi AddInt(Vi a, Vi b) { return _mm512_add_epi32(a, b); }
  TQ_INLINE Vf SetFloat(float value) { return _mm512_set1_ps(value); }
  TQ_INLINE Vf ZeroFloat() { return _mm512_setzero_ps(); }
  TQ_INLINE Vf ToFloat(Vi v) { return _mm512_cvtepi32_ps(v); }
  TQ_INLINE Vf Fma(Vf a, Vf b, Vf c) { return _mm512_fmadd_ps(a, b, c); }
  TQ_INLINE Vf Mul(Vf a, Vf b) { return _mm512_mul_ps(a, b); }
  TQ_INLINE Vf Add(Vf a, Vf b) { return _mm512_add_ps(a, b); }
  TQ_INLINE Vf LoadScales(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  TQ_INLINE Vf LoadBf16(const uint16_t* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  TQ_INLINE Vf LoadInt8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }
  TQ_INLINE Vf LoadAll(const float* p) { return _mm512_loadu_ps(p); }
  TQ_INLINE Vf LoadRows(const float* p, int rows) { return _mm512_maskz_loadu_ps(Mask(rows), p); }
  TQ_INLINE void StoreRows(float* p, Vf v, int rows) { _mm512_mask_storeu_ps(p, Mask(rows), v); }
  TQ_INLINE void StoreAll(float* p, Vf v) { _mm512_storeu_ps(p, v); }
};

}  // namespace
}  // namespace tq
