// The instruction sets that the CPU kernels are written for, and which of them this machine has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tq {

enum class Isa : uint8_t {
  kAvx2,     // AVX2, FMA, F16C
  kAvxVnni,  // AVX-VNNI (without AVX-512) and kAvx2
  kAvx512,   // F, BW, DQ, VL, VNNI, VBMI and kAvx2
  kAmx,      // TILE, INT8 and kAvx512
  kNeon,     // armv8.2-a with dotprod
};

const char* IsaName(Isa isa);  // "avx2", "avxvnni", "avx512", "amx", "neon"

// Usable on this machine (processor and operating system), best first; empty on an older one.
std::vector<Isa> DetectIsas();

std::optional<Isa> IsaFromName(std::string_view name);

}  // namespace tq
