#include "codec/hadamard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace tq {
namespace {

// One row per number, most significant bit = column 0, bit 1 = +1. M M^T = m I.
constexpr uint32_t kM12[12] = {0xbff, 0x2aa, 0xec3, 0x896, 0xfb0, 0xa25,
                               0xcec, 0x989, 0xc3b, 0x962, 0xf0e, 0xa58};
constexpr uint32_t kM20[20] = {0x84336, 0x4238b, 0x211d5, 0x108fa, 0x0866d, 0x7c139, 0xba29c,
                               0xd914e, 0xe88a7, 0xf0653, 0x35a0f, 0x1ad17, 0x8d49b, 0xc685d,
                               0x6343e, 0x49a10, 0xa0d08, 0x54484, 0x2e042, 0x93021};
constexpr uint32_t kM28[28] = {0x818694c, 0x41c14a6, 0x20e2a13, 0x1071549, 0x0838ae4, 0x041e532,
                               0x030d299, 0x3d019d2, 0x1e82ca9, 0x8e43654, 0xc621b2a, 0xe210d95,
                               0xf00a6ca, 0x7807325, 0x5b3201e, 0xac9900f, 0x564c847, 0xab24463,
                               0xd590271, 0x6ac8178, 0xb4640bc, 0x66b70c0, 0xb35b820, 0xd8adc10,
                               0x6d54e08, 0x37a8704, 0x9ad4382, 0xcd6a181};

template <int m>
using Entries = std::array<std::array<float, m>, m>;

template <int m>
constexpr Entries<m> Expand(const uint32_t (&rows)[m], bool transposed) {
  Entries<m> entries{};
  for (int j = 0; j < m; ++j) {
    for (int c = 0; c < m; ++c) {
      const float entry = (rows[j] >> (m - 1 - c) & 1u) != 0 ? 1.0f : -1.0f;
      (transposed ? entries[c][j] : entries[j][c]) = entry;
    }
  }
  return entries;
}

// [m / 4][m][4]: entry (4 a + b, c) at (a * m + c) * 4 + b.
template <int m>
constexpr std::array<float, m * m> ByFourRows(const Entries<m>& entries) {
  std::array<float, m * m> out{};
  for (int j = 0; j < m; ++j) {
    for (int c = 0; c < m; ++c) {
      out[static_cast<size_t>((j / 4 * m + c) * 4 + j % 4)] = entries[j][c];
    }
  }
  return out;
}

// Indexed by `transposed`.
constexpr Entries<12> kEntries12[2] = {Expand(kM12, false), Expand(kM12, true)};
constexpr Entries<20> kEntries20[2] = {Expand(kM20, false), Expand(kM20, true)};
constexpr Entries<28> kEntries28[2] = {Expand(kM28, false), Expand(kM28, true)};

constexpr std::array<float, 12 * 12> kByFour12 = ByFourRows<12>(kEntries12[0]);
constexpr std::array<float, 20 * 20> kByFour20 = ByFourRows<20>(kEntries20[0]);
constexpr std::array<float, 28 * 28> kByFour28 = ByFourRows<28>(kEntries28[0]);

// Columns of the m part that are summed in registers together. The vector type is spelled out
// because compilers leave these loops scalar otherwise.
constexpr int64_t kTile = 16;
using Float4 = float __attribute__((vector_size(16)));

// (a, b) -> (a + b, a - b) for pairs h and then 2h apart: two steps in one pass over memory.
void TwoButterflySteps(float* x, int64_t n, int64_t h) {
  for (int64_t base = 0; base < n; base += 4 * h) {
    float* __restrict p0 = x + base;
    float* __restrict p1 = p0 + h;
    float* __restrict p2 = p1 + h;
    float* __restrict p3 = p2 + h;
    for (int64_t i = 0; i < h; ++i) {
      const float s0 = p0[i] + p1[i], d0 = p0[i] - p1[i];
      const float s1 = p2[i] + p3[i], d1 = p2[i] - p3[i];
      p0[i] = s0 + s1;
      p1[i] = d0 + d1;
      p2[i] = s0 - s1;
      p3[i] = d0 - d1;
    }
  }
}

void ButterflyStep(float* x, int64_t n, int64_t h) {
  for (int64_t base = 0; base < n; base += 2 * h) {
    float* __restrict p0 = x + base;
    float* __restrict p1 = p0 + h;
    for (int64_t i = 0; i < h; ++i) {
      const float s = p0[i] + p1[i];
      const float d = p0[i] - p1[i];
      p0[i] = s;
      p1[i] = d;
    }
  }
}

// The steps h = 1, 2, 4, 8 of sixteen values, in registers.
void ButterflySixteen(float* x) {
  float a[16], b[16];
  for (int i = 0; i < 16; i += 4) {
    const float s0 = x[i] + x[i + 1], d0 = x[i] - x[i + 1];
    const float s1 = x[i + 2] + x[i + 3], d1 = x[i + 2] - x[i + 3];
    a[i] = s0 + s1;
    a[i + 1] = d0 + d1;
    a[i + 2] = s0 - s1;
    a[i + 3] = d0 - d1;
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = a[i] + a[i + 4];
    b[i + 4] = a[i] - a[i + 4];
    b[i + 8] = a[i + 8] + a[i + 12];
    b[i + 12] = a[i + 8] - a[i + 12];
  }
  for (int i = 0; i < 8; ++i) {
    x[i] = b[i] + b[i + 8];
    x[i + 8] = b[i] - b[i + 8];
  }
}

// Unscaled natural-order Walsh-Hadamard transform of n = 2^k values.
void WalshHadamard(float* x, int64_t n) {
  int64_t h = 1;
  if (n >= 16) {
    for (int64_t i = 0; i < n; i += 16) ButterflySixteen(x + i);
    h = 16;
  }
  for (; 4 * h <= n; h *= 4) TwoButterflySteps(x, n, h);
  if (h < n) ButterflyStep(x, n, h);
}

// y[j * stride + i] = sum over c of entries[j][c] * x[c * stride + i], for `width` <= kTile columns
// i.
template <int m>
void ApplyTile(const Entries<m>& entries, float* x, int64_t stride, int64_t width) {
  constexpr int kParts = kTile / 4;
  const size_t width_bytes = static_cast<size_t>(width) * sizeof(float);
  Float4 in[m][kParts] = {};
  for (int c = 0; c < m; ++c) std::memcpy(in[c], x + c * stride, width_bytes);
  for (int j = 0; j < m; ++j) {
    Float4 sum[kParts];
    for (int part = 0; part < kParts; ++part) sum[part] = entries[j][0] * in[0][part];
    for (int c = 1; c < m; ++c) {  // times +-1 is exact: an add or a subtract
      for (int part = 0; part < kParts; ++part) sum[part] += entries[j][c] * in[c][part];
    }
    std::memcpy(x + j * stride, sum, width_bytes);
  }
}

template <int m>
void ApplyMatrix(const Entries<m>& entries, std::span<float> x, int64_t pow2) {
  const int64_t dim = static_cast<int64_t>(x.size());
  for (int64_t block = 0; block < dim; block += m * pow2) {
    for (int64_t i = 0; i < pow2; i += kTile) {
      ApplyTile<m>(entries, x.data() + block + i, pow2, std::min(kTile, pow2 - i));
    }
  }
}

// The factors H_pow2 and M act on different indices and commute: the transposed transform is the
// same walk with M^T.
void Transform(std::span<float> x, bool transposed) {
  const int64_t dim = static_cast<int64_t>(x.size());
  if (dim == 0) return;
  const HadamardBlock block = HadamardBlockFor(dim);
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.size)));
  for (int64_t i = 0; i < dim; i += block.pow2) WalshHadamard(x.data() + i, block.pow2);
  switch (block.m) {
    case 12:
      ApplyMatrix<12>(kEntries12[transposed], x, block.pow2);
      break;
    case 20:
      ApplyMatrix<20>(kEntries20[transposed], x, block.pow2);
      break;
    case 28:
      ApplyMatrix<28>(kEntries28[transposed], x, block.pow2);
      break;
    default:
      break;
  }
  for (float& value : x) value *= scale;
}

}  // namespace

