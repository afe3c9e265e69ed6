#include "quantize/ldlq.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "codec/hadamard.h"
#include "codec/scale_search.h"
#include "quantize/cholesky.h"
#include "quantize/matrix_product.h"
#include "quantize/scale_refit.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr int64_t kLanes = Ldlq::kTileRows;
// Columns whose mutual feedback runs term by term; beyond them it is a dense product.
constexpr int64_t kStrip = 16;

void RotateRows(std::span<float> h, std::span<const float> signs, ThreadPool& pool) {
  const auto n = static_cast<int64_t>(signs.size());
  pool.ParallelFor(n, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const std::span<float> row = h.subspan(static_cast<size_t>(i * n), signs.size());
      for (size_t j = 0; j < row.size(); ++j) row[j] *= signs[j];
      HadamardForward(row);
    }
  });
}

void Transpose(std::span<float> h, int64_t n) {
  constexpr int64_t kBlock = 32;
  for (int64_t i0 = 0; i0 < n; i0 += kBlock) {
    for (int64_t j0 = 0; j0 <= i0; j0 += kBlock) {
      for (int64_t i = i0; i < std::min(i0 + kBlock, n); ++i) {
        const int64_t end = std::min({j0 + kBlock, n, i});
        for (int64_t j = j0; j < end; ++j) {
          std::swap(h[static_cast<size_t>(i * n + j)], h[static_cast<size_t>(j * n + i)]);
        }
      }
    }
  }
}

// Divides by the mean of the diagonal; an input that was always zero counts as the identity.
void Normalize(std::vector<float>& h, int64_t n) {
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) trace += h[static_cast<size_t>(i * n + i)];
  const double mean = trace / static_cast<double>(n);
  if (!(mean > 0)) {
    std::fill(h.begin(), h.end(), 0.0f);
    for (int64_t i = 0; i < n; ++i) h[static_cast<size_t>(i * n + i)] = 1;
    return;
  }
  const auto factor = static_cast<float>(1 / mean);
  for (float& x : h) x *= factor;
}

}  // namespace

void RotateHessian(std::span<float> h, std::span<const float> signs, ThreadPool& pool) {
  RotateRows(h, signs, pool);
  Transpose(h, static_cast<int64_t>(signs.size()));
  RotateRows(h, signs, pool);
}

double LdlqDamping(int64_t cols, int64_t rows) {
  return LdlqOptions().damping * (1 + static_cast<double>(cols) / static_cast<double>(rows));
}

Ldlq::Ldlq(const TurboQuantSpec& spec, std::span<const float> signs, std::vector<float> hessian,
           const LdlqOptions& options, ThreadPool& pool)
    : spec_(spec),
      options_(options),
      signs_(signs.begin(), signs.end()),
      cols_(static_cast<int64_t>(signs.size())),
      hessian_(std::move(hessian)) {
  TQ_CHECK(spec.group % kStrip == 0 && cols_ % spec.group == 0);
  TQ_CHECK(static_cast<int64_t>(hessian_.size()) == cols_ * cols_);
  Normalize(hessian_, cols_);
  if (spec.rotate) RotateHessian(hessian_, signs_, pool);
  Factor(options.damping, pool);
}

void Ldlq::Factor(double damping, ThreadPool& pool) {
  std::vector<double> lower;
  double added = 0;
  while (true) {
    const auto more = static_cast<float>(damping - added);
    for (int64_t i = 0; i < cols_; ++i) hessian_[static_cast<size_t>(i * cols_ + i)] += more;
    added = damping;
    lower.assign(hessian_.begin(), hessian_.end());
    if (CholeskyInPlace(lower, cols_, pool)) break;
    // Few tokens, or a file that holds no sum of squares: with enough damping anything finite
    // works.
    damping = std::max(10 * damping, 1e-3);
    TQ_CHECK(damping < 1e30);
  }
  feedback_.assign(lower.size(), 0.0f);
  pool.ParallelFor(cols_, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const double pivot = lower[static_cast<size_t>(j * cols_ + j)];
        feedback_[static_cast<size_t>(i * cols_ + j)] =
            static_cast<float>(lower[static_cast<size_t>(i * cols_ + j)] / pivot);
      }
    }
  });
}

