// AVX2 with AVX-VNNI (Intel since 2021 without AVX-512, AMD since Zen 5): one instruction for what
// takes AVX2 three, and nothing that could saturate.
#include "backend/cpu/kernels/int_matmul_avx2.h"
#include "backend/cpu/kernels/value_dot.h"

namespace tq {
namespace {

template <int kBits>
struct AvxVnniDecoder : Avx2Decoder<kBits> {
  using Avx2Decoder<kBits>::Avx2Decoder;
};

// As unsigned bytes.
template <>
struct AvxVnniDecoder<8> {
  using Unit = __m256i;
  AvxVnniDecoder(const int8_t*, int) {}
  TQ_INLINE Unit Load(const std::byte* p) { return LoadHalf(p); }
  inline __attribute__((always_inline)) __m256i Step(Unit v, int) const { return v; }
};

struct AvxVnni : Avx2<false> {
  static constexpr int PartsAtOnce(int tokens) { return tokens < 5 ? 2 : 1; }  // 16 registers
  // A dot has a latency of 5 cycles: a few sums alone would wait for themselves.
  static constexpr int ChainsPerSum(int tokens) { return tokens == 1 ? 2 : 1; }
  template <int kBits>
  using Decoder = AvxVnniDecoder<kBits>;

  TQ_INLINE Vi AddInt(Vi a, Vi b) { return _mm256_add_epi32(a, b); }

  template <int kBits, int kM, int kParts, int kSums>
  TQ_INLINE void DotUnit(const Decoder<kBits>& decoder, const std::byte* codes, int64_t stride,
                         const int8_t* q, Vi (&acc)[kParts][kSums]) {
    constexpr int kChains = kSums / kM;
    typename Decoder<kBits>::Unit units[kParts];
#pragma GCC unroll 2
    for (int i = 0; i < kParts; ++i) units[i] = decoder.Load(codes + i * stride);
#pragma GCC unroll 8
    for (int t = 0; t < UnitShape<kBits>::kSteps; ++t) {
      Vi w[kParts];
#pragma GCC unroll 2
      for (int i = 0; i < kParts; ++i) w[i] = decoder.Step(units[i], t);
#pragma GCC unroll 8
      for (int m = 0; m < kM; ++m) {
        const Vi x = Broadcast(q + (t * kM + m) * 4);
#pragma GCC unroll 2
        for (int i = 0; i < kParts; ++i) {
          Vi& sum = acc[i][t % kChains * kM + m];
          sum = _mm256_dpbusd_avx_epi32(sum, w[i], x);
        }
      }
    }
  }
};

void MatMul(const IntMatMulArgs& a, int64_t tile_begin, int64_t tile_end) {
  using V = AvxVnni;
  const TileFunction* functions =
      a.layout_bits == 8  ? a.grid != nullptr ? TileFunctionsForGroup<V, GridFloats<V>, 8>(a.group)
                                              : TileFunctionsForGroup<V, HalfScales<V>, 8>(a.group)
       : a.grid != nullptr ? TileFunctionsFor<V, V, GridFloats<V>>(a, false)
                          : TileFunctionsFor<V, V, HalfScales<V>>(a, false);
  RunTiles<V>(a, functions, tile_begin, tile_end);
}

}  // namespace

extern const IntOps kIntOpsAvxVnni;
const IntOps kIntOpsAvxVnni = {MatMul,
                               /*matmul_wide=*/nullptr,
                               DecodeAnyTile<Avx2<false>>,
                               AddValues<Avx2<false>>,
                               /*unsigned_table=*/true,
                               /*unsigned_bytes=*/true};

}  // namespace tq
