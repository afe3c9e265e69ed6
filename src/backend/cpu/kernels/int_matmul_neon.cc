// NEON with dotprod: sdot takes the signed table as it is, so sums start from 0.
#include <arm_neon.h>

#include "backend/cpu/kernels/int_matmul_tile.h"
#include "backend/cpu/kernels/value_dot.h"

namespace tq {
namespace {

// smallest: what becomes 0.
TQ_INLINE int8x16_t Table(const int8_t* integers, int smallest, int shift, int mask) {
  int8_t table[16];
  for (int i = 0; i < 16; ++i) {
    table[i] = static_cast<int8_t>(integers[(i >> shift) & mask] - smallest);
  }
  return vld1q_s8(table);
}

TQ_INLINE uint8x16_t LoadQuarter(const std::byte* p) {
  return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
}
TQ_INLINE uint8x16_t And(uint8x16_t v, uint8_t mask) { return vandq_u8(v, vdupq_n_u8(mask)); }
TQ_INLINE int32x4_t Lookup(int8x16_t table, uint8x16_t index) {
  return vreinterpretq_s32_s8(vqtbl1q_s8(table, index));
}

template <int kBits>
struct NeonDecoder;

template <>
struct NeonDecoder<4> {
  using Unit = uint8x16_t;
  int8x16_t table;
  NeonDecoder(const int8_t* integers, int smallest) : table(Table(integers, smallest, 0, 15)) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadQuarter(p); }
  inline __attribute__((always_inline)) int32x4_t Step(Unit v, int t) const {
    return Lookup(table, t == 0 ? And(v, 0x0F) : vshrq_n_u8(v, 4));
  }
};

template <>
struct NeonDecoder<2> {
  using Unit = uint8x16_t;
  int8x16_t low, high;
  NeonDecoder(const int8_t* integers, int smallest)
      : low(Table(integers, smallest, 0, 3)), high(Table(integers, smallest, 2, 3)) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadQuarter(p); }
  inline __attribute__((always_inline)) int32x4_t Step(Unit v, int t) const {
    return Lookup(t % 2 == 0 ? low : high, t < 2 ? And(v, 0x0F) : vshrq_n_u8(v, 4));
  }
};

template <>
struct NeonDecoder<3> {
  struct Unit {
    uint8x16_t a, b, c;
  };
  int8x16_t table;
  NeonDecoder(const int8_t* integers, int smallest) : table(Table(integers, smallest, 0, 7)) {}
  TQ_INLINE Unit Load(const std::byte* p) {
    return {LoadQuarter(p), LoadQuarter(p + 64), LoadQuarter(p + 128)};
  }
  // The two codes spread over bits 6 and 7 of a, b and c, gathered into bits 0 - 5.
  TQ_INLINE uint8x16_t Spread(const Unit& v) {
    return vorrq_u8(vshrq_n_u8(v.a, 6),
                    vorrq_u8(And(vshrq_n_u8(v.b, 4), 0x0C), And(vshrq_n_u8(v.c, 2), 0x30)));
  }
  inline __attribute__((always_inline)) int32x4_t Step(const Unit& v, int t) const {
    const uint8x16_t raw = t < 2 ? v.a : t < 4 ? v.b : t < 6 ? v.c : Spread(v);
    return Lookup(table, And(t % 2 == 0 ? raw : vshrq_n_u8(raw, 3), 0x07));
  }
};

// As signed bytes.
template <>
struct NeonDecoder<8> {
  using Unit = uint8x16_t;
  NeonDecoder(const int8_t*, int) {}
  TQ_INLINE Unit Load(const std::byte* p) { return veorq_u8(LoadQuarter(p), vdupq_n_u8(0x80)); }
  inline __attribute__((always_inline)) int32x4_t Step(Unit v, int) const {
    return vreinterpretq_s32_u8(v);
  }
};

struct Neon {
  using Vi = int32x4_t;
  using Vf = float32x4_t;
  static constexpr int kRows = 4;
  static constexpr int PartsAtOnce(int tokens) {
    return tokens < 3 ? 4 : tokens < 5 ? 2 : 1;
  }  // 32 registers
  static constexpr int ChainsPerSum(int) { return 1; }
  template <int kBits>
  static constexpr int UnitsAtOnce(int tokens) {
    return tokens < 3 ? 8 : 1;
  }
  template <int kBits>
  using Decoder = NeonDecoder<kBits>;
  template <int kBits>
  TQ_INLINE void Prefetch(const std::byte* p) {
    PrefetchAhead(p);
  }
  TQ_INLINE void PrefetchScales(const std::byte* p) { PrefetchScalesAhead(p); }
  // What the table's bytes leave out of each integer.
  TQ_INLINE int TableBase(const int8_t*) { return 0; }