bool Ldlq::LoadTile(const float* rows, int64_t num_rows, LdlqScratch& s) const {
  const auto size = static_cast<size_t>(cols_ * kLanes);
  s.weights.assign(size, 0.0f);
  s.errors.resize(size);
  s.units.resize(size);
  s.codes.resize(size);
  s.scales.assign(static_cast<size_t>(cols_ / spec_.group * kLanes), 0.0f);
  bool finite = true;
  for (int64_t r = 0; r < num_rows; ++r) {
    s.row.assign(rows + r * cols_, rows + (r + 1) * cols_);
    if (spec_.rotate) {
      for (size_t i = 0; i < s.row.size(); ++i) s.row[i] *= signs_[i];
      HadamardForward(s.row);
    }
    float sum = 0;  // x - x is 0 for finite x, else NaN
    for (int64_t k = 0; k < cols_; ++k) {
      const float x = s.row[static_cast<size_t>(k)];
      sum += x - x;
      s.weights[static_cast<size_t>(k * kLanes + r)] = x;
    }
    finite = finite && sum == 0.0f;
  }
  s.values = s.weights;
  return finite;
}

// round(k) for the columns of a group, last to first, sets errors of column k from its values; the
// errors then flow into the values of the group's columns before it.
template <typename Round>
void Ldlq::SweepGroup(int64_t begin, float* values, float* errors, Round&& round) const {
  for (int64_t strip = begin + spec_.group - kStrip; strip >= begin; strip -= kStrip) {
    for (int64_t k = strip + kStrip - 1; k >= strip; --k) {
      round(k);
      const float* error = errors + k * kLanes;
      for (int64_t j = strip; j < k; ++j) {
        const float factor = feedback_[static_cast<size_t>(k * cols_ + j)];
        float* value = values + j * kLanes;
        for (int64_t lane = 0; lane < kLanes; ++lane) value[lane] += factor * error[lane];
      }
    }
    AddTransposedProduct(feedback_.data() + strip * cols_ + begin, cols_, errors + strip * kLanes,
                         kLanes, values + begin * kLanes, kLanes, strip - begin, kLanes, kStrip);
  }
}

// The scale of a group is chosen for its values with the errors of the columns rounded so far, and
// as if the group itself were to be kept exactly: what they are expected to be when rounded.
void Ldlq::ChooseScales(int64_t group, LdlqScratch& s) const {
  const int64_t begin = group * spec_.group;
  const auto first = s.values.begin() + begin * kLanes;
  s.work.resize(s.values.size());
  std::copy(first, first + spec_.group * kLanes, s.work.begin() + begin * kLanes);
  float* values = s.work.data();
  SweepGroup(begin, values, s.errors.data(), [&](int64_t k) {
    for (int64_t i = k * kLanes; i < (k + 1) * kLanes; ++i) {
      s.errors[static_cast<size_t>(i)] = s.weights[static_cast<size_t>(i)] - values[i];
    }
  });
  s.row.resize(static_cast<size_t>(spec_.group));
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int64_t i = 0; i < spec_.group; ++i) {
      s.row[static_cast<size_t>(i)] = values[(begin + i) * kLanes + lane];
    }
    const uint16_t bits =
        SearchTurboQuantScale(spec_.codebook_entries, s.row, TurboQuantRms(s.row));
    s.scales[static_cast<size_t>(group * kLanes + lane)] = F16ToF32(bits);
  }
}

void Ldlq::Feedback(LdlqScratch& s) const {
  for (int64_t group = cols_ / spec_.group - 1; group >= 0; --group) {
    ChooseScales(group, s);
    const int64_t begin = group * spec_.group;
    const float* scales = s.scales.data() + group * kLanes;
    SweepGroup(begin, s.values.data(), s.errors.data(), [&](int64_t k) {
      float ratios[kLanes];
      const int64_t at = k * kLanes;
      for (int64_t i = 0; i < kLanes; ++i)
        ratios[i] = s.values[static_cast<size_t>(at + i)] / scales[i];
      float* units = s.units.data() + at;
      RoundTurboQuant(spec_.codebook_entries, ratios, kLanes, s.codes.data() + at, units);
      for (int64_t i = 0; i < kLanes; ++i) {
        s.errors[static_cast<size_t>(at + i)] =
            s.weights[static_cast<size_t>(at + i)] - units[i] * scales[i];
      }
    });
    AddTransposedProduct(feedback_.data() + begin * cols_, cols_, s.errors.data() + begin * kLanes,
                         kLanes, s.values.data(), kLanes, begin, kLanes, spec_.group);
  }
}

void Ldlq::UpdateErrors(LdlqScratch& s) const {
  for (int64_t k = 0; k < cols_; ++k) {
    const float* scales = s.scales.data() + k / spec_.group * kLanes;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto i = static_cast<size_t>(k * kLanes + lane);
      s.errors[i] = s.weights[i] - s.units[i] * scales[lane];
    }
  }
  s.gradient.assign(s.errors.size(), 0.0f);
  AddTransposedProduct(hessian_.data(), cols_, s.errors.data(), kLanes, s.gradient.data(), kLanes,
                       cols_, kLanes, cols_);
}

