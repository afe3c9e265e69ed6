// The skeleton of IntOps::add_values that all integer leaf files share, beside int_matmul_tile.h:
// an instruction set also supplies
//   ValueDecoder<kBits>  a decoder whose bytes DotValues multiplies
//   DotValues            adds all steps of a unit times the weights of kRows rows to kRows sums
//   ValueStart(args, row)  what the sum of a row of weights starts with
// Included only by leaf files.
#pragma once

#include "backend/cpu/kernels/int_matmul_tile.h"

namespace tq {
namespace {

constexpr int kValueColumns = 64;  // tokens of a page

// kRows lanes of 16 dims for kM queries; of 8-bit values the weights are two halves of 7 bits.
template <class V, int kBits, int kM>
__attribute__((noinline)) void ValueTiles(const ValueArgs& a) {
  using Shape = UnitShape<kBits>;
  constexpr int kHalves = kBits == 8 ? 2 : 1;
  constexpr int kSums = kM * kHalves;
  constexpr int kUnits = kValueColumns / Shape::kColumns;
  const typename V::template ValueDecoder<kBits> decoder =
      V::template MakeValueDecoder<kBits>(a.integers);
  int32_t start[kSums];
  for (int i = 0; i < kSums; ++i) start[i] = V::template ValueStart<kBits>(a, i, kSums);
  typename V::Vf unit[kM], decay[kM];
#pragma GCC unroll 8
  for (int m = 0; m < kM; ++m) {
    unit[m] = V::SetFloat(a.units[m]);
    decay[m] = V::SetFloat(a.decay[m]);
  }
  const typename V::Vf high = V::SetFloat(128.0f);
  const std::byte* codes = a.codes;
#pragma GCC unroll 1
  for (int64_t tile = 0; tile < a.num_tiles; ++tile) {
#pragma GCC unroll 1
    for (int part = 0; part < 16; part += V::kRows) {
      typename V::Vi acc[kSums];
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) acc[i] = V::Set(start[i]);
      const std::byte* unit_codes = codes + part * 4;
      const uint8_t* weights = a.weights;
#pragma GCC unroll 16
      for (int u = 0; u < kUnits; ++u) {
#pragma GCC unroll 3
        for (int v = 0; v < Shape::kVectors; ++v)
          __builtin_prefetch(unit_codes + v * 64 + kPrefetchBytes, 0, 3);
        V::template DotValues<kBits, kSums>(decoder, unit_codes, weights, acc);
        unit_codes += Shape::kVectors * 64;
        weights += Shape::kSteps * 4 * kSums;
      }
#pragma GCC unroll 8
      for (int m = 0; m < kM; ++m) {
        typename V::Vf sum = V::ToFloat(acc[m * kHalves]);
        if constexpr (kHalves == 2) sum = V::Fma(high, sum, V::ToFloat(acc[m * kHalves + 1]));
        float* o = a.out[m] + tile * 16 + part;
        V::StoreAll(o, V::Fma(sum, unit[m], V::Mul(V::LoadAll(o), decay[m])));
      }
    }
    codes += CodeTileBytes(kBits, kValueColumns);
  }
}

template <class V, int kBits>
void ValuesForQueries(const ValueArgs& a) {
  switch (a.num_queries) {
    case 1:
      return ValueTiles<V, kBits, 1>(a);
    case 2:
      return ValueTiles<V, kBits, 2>(a);
    case 3:
      return ValueTiles<V, kBits, 3>(a);
    case 4:
      return ValueTiles<V, kBits, 4>(a);
    default:
      break;
  }
  if constexpr (kBits != 8) {
    switch (a.num_queries) {
      case 5:
        return ValueTiles<V, kBits, 5>(a);
      case 6:
        return ValueTiles<V, kBits, 6>(a);
      case 7:
        return ValueTiles<V, kBits, 7>(a);
      default:
        return ValueTiles<V, kBits, 8>(a);
    }
  }
}

template <class V>
void AddValues(const ValueArgs& a) {
  if (a.layout_bits == 2) return ValuesForQueries<V, 2>(a);
  if (a.layout_bits == 3) return ValuesForQueries<V, 3>(a);
  if (a.layout_bits == 4) return ValuesForQueries<V, 4>(a);
  ValuesForQueries<V, 8>(a);
}

}  // namespace
}  // namespace tq
