#include "backend/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tq {
namespace {

constexpr Isa kAllIsas[] = {Isa::kAmx, Isa::kAvx512, Isa::kAvxVnni, Isa::kAvx2, Isa::kNeon};

#if defined(__x86_64__)
// Clang 16's built-in does not know this one.
bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool HasAvxVnni() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & (1u << 4)) != 0;
}

// Tiles are large: the system keeps them for processes that have asked.
bool HasAmx() {
  unsigned eax, ebx, ecx, edx;
  constexpr unsigned kTile = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kTile) == 0 || (edx & kInt8) == 0) return false;
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  static const bool allowed = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return allowed;
}
#endif

// The compiler's built-in asks the processor and, through xgetbv, the operating system.
bool HasIsa(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2") && HasF16c();
  if (isa == Isa::kAvx2) return avx2;
  if (isa == Isa::kAvxVnni) return avx2 && HasAvxVnni();
  if (isa == Isa::kAvx512 || isa == Isa::kAmx) {
    return (isa == Isa::kAvx512 || HasAmx()) && avx2 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512vbmi");
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
  if (isa == Isa::kAvxVnni) return "avxvnni";
  if (isa == Isa::kAvx512) return "avx512";
  if (isa == Isa::kAmx) return "amx";
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
