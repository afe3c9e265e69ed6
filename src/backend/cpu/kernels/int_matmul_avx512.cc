// AVX-512 with VNNI and VBMI.
#include "backend/cpu/kernels/int_matmul_avx512.h"

#include "backend/cpu/kernels/value_dot.h"

namespace tq {
namespace {

void MatMul(const IntMatMulArgs& a, int64_t tile_begin, int64_t tile_end) {
  const TileFunction* functions =
      a.layout_bits == 8  ? a.grid != nullptr
                                ? TileFunctionsForGroup<Avx512, GridFloats<Avx512>, 8>(a.group)
                                : TileFunctionsForGroup<Avx512, HalfScales<Avx512>, 8>(a.group)
       : a.grid != nullptr ? TileFunctionsFor<Avx512, Avx512, GridFloats<Avx512>>(a, false)
                          : TileFunctionsFor<Avx512, Avx512, HalfScales<Avx512>>(a, false);
  RunTiles<Avx512>(a, functions, tile_begin, tile_end);
}

}  // namespace

extern const IntOps kIntOpsAvx512;
const IntOps kIntOpsAvx512 = {MatMul,
                              /*matmul_wide=*/nullptr,
                              DecodeAnyTile<Avx512>,
                              AddValues<Avx512>,
                              /*unsigned_table=*/true,
                              /*unsigned_bytes=*/true};

}  // namespace tq
