#include "backend/cpu/kernels/int_matmul.h"

#include "base/check.h"

namespace tq {

#define INT_OPS(isa, table) extern const IntOps table;
#include "backend/cpu/kernel_list.inc"
#undef INT_OPS

const IntOps& GetIntOps(Isa isa) {
#define INT_OPS(name, table) \
  if (isa == Isa::name) return table;
#include "backend/cpu/kernel_list.inc"
#undef INT_OPS
  CheckFailed(__FILE__, __LINE__, "an instruction set that DetectIsas() found");
}

}  // namespace tq
