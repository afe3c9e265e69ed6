// AVX2.
#include "backend/cpu/kernels/int_matmul_avx2.h"

#include "backend/cpu/kernels/value_dot.h"

namespace tq {
namespace {

TQ_INLINE bool HasSmallTable(const int8_t* integers) {
  const int smallest = SmallestInteger(integers);
  for (int i = 0; i < 16; ++i) {
    if (integers[i] - smallest > 32) return false;
  }
  return true;
}

void MatMul(const IntMatMulArgs& a, int64_t tile_begin, int64_t tile_end) {
  using V = Avx2<false>;
  using Small = Avx2<true>;
  const bool small_table = a.layout_bits == 2 && HasSmallTable(a.integers);
  const TileFunction* functions =
      a.layout_bits == 8  ? a.grid != nullptr ? TileFunctionsForGroup<V, GridFloats<V>, 8>(a.group)
                                              : TileFunctionsForGroup<V, HalfScales<V>, 8>(a.group)
       : a.grid != nullptr ? TileFunctionsFor<V, Small, GridFloats<V>>(a, small_table)
                          : TileFunctionsFor<V, Small, HalfScales<V>>(a, small_table);
  RunTiles<V>(a, functions, tile_begin, tile_end);
}

}  // namespace

extern const IntOps kIntOpsAvx2;
const IntOps kIntOpsAvx2 = {MatMul,
                            /*matmul_wide=*/nullptr,
                            DecodeAnyTile<Avx2<false>>,
                            AddValues<Avx2<false>>,
                            /*unsigned_table=*/true,
                            /*unsigned_bytes=*/false};

}  // namespace tq