// Least squares of all scales of a row under H, codes kept.
void Ldlq::RefitScales(LdlqScratch& s) const {
  const int64_t group = spec_.group;
  const int64_t groups = cols_ / group;
  ScaleSystem system(groups, kLanes);
  for (int64_t h = 0; h < groups; ++h) {
    const int64_t begin = h * group;
    s.work.assign(static_cast<size_t>(cols_ * kLanes), 0.0f);
    float* products = s.work.data() + begin * kLanes;  // rows of H below the group, times its units
    AddTransposedProduct(hessian_.data() + begin * cols_ + begin, cols_,
                         s.units.data() + begin * kLanes, kLanes, products, kLanes, cols_ - begin,
                         kLanes, group);
    for (int64_t g = h; g < groups; ++g) {
      const float* units = s.units.data() + g * group * kLanes;
      system.AddCoefficient(g, h, units, s.work.data() + g * group * kLanes, group);
    }
    system.AddTarget(h, s.units.data() + begin * kLanes, s.gradient.data() + begin * kLanes, group);
  }
  system.Solve(s.scales);
}

// Every code in turn becomes the best one given all others.
void Ldlq::Descend(LdlqScratch& s) const {
  std::vector<float> changes(kStrip * kLanes);  // of the errors of a strip
  for (int64_t strip = 0; strip < cols_; strip += kStrip) {
    const float* scales = s.scales.data() + strip / spec_.group * kLanes;
    bool any = false;
    for (int64_t k = strip; k < strip + kStrip; ++k) {
      const float inverse = 1 / hessian_[static_cast<size_t>(k * cols_ + k)];
      float* units = s.units.data() + k * kLanes;
      float* gradient = s.gradient.data() + k * kLanes;
      float* change = changes.data() + (k - strip) * kLanes;
      float ratios[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) ratios[i] = units[i] + gradient[i] * inverse / scales[i];
      float rounded[kLanes];
      RoundTurboQuant(spec_.codebook_entries, ratios, kLanes, s.codes.data() + k * kLanes, rounded);
      for (int64_t i = 0; i < kLanes; ++i) {
        change[i] = (units[i] - rounded[i]) * scales[i];
        units[i] = rounded[i];
        any = any || change[i] != 0.0f;
      }
      for (int64_t j = strip; j < strip + kStrip; ++j) {
        const float factor = hessian_[static_cast<size_t>(k * cols_ + j)];
        float* other = s.gradient.data() + j * kLanes;
        for (int64_t i = 0; i < kLanes; ++i) other[i] += factor * change[i];
      }
    }
    if (!any) continue;
    const float* rows = hessian_.data() + strip * cols_;
    const int64_t after = strip + kStrip;
    AddTransposedProduct(rows, cols_, changes.data(), kLanes, s.gradient.data(), kLanes, strip,
                         kLanes, kStrip);
    AddTransposedProduct(rows + after, cols_, changes.data(), kLanes,
                         s.gradient.data() + after * kLanes, kLanes, cols_ - after, kLanes, kStrip);
  }
}

bool Ldlq::EncodeTile(const float* rows, int64_t num_rows, uint32_t* words, uint16_t* scales,
                      LdlqScratch& s) const {
  TQ_CHECK(num_rows <= kLanes);
  if (!LoadTile(rows, num_rows, s)) return false;
  Feedback(s);
  UpdateErrors(s);
  RefitScales(s);
  if (options_.descent_passes > 0) {
    UpdateErrors(s);
    for (int pass = 0; pass < options_.descent_passes; ++pass) Descend(s);
    UpdateErrors(s);
    RefitScales(s);
  }
  const int64_t groups = cols_ / spec_.group;
  const int64_t num_words = TurboQuantWords(spec_.codebook_entries, cols_);
  bool finite = true;
  s.row_codes.resize(static_cast<size_t>(cols_));
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t k = 0; k < cols_; ++k) {
      s.row_codes[static_cast<size_t>(k)] = s.codes[static_cast<size_t>(k * kLanes + r)];
    }
    PackTurboQuantCodes(spec_.codebook_entries, s.row_codes, words + r * num_words);
    for (int64_t g = 0; g < groups; ++g) {
      const float scale = s.scales[static_cast<size_t>(g * kLanes + r)];
      scales[r * groups + g] = F32ToF16(scale);
      finite = finite && std::isfinite(scale);
    }
  }
  return finite;
}

}  // namespace tq
