#include "backend/cpu/kernels/float_ops.h"

#include "backend/cpu/kernels/float_kernels.h"

namespace tq {

const FloatOps& GetFloatOps(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::kAvx2 || isa == Isa::kAvxVnni ? N_AVX2::kFloatOps : N_AVX3::kFloatOps;
#else
  static_cast<void>(isa);
  return N_NEON::kFloatOps;
#endif
}

}  // namespace tq
