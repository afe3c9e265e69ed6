#include "quantize/ldlq.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "codec/hadamard.h"
#include "quantize/cholesky.h"
#include "quantize/matrix_product.h"
#include "tensor/half.h"

namespace tq {
namespace {

std::vector<float> Gaussian(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& x : out) x = normal(random);
  return out;
}

// Sum of x x^T of inputs like those of a model: a spectrum that falls off, and one strong
// direction.
std::vector<float> CorrelatedHessian(int64_t n, uint32_t seed) {
  const std::vector<float> basis = Gaussian(n * n, seed);
  std::vector<float> h(static_cast<size_t>(n * n));
  std::vector<float> scaled = basis;
  for (int64_t k = 0; k < n; ++k) {
    const double strength = k == 0 ? 30 : 1.0 / std::sqrt(1.0 + static_cast<double>(k));
    for (int64_t i = 0; i < n; ++i)
      scaled[static_cast<size_t>(k * n + i)] *= static_cast<float>(strength);
  }
  AddTransposedProduct(scaled.data(), n, scaled.data(), n, h.data(), n, n, n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j)
      h[static_cast<size_t>(j * n + i)] = h[static_cast<size_t>(i * n + j)];
  }
  return h;
}

struct Encoded {
  std::vector<uint32_t> words;
  std::vector<uint16_t> scales;
};

struct Problem {
  int64_t rows = 48;  // one tile and a half
  int64_t cols = 192;
  TurboQuantSpec spec;
  std::vector<float> weights;
  std::vector<float> hessian;
  std::vector<float> signs;

  explicit Problem(int entries) {
    spec.codebook_entries = entries;
    weights = Gaussian(rows * cols, 1);
    hessian = CorrelatedHessian(cols, 2);
    signs = TurboQuantSigns(3, cols);
  }

  Encoded Empty() const {
    return {std::vector<uint32_t>(
                static_cast<size_t>(rows * TurboQuantWords(spec.codebook_entries, cols))),
            std::vector<uint16_t>(static_cast<size_t>(rows * cols / spec.group))};
  }

  Encoded Plain(bool search) const {
    Encoded out = Empty();
    TurboQuantSpec plain = spec;
    plain.search_scale = search;
    TurboQuantScratch scratch;
    for (int64_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(EncodeTurboQuantRow(
          plain, std::span(weights).subspan(static_cast<size_t>(r * cols), signs.size()), signs,
          out.words.data() + r * TurboQuantWords(spec.codebook_entries, cols),
          out.scales.data() + r * cols / spec.group, scratch));
    }
    return out;
  }

  // Rows from `first` on, in tiles of `tile_rows`.
  Encoded WithFeedback(int threads, int64_t tile_rows, const LdlqOptions& options) const {
    Encoded out = Empty();
    ThreadPool pool(threads);
    const Ldlq ldlq(spec, signs, hessian, options, pool);
    LdlqScratch scratch;
    for (int64_t r = 0; r < rows; r += tile_rows) {
      EXPECT_TRUE(
          ldlq.EncodeTile(weights.data() + r * cols, std::min(tile_rows, rows - r),
                          out.words.data() + r * TurboQuantWords(spec.codebook_entries, cols),
                          out.scales.data() + r * cols / spec.group, scratch));
    }
    return out;
  }

