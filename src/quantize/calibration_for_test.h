// What the tests of calibration and of conversion by it share: a small llama, its logits, files in
// a folder of the test's own.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "model/model.h"
#include "quantize/calibrate.h"
#include "quantize/convert.h"

namespace tq {

inline constexpr int64_t kTokens = 96;

inline std::vector<int32_t> RandomIds(int64_t n, int32_t vocab_size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size));
  return ids;
}

struct Loaded {
  std::unique_ptr<WeightSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<const Model> model;
};

inline std::unique_ptr<Backend> MakeF32Backend() {
  auto backend =
      MakeBackend("", {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
  EXPECT_TRUE(backend.ok());
  return std::move(*backend);
}

inline Loaded Load(const std::string& path) {
  Loaded out;
  auto source = OpenSource(path);
  EXPECT_TRUE(source.ok()) << source.status().message();
  out.source = std::move(*source);
  out.backend = MakeF32Backend();
  auto model = Model::Load(*out.source, *out.backend);
  EXPECT_TRUE(model.ok()) << model.status().message();
  out.model = std::move(*model);
  return out;
}

inline std::vector<float> Logits(const Loaded& loaded, const std::vector<int32_t>& ids,
                                 InputObserver* observer = nullptr) {
  const auto n = static_cast<int64_t>(ids.size());
  auto cache = KvCache::Create(loaded.model->Needs(KvFormat::kF32), KvCache::PagesFor(n), 1);
  StepPlan plan;
  plan.ids = ids;
  plan.positions.resize(ids.size());
  std::iota(plan.positions.begin(), plan.positions.end(), 0);
  plan.logits_tokens = plan.positions;
  SequencePlan sequence{.first_token = 0, .num_tokens = n, .start_position = 0, .pages = {}};
  EXPECT_TRUE(cache->Allocate(cache->num_pages(), sequence.pages));
  plan.sequences.push_back(sequence);
  Scratch scratch;
  StepContext step{*loaded.backend, scratch, plan, nullptr, {}, observer};
  std::vector<float> logits(ids.size() * static_cast<size_t>(loaded.model->spec().vocab_size));
  loaded.model->Forward(step, *cache, logits.data());
  return logits;
}

inline std::vector<double> Softmax(const float* logits, int64_t n) {
  std::vector<double> p(logits, logits + n);
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  for (double& x : p) x /= sum;
  return p;
}

inline double MeanKl(const std::vector<float>& reference, const std::vector<float>& other,
                     int64_t vocab) {
  double sum = 0;
  for (size_t at = 0; at < reference.size(); at += static_cast<size_t>(vocab)) {
    const std::vector<double> p = Softmax(&reference[at], vocab);
    const std::vector<double> q = Softmax(&other[at], vocab);
    for (size_t i = 0; i < p.size(); ++i) sum += p[i] * std::log(p[i] / q[i]);
  }
  return sum * static_cast<double>(vocab) / static_cast<double>(reference.size());
}

class CalibrateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tq_calibrate_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    file_ = folder_ + "/calibration";
    llama_ = Load(TQ_TEST_DATA "/models/llama");
    options_.seq_len = kTokens;
    options_.num_threads = 2;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<CalibrateReport> Run(const std::vector<std::vector<int32_t>>& texts) {
    return Calibrate(*llama_.source, *llama_.model, *llama_.backend, texts, file_, options_);
  }
  std::vector<int32_t> Ids(int64_t n, uint32_t seed) const {
    return RandomIds(n, static_cast<int32_t>(llama_.model->spec().vocab_size), seed);
  }
  std::string ConvertTo(const std::string& name, Rounding rounding, const std::string& calibration,
                        int threads = 2) {
    ConvertOptions options;
    options.settings.group_size = 32;
    options.rounding = rounding;
    options.calibration = calibration;
    options.num_threads = threads;
    const auto report = Convert(*llama_.source, folder_ + "/" + name, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return folder_ + "/" + name;
  }
  size_t NumFiles() const { return ListDirectory(folder_)->size(); }

  std::string folder_;
  std::string file_;
  Loaded llama_;
  CalibrateOptions options_;
};

}  // namespace tq
