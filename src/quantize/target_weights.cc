#include "quantize/target_weights.h"

#include <algorithm>

#include "base/check.h"
#include "quantize/cholesky.h"
#include "quantize/matrix_product.h"

namespace tq {
namespace {

constexpr int64_t kStrip = 16;  // right sides that one product takes
constexpr int64_t kBlock = 64;  // rows that are solved term by term

}  // namespace

InputNormalizer::InputNormalizer(std::span<const float> squares, int64_t n, double damping,
                                 ThreadPool& pool)
    : n_(n) {
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) trace += squares[static_cast<size_t>(i * n + i)];
  if (!(trace > 0)) return;
  lower_.assign(squares.begin(), squares.end());
  const double added = damping * trace / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) lower_[static_cast<size_t>(i * n + i)] += added;
  usable_ = CholeskyInPlace(lower_, n, pool);
  if (!usable_) return;
  negated_.resize(lower_.size());
  negated_transposed_.resize(lower_.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const double value = -lower_[static_cast<size_t>(i * n + j)];
      negated_[static_cast<size_t>(i * n + j)] = value;
      negated_transposed_[static_cast<size_t>(j * n + i)] = value;
    }
  }
}

// x [n][kStrip] <- H^-1 x.
void InputNormalizer::Solve(double* x) const {
  const int64_t n = n_;
  const auto at = [&](int64_t i, int64_t j) { return lower_[static_cast<size_t>(i * n + j)]; };
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    AddTransposedProduct(negated_transposed_.data() + begin, n, x, kStrip, x + begin * kStrip,
                         kStrip, end - begin, kStrip, begin);
    for (int64_t i = begin; i < end; ++i) {
      double* row = x + i * kStrip;
      for (int64_t k = begin; k < i; ++k) {
        for (int64_t c = 0; c < kStrip; ++c) row[c] -= at(i, k) * x[k * kStrip + c];
      }
      for (int64_t c = 0; c < kStrip; ++c) row[c] /= at(i, i);
    }
  }
  for (int64_t end = n; end > 0;) {
    const int64_t begin = (end - 1) / kBlock * kBlock;
    AddTransposedProduct(negated_.data() + end * n + begin, n, x + end * kStrip, kStrip,
                         x + begin * kStrip, kStrip, end - begin, kStrip, n - end);
    for (int64_t i = end - 1; i >= begin; --i) {
      double* row = x + i * kStrip;
      for (int64_t k = i + 1; k < end; ++k) {
        for (int64_t c = 0; c < kStrip; ++c) row[c] -= at(k, i) * x[k * kStrip + c];
      }
      for (int64_t c = 0; c < kStrip; ++c) row[c] /= at(i, i);
    }
    end = begin;
  }
}

void InputNormalizer::Apply(std::vector<float>& cross, ThreadPool& pool) const {
  const int64_t n = n_;
  const int64_t rows = static_cast<int64_t>(cross.size()) / n;
  TQ_CHECK(rows % kStrip == 0);
  if (!usable_) {
    std::fill(cross.begin(), cross.end(), 0.0f);
    return;
  }
  pool.ParallelFor(rows, kStrip, [&](int64_t first, int64_t last, int) {
    std::vector<double> x(static_cast<size_t>(n * kStrip));
    for (int64_t row = first; row < last; row += kStrip) {  // columns of the transposed problem
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t c = 0; c < kStrip; ++c) {
          x[static_cast<size_t>(j * kStrip + c)] = cross[static_cast<size_t>((row + c) * n + j)];
        }
      }
      Solve(x.data());
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t c = 0; c < kStrip; ++c) {
          cross[static_cast<size_t>((row + c) * n + j)] =
              static_cast<float>(x[static_cast<size_t>(j * kStrip + c)]);
        }
      }
    }
  });
}

void ApplyCorrection(const std::vector<float>& k, int64_t n, float* rows, int64_t num_rows,
                     std::vector<float>& scratch) {
  scratch.resize(static_cast<size_t>(n * num_rows));
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t i = 0; i < n; ++i)
      scratch[static_cast<size_t>(i * num_rows + r)] = rows[r * n + i];
  }
  AddTransposedProduct(scratch.data(), num_rows, k.data(), n, rows, n, num_rows, n, n);
}

}  // namespace tq
