#include "quantize/matrix_product.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tq {
namespace {

// Columns of c that one register tile holds. Depth is cut so that a and b of a tile stay in the
// first-level cache; the cut is part of the order of the sums.
constexpr int64_t kTileColumns = 16;
constexpr int64_t kDepth = 256;

template <typename T, int kBytes>
struct Simd {
  typedef T Vector __attribute__((vector_size(kBytes)));
  static constexpr int kVectors = static_cast<int>(kTileColumns * sizeof(T) / kBytes);
  static constexpr int kRows = std::max(1, 8 / kVectors);  // eight sums hide the latency of an add
};

template <typename T, int kBytes>
[[gnu::always_inline]] inline void Product(const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                                           int64_t ldc, int64_t m, int64_t n, int64_t depth) {
  using S = Simd<T, kBytes>;
  using Vector = typename S::Vector;
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  for (int64_t i = 0; i < m; i += S::kRows) {
    for (int64_t j = 0; j < n; j += kTileColumns) {
      Vector sums[S::kRows][S::kVectors] = {};
      for (int64_t k = 0; k < depth; ++k) {
        Vector row[S::kVectors];
        std::memcpy(&row, b + k * ldb + j, sizeof(row));
#pragma GCC unroll 8
        for (int r = 0; r < S::kRows; ++r) {
          const Vector factor = Vector{} + a[k * lda + i + r];
#pragma GCC unroll 8
          for (int v = 0; v < S::kVectors; ++v) sums[r][v] += factor * row[v];
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < S::kRows; ++r) {
        T* out = c + (i + r) * ldc + j;
#pragma GCC unroll 8
        for (int v = 0; v < S::kVectors; ++v) {
          Vector sum;
          std::memcpy(&sum, out + v * kLanes, sizeof(sum));
          sum += sums[r][v];
          std::memcpy(out + v * kLanes, &sum, sizeof(sum));
        }
      }
    }
  }
}

template <typename T>
using ProductFunction = void (*)(const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t,
                                 int64_t, int64_t);

template <typename T>
void ProductBase(const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t m,
                 int64_t n, int64_t depth) {
  Product<T, 16>(a, lda, b, ldb, c, ldc, m, n, depth);
}

#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void ProductAvx2(const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                                         int64_t ldc, int64_t m, int64_t n, int64_t depth) {
  Product<T, 32>(a, lda, b, ldb, c, ldc, m, n, depth);
}

template <typename T>
[[gnu::target("avx512f")]] void ProductAvx512(const T* a, int64_t lda, const T* b, int64_t ldb,
                                              T* c, int64_t ldc, int64_t m, int64_t n,
                                              int64_t depth) {
  Product<T, 64>(a, lda, b, ldb, c, ldc, m, n, depth);
}

template <typename T>
ProductFunction<T> ChooseProduct() {
  if (__builtin_cpu_supports("avx512f")) return ProductAvx512<T>;
  if (__builtin_cpu_supports("avx2")) return ProductAvx2<T>;
  return ProductBase<T>;
}
#else
template <typename T>
ProductFunction<T> ChooseProduct() {
  return ProductBase<T>;
}
#endif

template <typename T>
void Add(const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t m, int64_t n,
         int64_t depth) {
  static const ProductFunction<T> product = ChooseProduct<T>();
  TQ_CHECK(m % 16 == 0 && n % 16 == 0);
  for (int64_t k = 0; k < depth; k += kDepth) {
    product(a + k * lda, lda, b + k * ldb, ldb, c, ldc, m, n, std::min(kDepth, depth - k));
  }
}

}  // namespace

void AddTransposedProduct(const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                          int64_t ldc, int64_t m, int64_t n, int64_t depth) {
  Add(a, lda, b, ldb, c, ldc, m, n, depth);
}

void AddTransposedProduct(const double* a, int64_t lda, const double* b, int64_t ldb, double* c,
                          int64_t ldc, int64_t m, int64_t n, int64_t depth) {
  Add(a, lda, b, ldb, c, ldc, m, n, depth);
}

}  // namespace tq
