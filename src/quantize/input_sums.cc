#include "quantize/input_sums.h"

#include <algorithm>

#include "base/check.h"
#include "quantize/cholesky.h"
#include "quantize/matrix_product.h"

namespace tq {
namespace {

constexpr int64_t kPanel = InputSums::kPanel;

// A panel's rows are neighbours in memory, so that no width is unkind to the caches.
void MakePanels(const float* x, int64_t num_tokens, int64_t cols, std::vector<float>& panels,
                ThreadPool& pool) {
  panels.resize(static_cast<size_t>(num_tokens * cols));
  pool.ParallelFor(cols / kPanel, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      float* out = panels.data() + p * num_tokens * kPanel;
      for (int64_t t = 0; t < num_tokens; ++t) {
        std::copy_n(x + t * cols + p * kPanel, kPanel, out + t * kPanel);
      }
    }
  });
}

}  // namespace

InputSums::InputSums(int64_t cols) : cols_(cols), squares_(static_cast<size_t>(cols * cols)) {
  TQ_CHECK(cols % kPanel == 0);
}

void InputSums::Add(const float* x, int64_t num_tokens, ThreadPool& pool) {
  rows_ += num_tokens;
  last_tokens_ = num_tokens;
  if (num_tokens == 0) return;
  const int64_t step = num_tokens * kPanel;
  MakePanels(x, num_tokens, cols_, panels_, pool);
  ForTriangleStrips(pool, cols_ / kPanel, [&](int64_t i) {
    for (int64_t j = 0; j <= i; ++j) {
      AddTransposedProduct(panels_.data() + i * step, kPanel, panels_.data() + j * step, kPanel,
                           squares_.data() + i * kPanel * cols_ + j * kPanel, cols_, kPanel, kPanel,
                           num_tokens);
    }
  });
}

void InputSums::AddCross(const float* other, int64_t other_cols, std::vector<float>& sums,
                         ThreadPool& pool) {
  TQ_CHECK(other_cols % kPanel == 0 && static_cast<int64_t>(sums.size()) == other_cols * cols_);
  if (last_tokens_ == 0) return;
  const int64_t step = last_tokens_ * kPanel;
  MakePanels(other, last_tokens_, other_cols, other_panels_, pool);
  pool.ParallelFor(other_cols / kPanel, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < cols_ / kPanel; ++j) {
        AddTransposedProduct(other_panels_.data() + i * step, kPanel, panels_.data() + j * step,
                             kPanel, sums.data() + i * kPanel * cols_ + j * kPanel, cols_, kPanel,
                             kPanel, last_tokens_);
      }
    }
  });
}

void InputSums::Finish() {
  for (int64_t i = 0; i < cols_; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      squares_[static_cast<size_t>(j * cols_ + i)] = squares_[static_cast<size_t>(i * cols_ + j)];
    }
  }
}

}  // namespace tq
