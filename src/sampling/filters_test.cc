// What the filters keep, and that the draw has the right shares.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "base/math.h"
#include "sampling/sampler_for_test.h"
#include "sampling/weights.h"

namespace tq {
namespace {

TEST(Sampler, TopKKeepsTheLowerIdsOfATie) {
  SamplingParams params = Hot();
  params.top_k = 2;
  EXPECT_EQ(Drawn(params, {1, 2, 2, 2, 0}), (std::set<int32_t>{1, 2}));
  params.top_k = 1;
  EXPECT_EQ(Drawn(params, {2, 2, 1}), (std::set<int32_t>{0}));
  params.top_k = 100;
  EXPECT_EQ(Drawn(params, {2, 2, 1}), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.25, 0.25.
  const std::vector<float> logits = {0.0f, std::log(2.0f), 0.0f};
  SamplingParams params = Hot();
  params.top_p = 1e-30f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1}));
  params.top_p = 0.45f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1}));
  params.top_p = 0.7f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1}));  // a tie: the lower id first
  params.top_p = 0.8f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2}));
  params.top_p = 1.0f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPIsExactOverManyCandidates) {
  // Flat: exactly the first ids by the tie rule, beyond the first sorted piece.
  SamplingParams params = Hot();
  params.top_p = 0.5f;
  const std::vector<float> logits(1000, 1.0f);
  const std::set<int32_t> ids = Drawn(params, logits);
  EXPECT_LT(*ids.rbegin(), 500);
  EXPECT_GT(*ids.rbegin(), 450);
}

TEST(Sampler, TopPWorksOnTheKeptOfTopK) {
  // After top_k the shares are 2/3 and 1/3.
  SamplingParams params = Hot();
  params.top_k = 2;
  params.top_p = 0.6f;
  EXPECT_EQ(Drawn(params, {0.0f, std::log(2.0f), 0.0f}), (std::set<int32_t>{1}));
}

TEST(Sampler, MinPIsRelativeToTheLargest) {
  // Weights 1, 0.5, 0.25.
  const std::vector<float> logits = {std::log(0.25f), 0.0f, std::log(0.5f)};
  SamplingParams params = Hot();
  params.min_p = 0.2f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2}));
  params.min_p = 0.3f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1, 2}));
  params.min_p = 0.999f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1}));
}

TEST(Sampler, DistributionMatchesTheSoftmax) {
  const std::vector<float> logits = {0.3f, -1.2f, 2.0f, 0.0f, 1.1f, -0.4f, 0.9f, 1.7f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    for (const bool sort : {false, true}) {
      SamplingParams params = Hot();
      params.temperature = temperature;
      params.seed = 1234;
      params.top_p = sort ? 0.99999f : 1.0f;  // keeps all, through the sorted route
      constexpr int kDraws = 20000;
      const std::map<int32_t, int> counts = Histogram(params, logits, kDraws);
      double total = 0.0;
      for (const float logit : logits) total += std::exp(double{logit} / temperature);
      double chi_square = 0.0;
      for (size_t id = 0; id < logits.size(); ++id) {
        const double expected = kDraws * std::exp(double{logits[id]} / temperature) / total;
        const auto found = counts.find(static_cast<int32_t>(id));
        const double difference = (found == counts.end() ? 0 : found->second) - expected;
        chi_square += difference * difference / expected;
      }
      EXPECT_LT(chi_square, 24.3) << temperature;  // 7 degrees of freedom, p = 0.001
    }
  }
}

TEST(Sampler, TypicalKeepsThoseNearTheEntropy) {
  // Shares 0.4, 0.4, 0.1, 0.1: entropy 1.19; surprises 0.92, 0.92, 2.3, 2.3.
  const std::vector<float> even = {std::log(4.0f), std::log(4.0f), 0.0f, 0.0f};
  SamplingParams params = Hot();
  params.typical_p = 0.79f;
  EXPECT_EQ(Drawn(params, even), (std::set<int32_t>{0, 1}));
  // One of 0.6, twenty of 0.02: entropy 1.87, surprises 0.51 and 3.91: the best one is nearer.
  std::vector<float> peaked(21, 0.0f);
  peaked[20] = std::log(30.0f);
  params.typical_p = 0.5f;
  EXPECT_EQ(Drawn(params, peaked), (std::set<int32_t>{20}));
  // One of 1/3, forty of 1/60: entropy 3.1, surprises 1.1 and 4.09: now the others are.
  peaked.assign(41, 0.0f);
  peaked[7] = std::log(20.0f);
  params.typical_p = 0.6f;
  EXPECT_EQ(Drawn(params, peaked).count(7), 0u);
}

