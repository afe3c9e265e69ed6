#include "quantize/cholesky.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "quantize/matrix_product.h"

namespace tq {
namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kStrip = 16;

// The diagonal block [size, size] at a, rows n apart.
bool FactorDiagonal(double* a, int64_t n, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i == j) {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        a[i * n + i] = std::sqrt(sum);
      } else {
        a[i * n + j] = sum / a[j * n + j];
      }
    }
  }
  return true;
}

// One row below the diagonal block.
void SolveRow(const double* diagonal, int64_t n, int64_t size, double* row) {
  for (int64_t j = 0; j < size; ++j) {
    double sum = row[j];
    for (int64_t k = 0; k < j; ++k) sum -= row[k] * diagonal[j * n + k];
    row[j] = sum / diagonal[j * n + j];
  }
}

}  // namespace

bool CholeskyInPlace(std::vector<double>& a, int64_t n, ThreadPool& pool) {
  TQ_CHECK(n % kStrip == 0 && static_cast<int64_t>(a.size()) == n * n);
  std::vector<double> panel;  // [size][rows]: the block column below the diagonal, transposed
  std::vector<double> negated;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t size = std::min(kBlock, n - begin);
    double* diagonal = a.data() + begin * n + begin;
    if (!FactorDiagonal(diagonal, n, size)) return false;
    const int64_t below = begin + size;
    const int64_t rows = n - below;
    if (rows == 0) break;
    panel.resize(static_cast<size_t>(size * rows));
    negated.resize(panel.size());
    pool.ParallelFor(rows, kStrip, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) {
        double* row = a.data() + (below + i) * n + begin;
        SolveRow(diagonal, n, size, row);
        for (int64_t k = 0; k < size; ++k) {
          panel[static_cast<size_t>(k * rows + i)] = row[k];
          negated[static_cast<size_t>(k * rows + i)] = -row[k];
        }
      }
    });
    ForTriangleStrips(pool, rows / kStrip, [&](int64_t strip) {
      const int64_t i = strip * kStrip;
      AddTransposedProduct(negated.data() + i, rows, panel.data(), rows,
                           a.data() + (below + i) * n + below, n, kStrip, i + kStrip, size);
    });
  }
  return true;
}

}  // namespace tq
