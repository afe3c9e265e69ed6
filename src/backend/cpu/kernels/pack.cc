// Moving rows into and out of tiles: transposition of decoded rows, embedding rows, KV append.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/highway_targets.h"
#include "tensor/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/pack.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backend/cpu/kernels/vec_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tq {
namespace HWY_NAMESPACE {
namespace {

// out[i] = f16 of x[i], i < n <= 16, round to nearest even.
HWY_INLINE void DemoteF16(const float* x, size_t n, uint16_t* out) {
  const hn::CappedTag<float, 4> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  HWY_ALIGN float padded[16] = {};
  HWY_ALIGN uint16_t codes[16];
  std::memcpy(padded, x, n * sizeof(float));
  for (size_t i = 0; i < 16; i += 4) {
    hn::StoreU(hn::DemoteTo(d16, hn::Load(d, padded + i)), d16,
               reinterpret_cast<hwy::float16_t*>(codes + i));
  }
  std::memcpy(out, codes, n * sizeof(uint16_t));
}

HWY_INLINE void KvAppendF16(int64_t head_dim, int64_t v_head_dim, std::byte* k_tile,
                            std::byte* v_tile, int64_t slot, const float* k, const float* v) {
  uint16_t codes[16];
  for (int64_t i = 0; i < head_dim; i += 16) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(16, head_dim - i));
    DemoteF16(k + i, n, codes);
    for (size_t j = 0; j < n; j += 2) {
      const int64_t pair = (i + static_cast<int64_t>(j)) / 2;
      std::memcpy(k_tile + (pair * 64 + slot) * 4, codes + j, 4);
    }
  }
  for (int64_t i = 0; i < v_head_dim; i += 16) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(16, v_head_dim - i));
    DemoteF16(v + i, n, codes);
    std::memcpy(v_tile + (slot * v_head_dim + i) * 2, codes, n * sizeof(uint16_t));
  }
}

HWY_INLINE float LoadFloat(const std::byte* p) {
  float value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

}  // namespace

void Transpose16(const float* rows, int64_t ld, int64_t n, float* tile) {
  const hn::CappedTag<float, 4> d;
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    for (int64_t r = 0; r < 16; r += 4) {
      const float* from = rows + r * ld + k;
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + ld);
      const auto c = hn::LoadU(d, from + 2 * ld), e = hn::LoadU(d, from + 3 * ld);
      const auto low_ab = hn::InterleaveLower(d, a, b), high_ab = hn::InterleaveUpper(d, a, b);
      const auto low_ce = hn::InterleaveLower(d, c, e), high_ce = hn::InterleaveUpper(d, c, e);
      float* to = tile + k * 16 + r;
      hn::StoreU(hn::ConcatLowerLower(d, low_ce, low_ab), d, to);
      hn::StoreU(hn::ConcatUpperUpper(d, low_ce, low_ab), d, to + 16);
      hn::StoreU(hn::ConcatLowerLower(d, high_ce, high_ab), d, to + 32);
      hn::StoreU(hn::ConcatUpperUpper(d, high_ce, high_ab), d, to + 48);
    }
  }
  for (; k < n; ++k) {
    for (int64_t r = 0; r < 16; ++r) tile[k * 16 + r] = rows[r * ld + k];
  }
}

void EmbedRow(FloatType type, const std::byte* tiles, int64_t num_cols, int64_t row, float scale,
              float* out) {
  const std::byte* tile = tiles + row / kTileRows * FloatTileBytes(type, num_cols);
  const int64_t r = row % kTileRows;
  for (int64_t k = 0; k < num_cols; ++k) {
    if (type == FloatType::kF32) {
      out[k] = LoadFloat(tile + k * 64 + r * 4) * scale;
      continue;
    }
    uint16_t code;
    std::memcpy(&code, tile + k / 2 * 64 + r * 4 + k % 2 * 2, sizeof(code));
    out[k] = (type == FloatType::kF16 ? F16ToF32(code) : Bf16ToF32(code)) * scale;
  }
}

void KvAppend(bool f16, int head_dim, int v_head_dim, std::byte* k_tile, std::byte* v_tile,
              int64_t slot, const float* k, const float* v) {
  if (f16) {
    KvAppendF16(head_dim, v_head_dim, k_tile, v_tile, slot, k, v);
    return;
  }
  for (int64_t i = 0; i < head_dim; i += 2) {
    std::memcpy(k_tile + (i / 2 * 64 + slot) * 8, k + i, 8);
  }
  if (v_head_dim == 0) return;
  std::memcpy(v_tile + slot * v_head_dim * 4, v, static_cast<size_t>(v_head_dim) * 4);
}

}  // namespace HWY_NAMESPACE
}  // namespace tq
HWY_AFTER_NAMESPACE();