TEST(Sampler, XtcKeepsTheLeastOfTheTopChoices) {
  // Shares 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> logits = {std::log(4.0f), std::log(3.0f), std::log(2.0f), 0.0f};
  SamplingParams params = Hot();
  params.xtc_probability = 1.0f;
  params.xtc_threshold = 0.25f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{1, 2, 3}));
  params.xtc_threshold = 0.15f;
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{2, 3}));
  params.xtc_threshold = 0.35f;  // one top choice: nothing to leave out
  EXPECT_EQ(Drawn(params, logits), (std::set<int32_t>{0, 1, 2, 3}));
  params.xtc_threshold = 0.51f;
  EXPECT_EQ(Drawn(params, {5.0f, 5.0f}), (std::set<int32_t>{0, 1}));
  params.xtc_threshold = 0.3f;  // equal ones: the highest id stays
  EXPECT_EQ(Drawn(params, {5.0f, 5.0f, 5.0f}), (std::set<int32_t>{2}));
}

TEST(Sampler, XtcActsAsOftenAsAsked) {
  SamplingParams params = Hot();
  params.xtc_threshold = 0.1f;
  params.xtc_probability = 0.25f;
  const int drawn = Histogram(params, {9.0f, 8.0f}, 10000)[0];
  // 0.75 * 0.731
  EXPECT_NEAR(drawn / 10000.0, 0.548, 0.02);
}

TEST(Weights, AreExpOfBaseMath) {
  std::vector<float> logits;
  for (float x = 0.0f; x > -95.0f; x -= 0.0137f) logits.push_back(x);
  logits.push_back(-std::numeric_limits<float>::max());
  std::vector<uint64_t> weights(logits.size());
  for (const float temperature : {1.0f, 0.7f, 3.0f}) {
    const uint64_t total = ComputeWeights(logits, {0.0f, temperature}, weights);
    uint64_t sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double weight = double{Exp(logits[i] / temperature)} * 0x1.0p42;
      ASSERT_EQ(weights[i], static_cast<uint64_t>(std::nearbyint(weight))) << logits[i];
      sum += weights[i];
    }
    EXPECT_EQ(total, sum);
    // The last, of which nothing is left, counts in no mean.
    EXPECT_TRUE(std::isfinite(MeanOffset(logits, {0.0f, temperature}, weights, total)));
  }
}

// All filters by sorting, with f64 shares: the set that may be drawn.
class Sorted {
 public:
  Sorted(const std::vector<float>& logits, float temperature) : logits_(logits) {
    for (size_t id = 0; id < logits.size(); ++id) ids_.push_back(static_cast<int32_t>(id));
    temperature_ = temperature;
  }
  double Logit(int32_t id) const { return double{logits_[static_cast<size_t>(id)]} / temperature_; }
  std::vector<double> Shares() const {
    double largest = -1e300;
    for (const int32_t id : ids_) largest = std::max(largest, Logit(id));
    std::vector<double> shares;
    for (const int32_t id : ids_) shares.push_back(std::exp(Logit(id) - largest));
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= sum;
    return shares;
  }
  // By rising key, then rising id, until the shares reach p.
  void Until(double p, const std::function<double(double share)>& key) {
    const std::vector<double> shares = Shares();
    std::vector<size_t> order(ids_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key(shares[a]) < key(shares[b]); });
    std::vector<int32_t> kept;
    double sum = 0;
    for (const size_t i : order) {
      if (sum >= p && !kept.empty()) break;
      kept.push_back(ids_[i]);
      sum += shares[i];
    }
    std::sort(kept.begin(), kept.end());
    ids_ = kept;
  }
  void Apply(const SamplingParams& params) {
    if (params.top_k > 0 && static_cast<size_t>(params.top_k) < ids_.size()) {
      std::stable_sort(ids_.begin(), ids_.end(),
                       [&](int32_t a, int32_t b) { return Logit(a) > Logit(b); });
      ids_.resize(static_cast<size_t>(params.top_k));
      std::sort(ids_.begin(), ids_.end());
    }
    if (params.typical_p < 1) {
      double entropy = 0;
      for (const double share : Shares()) entropy -= share > 0 ? share * std::log(share) : 0;
      Until(params.typical_p, [&](double share) {
        return share > 0 ? std::fabs(-std::log(share) - entropy) : 1e300;
      });
    }
    if (params.top_p < 1) Until(params.top_p, [](double share) { return -share; });
    if (params.min_p > 0) {
      const std::vector<double> shares = Shares();
      const double least = params.min_p * *std::max_element(shares.begin(), shares.end());
      std::vector<int32_t> kept;
      for (size_t i = 0; i < ids_.size(); ++i) {
        if (shares[i] >= least) kept.push_back(ids_[i]);
      }
      ids_ = kept;
    }
  }
  const std::vector<int32_t>& ids() const { return ids_; }

 private:
  const std::vector<float>& logits_;
  double temperature_ = 1;
  std::vector<int32_t> ids_;
};