  // tr(E H E^T) / tr(W H W^T), in the original basis.
  double OutputError(const Encoded& encoded) const {
    std::vector<float> codebook = LloydMaxCodebook(spec.codebook_entries).stored;
    double error = 0;
    double total = 0;
    std::vector<float> row(signs.size());
    std::vector<uint8_t> codes(signs.size());
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t words = TurboQuantWords(spec.codebook_entries, cols);
      Unpack(encoded.words.data() + r * words, codes);
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = codebook[codes[i]] *
                 F16ToF32(encoded.scales[static_cast<size_t>(r * cols / spec.group) +
                                         i / static_cast<size_t>(spec.group)]);
      }
      HadamardInverse(row);
      std::vector<float> w(weights.begin() + r * cols, weights.begin() + (r + 1) * cols);
      for (size_t i = 0; i < row.size(); ++i) row[i] = w[i] - row[i] * signs[i];
      error += Quadratic(row);
      total += Quadratic(w);
    }
    return error / total;
  }

  // mean D_kk / mean H_kk, rotated and damped.
  double FeedbackGain() const {
    ThreadPool pool(1);
    std::vector<float> rotated = hessian;
    RotateHessian(rotated, signs, pool);
    std::vector<double> lower(rotated.begin(), rotated.end());
    double before = 0;
    for (int64_t i = 0; i < cols; ++i) before += lower[static_cast<size_t>(i * cols + i)];
    const double added = LdlqOptions().damping * before / static_cast<double>(cols);
    for (int64_t i = 0; i < cols; ++i) lower[static_cast<size_t>(i * cols + i)] += added;
    EXPECT_TRUE(CholeskyInPlace(lower, cols, pool));
    double after = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double root = lower[static_cast<size_t>(i * cols + i)];
      after += root * root;
    }
    return after / before;
  }

 private:
  void Unpack(const uint32_t* words, std::vector<uint8_t>& codes) const {
    const int per_word = TurboQuantValuesPerWord(spec.codebook_entries);
    const int bits = static_cast<int>(std::log2(spec.codebook_entries));
    for (size_t i = 0; i < codes.size(); ++i) {
      const uint32_t word = words[i / static_cast<size_t>(per_word)];
      codes[i] = static_cast<uint8_t>((word >> (static_cast<int>(i) % per_word * bits)) &
                                      static_cast<uint32_t>(spec.codebook_entries - 1));
    }
  }

  double Quadratic(const std::vector<float>& x) const {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        sum += double{x[static_cast<size_t>(i)]} * hessian[static_cast<size_t>(i * cols + j)] *
               x[static_cast<size_t>(j)];
      }
    }
    return sum;
  }
};

TEST(Ldlq, OutputErrorIsAFractionOfPlainRounding) {
  for (const int entries : {4, 8, 16}) {
    const Problem problem(entries);
    const double search = problem.OutputError(problem.Plain(true));
    const double feedback = problem.OutputError(problem.WithFeedback(2, 32, {.descent_passes = 0}));
    const double refined = problem.OutputError(problem.WithFeedback(2, 32, {}));
    // A column's rounding error counts H_kk alone and D_kk of H = M D M^T with feedback, which also
    // widens what is to be rounded.
    EXPECT_LT(problem.FeedbackGain(), 0.2);
    EXPECT_LT(feedback, 1.6 * problem.FeedbackGain() * search);
    EXPECT_LT(refined, feedback);
  }
}

TEST(Ldlq, ThreadsAndCompanyDoNotMatter) {
  const Problem problem(8);
  const Encoded expected = problem.WithFeedback(1, 32, {});
  const struct {
    int threads;
    int64_t tile_rows;
  } cases[] = {{2, 32}, {5, 32}, {3, 1}, {2, 7}};
  for (const auto& c : cases) {
    const Encoded found = problem.WithFeedback(c.threads, c.tile_rows, {});
    EXPECT_EQ(found.words, expected.words);
    EXPECT_EQ(found.scales, expected.scales);
  }
}

TEST(Ldlq, UncorrelatedInputsGiveTheSearchedRounding) {
  Problem problem(8);
  std::fill(problem.hessian.begin(), problem.hessian.end(),
            0.0f);  // never used: counts as the identity
  const Encoded plain = problem.Plain(true);
  const Encoded found = problem.WithFeedback(2, 32, {.descent_passes = 0});
  EXPECT_EQ(found.words, plain.words);
}

TEST(Ldlq, RefusesWhatIsNotFinite) {
  Problem problem(8);
  ThreadPool pool(1);
  const Ldlq ldlq(problem.spec, problem.signs, problem.hessian, {}, pool);
  LdlqScratch scratch;
  Encoded out = problem.Empty();
  problem.weights[5] = NAN;
  EXPECT_FALSE(
      ldlq.EncodeTile(problem.weights.data(), 1, out.words.data(), out.scales.data(), scratch));
  problem.weights[5] = 3e7f;  // an RMS beyond f16
  EXPECT_FALSE(
      ldlq.EncodeTile(problem.weights.data(), 1, out.words.data(), out.scales.data(), scratch));
}

