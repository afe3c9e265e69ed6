#include "backend/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tq {
namespace {

constexpr Isa kAllIsas[] = {Isa::kAvx512, Isa::kAvx2, Isa::kNeon};

#if defined(__x86_64__)
// Clang 16's built-in does not know this one.
bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

// The compiler's built-in asks the processor and, through xgetbv, the operating system.
bool HasIsa(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2") && HasF16c();
  if (isa == Isa::kAvx2) return avx2;
  if (isa == Isa::kAvx512) {
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
  }
  return false;
#elif defined(__aarch64__)
  return isa == Isa::kNeon && (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  static_cast<void>(isa);
  return false;
#endif
}

}  // namespace

const char* IsaName(Isa isa) {
  if (isa == Isa::kAvx2) return "avx2";
  if (isa == Isa::kAvx512) return "avx512";
  return "neon";
}

std::vector<Isa> DetectIsas() {
  std::vector<Isa> found;
  for (const Isa isa : kAllIsas) {
    if (HasIsa(isa)) found.push_back(isa);
  }
  return found;
}

std::optional<Isa> IsaFromName(std::string_view name) {
  for (const Isa isa : kAllIsas) {
    if (name == IsaName(isa)) return isa;
  }
  return std::nullopt;
}

}  // namespace tq