HadamardBlock HadamardBlockFor(int64_t dim) {
  if (dim < 1) return {};
  const int64_t pow2 = int64_t{1} << std::countr_zero(static_cast<uint64_t>(dim));
  for (const int m : {28, 20, 12}) {
    // m = 4 * odd: with that odd factor present, the block takes every factor 2 of dim.
    if (pow2 >= 4 && (dim / pow2) % (m / 4) == 0) return {pow2 * (m / 4), m, pow2 / 4};
  }
  return {pow2, 1, pow2};
}

int HadamardEntry(int m, int row, int col) {
  TQ_CHECK(m == 12 || m == 20 || m == 28);
  TQ_CHECK(row >= 0 && row < m && col >= 0 && col < m);
  const float entry = m == 12   ? kEntries12[0][row][col]
                      : m == 20 ? kEntries20[0][row][col]
                                : kEntries28[0][row][col];
  return static_cast<int>(entry);
}

const float* HadamardEntriesByFour(int m) {
  TQ_CHECK(m == 12 || m == 20 || m == 28);
  return m == 12 ? kByFour12.data() : m == 20 ? kByFour20.data() : kByFour28.data();
}

void HadamardForward(std::span<float> x) { Transform(x, /*transposed=*/false); }

void HadamardInverse(std::span<float> x) { Transform(x, /*transposed=*/true); }

}  // namespace tq