  template <int kBits, int kM, int kParts, int kSums>
  TQ_INLINE void DotUnit(const Decoder<kBits>& decoder, const std::byte* codes, int64_t stride,
                         const int8_t* q, Vi (&acc)[kParts][kSums]) {
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) {
      const auto unit = decoder.Load(codes + i * stride);
#pragma GCC unroll 8
      for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
        const int8x16_t w = vreinterpretq_s8_s32(decoder.Step(unit, t));
#pragma GCC unroll 8
        for (int m = 0; m < kM; ++m) {
          int32_t four;
          __builtin_memcpy(&four, q + (t * kM + m) * 4, 4);
          acc[i][m] = vdotq_s32(acc[i][m], w, vreinterpretq_s8_s32(vdupq_n_s32(four)));
        }
      }
    }
  }

  // Both operands unsigned (values from 0 on: sums start with what that adds), but for bytes, whose
  // weights have 7 bits and so may be signed.
  template <int kBits>
  using ValueDecoder = NeonDecoder<kBits>;
  template <int kBits>
  TQ_INLINE NeonDecoder<kBits> MakeValueDecoder(const int8_t* integers) {
    return {integers, SmallestInteger(integers)};
  }
  template <int kBits>
  TQ_INLINE int32_t ValueStart(const ValueArgs& a, int row, int num_rows) {
    if (kBits == 8) return 0;
    int32_t sum = 0;
    for (int t = 0; t < kValueColumns / 4; ++t) {
      for (int i = 0; i < 4; ++i) sum += a.weights[(t * num_rows + row) * 4 + i];
    }
    return SmallestInteger(a.integers) * sum;
  }
  template <int kBits, int kSums>
  TQ_INLINE void DotValues(const NeonDecoder<kBits>& decoder, const std::byte* codes,
                           const uint8_t* weights, Vi (&acc)[kSums]) {
    const auto unit = decoder.Load(codes);
#pragma GCC unroll 8
    for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
      const int32x4_t v = decoder.Step(unit, t);
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) {
        int32_t four;
        __builtin_memcpy(&four, weights + (t * kSums + i) * 4, 4);
        const int32x4_t w = vdupq_n_s32(four);
        if constexpr (kBits == 8) {
          acc[i] = vdotq_s32(acc[i], vreinterpretq_s8_s32(v), vreinterpretq_s8_s32(w));
        } else {
          acc[i] = vreinterpretq_s32_u32(vdotq_u32(
              vreinterpretq_u32_s32(acc[i]), vreinterpretq_u8_s32(v), vreinterpretq_u8_s32(w)));
        }
      }
    }
  }

  struct Codebook {
    const float* values;
    explicit Codebook(const float* codebook) : values(codebook) {}
    inline __attribute__((always_inline)) Vf Get(Vi codes) const {
      const float four[4] = {
          values[vgetq_lane_s32(codes, 0) & 15], values[vgetq_lane_s32(codes, 1) & 15],
          values[vgetq_lane_s32(codes, 2) & 15], values[vgetq_lane_s32(codes, 3) & 15]};
      return vld1q_f32(four);
    }
  };
  template <int kBits>
  TQ_INLINE Vi ShiftRight(Vi v) {
    return vshrq_n_s32(v, kBits);
  }

  TQ_INLINE Vi Set(int32_t value) { return vdupq_n_s32(value); }
  TQ_INLINE Vf SetFloat(float value) { return vdupq_n_f32(value); }
  TQ_INLINE Vf ZeroFloat() { return vdupq_n_f32(0.0f); }
  TQ_INLINE Vf ToFloat(Vi v) { return vcvtq_f32_s32(v); }
  TQ_INLINE Vf Fma(Vf a, Vf b, Vf c) { return vfmaq_f32(c, a, b); }
  TQ_INLINE Vf Mul(Vf a, Vf b) { return vmulq_f32(a, b); }
  TQ_INLINE Vf Add(Vf a, Vf b) { return vaddq_f32(a, b); }
  TQ_INLINE Vf LoadScales(const uint16_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
  }
  TQ_INLINE Vf LoadBf16(const uint16_t* p) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16));
  }
  TQ_INLINE Vf LoadInt8(const int8_t* p) {
    int8_t eight[8] = {p[0], p[1], p[2], p[3], 0, 0, 0, 0};
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(eight)))));
  }
  TQ_INLINE Vf LoadAll(const float* p) { return vld1q_f32(p); }
  TQ_INLINE Vf LoadRows(const float* p, int rows) {
    float four[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int i = 0; i < rows; ++i) four[i] = p[i];
    return vld1q_f32(four);
  }
  TQ_INLINE void StoreRows(float* p, Vf v, int rows) {
    float four[4];
    vst1q_f32(four, v);
    for (int i = 0; i < rows; ++i) p[i] = four[i];
  }
  TQ_INLINE void StoreAll(float* p, Vf v) { vst1q_f32(p, v); }
};

void MatMul(const IntMatMulArgs& a, int64_t tile_begin, int64_t tile_end) {
  const TileFunction* functions =
      a.layout_bits == 8  ? a.grid != nullptr
                                ? TileFunctionsForGroup<Neon, GridFloats<Neon>, 8>(a.group)
                                : TileFunctionsForGroup<Neon, HalfScales<Neon>, 8>(a.group)
       : a.grid != nullptr ? TileFunctionsFor<Neon, Neon, GridFloats<Neon>>(a, false)
                          : TileFunctionsFor<Neon, Neon, HalfScales<Neon>>(a, false);
  RunTiles<Neon>(a, functions, tile_begin, tile_end);
}

}  // namespace

extern const IntOps kIntOpsNeon;
const IntOps kIntOpsNeon = {MatMul,
                            /*matmul_wide=*/nullptr,
                            DecodeAnyTile<Neon>,
                            AddValues<Neon>,
                            /*unsigned_table=*/false,
                            /*unsigned_bytes=*/false};

}  // namespace tq