// What Candidates keeps, by the same steps.
std::vector<int32_t> Kept(const SamplingParams& params, const std::vector<float>& logits) {
  Candidates candidates;
  candidates.Collect(logits);
  if (params.top_k > 0) candidates.KeepTopK(static_cast<size_t>(params.top_k));
  if (params.typical_p < 1) candidates.KeepTypical(params.typical_p);
  if (params.top_p < 1) candidates.KeepTopP(params.top_p);
  if (params.min_p > 0) candidates.KeepMinP(params.min_p);
  const std::span<const int32_t> ids = candidates.ids();
  return {ids.begin(), ids.end()};
}

TEST(Sampler, FiltersKeepWhatSortingKeeps) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> logits(20 + random() % 400);
    const bool ties = round % 3 == 0;
    for (float& logit : logits) {
      logit = normal(random);
      if (ties) logit = std::nearbyint(logit);
    }
    SamplingParams params;
    const auto maybe = [&](float value) { return random() % 2 == 0 ? value : 1.0f; };
    const auto fraction = [&] {
      return 0.02f + 0.96f * static_cast<float>(random() % 1000) * 1e-3f;
    };
    params.top_k = random() % 2 == 0 ? static_cast<int>(1 + random() % 100) : 0;
    params.typical_p = maybe(fraction());
    params.top_p = maybe(fraction());
    params.min_p = 1.0f - maybe(fraction());
    Sorted sorted(logits, 1.0f);
    sorted.Apply(params);
    EXPECT_EQ(Kept(params, logits), sorted.ids())
        << round << " top_k " << params.top_k << " typical_p " << params.typical_p << " top_p "
        << params.top_p << " min_p " << params.min_p;
  }
}

// SA-02: no filter is off for a large vocabulary.
TEST(Sampler, SA02_FiltersActOnEveryVocabulary) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (const size_t vocab : {size_t{100}, size_t{200000}}) {
    std::vector<float> logits(vocab);
    for (float& logit : logits) logit = normal(random);
    std::vector<float> peaked(vocab, 0.0f);
    peaked[vocab - 1] = 20.0f;
    peaked[vocab / 2] = 19.5f;
    SamplingParams params = Hot();
    params.min_p = 0.5f;
    EXPECT_EQ(Drawn(params, peaked, 60), (std::set<int32_t>{static_cast<int32_t>(vocab / 2),
                                                            static_cast<int32_t>(vocab - 1)}));
    for (const auto set :
         {+[](SamplingParams& p) { p.min_p = 0.3f; }, +[](SamplingParams& p) { p.top_p = 0.7f; },
          +[](SamplingParams& p) { p.typical_p = 0.4f; },
          +[](SamplingParams& p) { p.top_k = 40; }}) {
      SamplingParams one;
      set(one);
      Sorted sorted(logits, 1.0f);
      sorted.Apply(one);
      // The f64 shares and the integer weights may differ by one id on the border.
      const std::vector<int32_t> kept = Kept(one, logits);
      EXPECT_LT(kept.size(), vocab);
      EXPECT_LE(
          std::max(kept.size(), sorted.ids().size()) - std::min(kept.size(), sorted.ids().size()),
          size_t{vocab > 1000 ? 3u : 0u});
    }
  }
}

}  // namespace
}  // namespace tq
