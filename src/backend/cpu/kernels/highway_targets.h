// Which instruction sets the Highway kernels are compiled for. Include before foreach_target.h.
// Only sets with a fused multiply-add qualify (docs/numerics.md): Highway's SSE and scalar targets
// round twice. On x86 the AVX-512 target is AVX3 (F, BW, DQ, VL), not AVX3_DL, whose attributes
// allow the compiler AVX-VNNI, which Zen 4 lacks.
#pragma once

#include "hwy/detect_compiler_arch.h"

#if HWY_ARCH_X86
#define HWY_BASELINE_TARGETS HWY_AVX2
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3 | HWY_EMU128 | HWY_SCALAR)
#else
#define HWY_BASELINE_TARGETS HWY_NEON
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_EMU128 | HWY_SCALAR)
#endif
