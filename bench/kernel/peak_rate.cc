#include "peak_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tq {
namespace {

// Enough to hide any latency. Each starts from a value that the compiler does not know: it would
// make one of several that are the same.
constexpr int kChains = 12;
volatile int sink;

// Multiply-adds of one call.
using Loop = int64_t (*)(int64_t rounds);

#if defined(__x86_64__)

__attribute__((target("avx2"))) int64_t Int8Avx2(int64_t rounds) {
  const __m256i x = _mm256_set1_epi8(static_cast<char>(sink));
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[kChains] = {};
  for (__m256i& sum : sums) __asm__("" : "+x"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      // Of the sum, or the product would leave the loop.
      const __m256i pairs = _mm256_maddubs_epi16(x, sums[c]);
      sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(pairs, ones));
    }
  }
  for (int c = 1; c < kChains; ++c) sums[0] = _mm256_add_epi32(sums[0], sums[c]);
  sink = _mm256_extract_epi32(sums[0], 0);
  return rounds * kChains * 32;
}

__attribute__((target("avx2,avxvnni"))) int64_t Int8AvxVnni(int64_t rounds) {
  const __m256i x = _mm256_set1_epi32(sink);
  __m256i sums[kChains] = {};
  for (__m256i& sum : sums) __asm__("" : "+x"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_dpbusd_avx_epi32(sums[c], x, x);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = _mm256_add_epi32(sums[0], sums[c]);
  sink = _mm256_extract_epi32(sums[0], 0);
  return rounds * kChains * 32;
}

__attribute__((target("avx2,fma"))) int64_t F32Avx2(int64_t rounds) {
  const __m256 x = _mm256_set1_ps(static_cast<float>(sink) * 1e-12f);
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = x;
  for (__m256& sum : sums) __asm__("" : "+x"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_fmadd_ps(x, x, sums[c]);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = _mm256_add_ps(sums[0], sums[c]);
  sink = static_cast<int>(_mm256_cvtss_f32(sums[0]));
  return rounds * kChains * 8;
}

__attribute__((target("avx512f,avx512vnni"))) int64_t Int8Avx512(int64_t rounds) {
  const __m512i x = _mm512_set1_epi32(sink);
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = x;
  for (__m512i& sum : sums) __asm__("" : "+v"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_dpbusd_epi32(sums[c], x, x);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = _mm512_add_epi32(sums[0], sums[c]);
  sink = _mm512_cvtsi512_si32(sums[0]);
  return rounds * kChains * 64;
}

__attribute__((target("avx512f"))) int64_t F32Avx512(int64_t rounds) {
  const __m512 x = _mm512_set1_ps(static_cast<float>(sink) * 1e-12f);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = x;
  for (__m512& sum : sums) __asm__("" : "+v"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_fmadd_ps(x, x, sums[c]);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = _mm512_add_ps(sums[0], sums[c]);
  sink = static_cast<int>(_mm512_cvtss_f32(sums[0]));
  return rounds * kChains * 16;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

__attribute__((target("amx-tile,amx-int8"))) int64_t Int8Amx(int64_t rounds) {
  TileConfig config;
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 4, 5);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 5);
  }
  _tile_release();
  return rounds * 4 * 16 * 16 * 64;
}

#elif defined(__aarch64__)

__attribute__((target("arch=armv8.2-a+dotprod"))) int64_t Int8Neon(int64_t rounds) {
  const int8x16_t x = vdupq_n_s8(static_cast<int8_t>(sink));
  int32x4_t sums[kChains] = {};
  for (int32x4_t& sum : sums) __asm__("" : "+w"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = vdotq_s32(sums[c], x, x);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = vaddq_s32(sums[0], sums[c]);
  sink = vgetq_lane_s32(sums[0], 0);
  return rounds * kChains * 16;
}

int64_t F32Neon(int64_t rounds) {
  const float32x4_t x = vdupq_n_f32(static_cast<float>(sink) * 1e-12f);
  float32x4_t sums[kChains];
  for (float32x4_t& sum : sums) sum = x;
  for (float32x4_t& sum : sums) __asm__("" : "+w"(sum));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = vfmaq_f32(sums[c], x, x);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = vaddq_f32(sums[0], sums[c]);
  sink = static_cast<int>(vgetq_lane_f32(sums[0], 0));
  return rounds * kChains * 4;
}

#endif

// The best of several tries: a neighbour can only make one slower.
double Rate(Loop loop, ThreadPool& pool) {
  constexpr int kTries = 10;
  constexpr int64_t kRounds = 20000;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    int64_t work = 0;
    const auto begin = std::chrono::steady_clock::now();
    pool.ParallelFor(pool.num_threads(), 1, [&](int64_t first, int64_t last, int thread) {
      int64_t own = 0;
      for (int64_t share = first; share < last; ++share) own += loop(kRounds);
      if (thread == 0) work = own;
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(work * pool.num_threads()) / seconds.count());
  }
  return best * 1e-9;
}

}  // namespace

double PeakInt8(Isa isa, ThreadPool& pool) {
#if defined(__x86_64__)
  return Rate(isa == Isa::kAmx       ? Int8Amx
              : isa == Isa::kAvx512  ? Int8Avx512
              : isa == Isa::kAvxVnni ? Int8AvxVnni
                                     : Int8Avx2,
              pool);
#elif defined(__aarch64__)
  static_cast<void>(isa);
  return Rate(Int8Neon, pool);
#else
  return 0;
#endif
}

double PeakF32(Isa isa, ThreadPool& pool) {
#if defined(__x86_64__)
  const bool is_narrow = isa == Isa::kAvx2 || isa == Isa::kAvxVnni;
  return Rate(is_narrow ? F32Avx2 : F32Avx512, pool);
#elif defined(__aarch64__)
  static_cast<void>(isa);
  return Rate(F32Neon, pool);
#else
  return 0;
#endif
}

}  // namespace tq