TEST(Ldlq, DegenerateSumsWork) {
  Problem problem(8);
  for (int64_t i = 0; i < problem.cols; ++i) {  // one token, and it was seen often: rank 1
    for (int64_t j = 0; j < problem.cols; ++j) {
      const auto at = static_cast<size_t>(i * problem.cols + j);
      problem.hessian[at] =
          problem.weights[static_cast<size_t>(i)] * problem.weights[static_cast<size_t>(j)] * 1e6f;
    }
  }
  EXPECT_LT(problem.OutputError(problem.WithFeedback(2, 32, {})), 1e-3);
  EXPECT_LT(problem.OutputError(problem.WithFeedback(2, 32, {.damping = 0})), 1e-3);
}

TEST(RotateHessian, IsTheSumOfRotatedInputs) {
  const int64_t n = 48;  // blocks of 48 = 12 * 4
  const std::vector<float> x = Gaussian(2 * n, 4);
  const std::vector<float> signs = TurboQuantSigns(9, n);
  std::vector<float> h(static_cast<size_t>(n * n));
  std::vector<float> expected(h.size());
  for (int64_t t = 0; t < 2; ++t) {
    std::vector<float> token(x.begin() + t * n, x.begin() + (t + 1) * n);
    std::vector<float> rotated = token;
    for (size_t i = 0; i < rotated.size(); ++i) rotated[i] *= signs[i];
    HadamardForward(rotated);
    for (size_t i = 0; i < h.size(); ++i) {
      const size_t row = i / static_cast<size_t>(n);
      const size_t col = i % static_cast<size_t>(n);
      h[i] += token[row] * token[col];
      expected[i] += rotated[row] * rotated[col];
    }
  }
  ThreadPool pool(2);
  RotateHessian(h, signs, pool);
  for (size_t i = 0; i < h.size(); ++i) EXPECT_NEAR(h[i], expected[i], 2e-5);
}

template <typename T>
void CheckProduct() {
  const int64_t m = 32;
  const int64_t n = 48;
  const int64_t depth = 300;
  const std::vector<float> random = Gaussian(depth * (m + n) + m * n, 6);
  const std::vector<T> a(random.begin(), random.begin() + depth * m);
  const std::vector<T> b(random.begin() + depth * m, random.begin() + depth * (m + n));
  std::vector<T> c(random.end() - m * n, random.end());
  std::vector<T> expected = c;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t begin = 0; begin < depth; begin += 256) {
        T sum = 0;
        for (int64_t k = begin; k < std::min(begin + 256, depth); ++k) {
          sum += a[static_cast<size_t>(k * m + i)] * b[static_cast<size_t>(k * n + j)];
        }
        expected[static_cast<size_t>(i * n + j)] += sum;
      }
    }
  }
  AddTransposedProduct(a.data(), m, b.data(), n, c.data(), n, m, n, depth);
  EXPECT_EQ(c, expected);
}

TEST(MatrixProduct, KeepsTheStatedOrder) {
  CheckProduct<float>();
  CheckProduct<double>();
}

TEST(Cholesky, FactorsAndRefuses) {
  const int64_t n = 208;  // three blocks of 64 and one of 16
  std::vector<double> a(static_cast<size_t>(n * n));
  const std::vector<float> h = CorrelatedHessian(n, 7);
  a.assign(h.begin(), h.end());
  for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i * n + i)] += 1;
  std::vector<double> one = a;
  std::vector<double> lower = a;
  ThreadPool single(1);
  ThreadPool pool(3);
  ASSERT_TRUE(CholeskyInPlace(one, n, single));
  ASSERT_TRUE(CholeskyInPlace(lower, n, pool));
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      EXPECT_EQ(one[static_cast<size_t>(i * n + j)], lower[static_cast<size_t>(i * n + j)]);
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k)
        sum += lower[static_cast<size_t>(i * n + k)] * lower[static_cast<size_t>(j * n + k)];
      worst = std::max(worst, std::fabs(sum - a[static_cast<size_t>(i * n + j)]));
    }
  }
  EXPECT_LT(worst, 1e-7);
  a[static_cast<size_t>(100 * n + 100)] = -1;
  EXPECT_FALSE(CholeskyInPlace(a, n, pool));
}

}  // namespace
}  // namespace tq
