#include "quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "quantize/convert.h"
#include "quantize/hessian_file.h"

namespace tq {
namespace {

constexpr int64_t kTokens = 96;

std::vector<int32_t> RandomIds(int64_t n, int32_t vocab_size, uint32_t seed) {
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

Loaded Load(const std::string& path) {
  Loaded out;
  auto source = OpenSource(path);
  EXPECT_TRUE(source.ok()) << source.status().message();
  out.source = std::move(*source);
  auto backend =
      MakeBackend("", {.num_threads = 2, .activations = ActivationMode::kF32, .isa = ""});
  EXPECT_TRUE(backend.ok());
  out.backend = std::move(*backend);
  auto model = Model::Load(*out.source, *out.backend);
  EXPECT_TRUE(model.ok()) << model.status().message();
  out.model = std::move(*model);
  return out;
}

std::vector<float> Logits(const Loaded& loaded, const std::vector<int32_t>& ids,
                          InputObserver* observer = nullptr) {
  const auto n = static_cast<int64_t>(ids.size());
  auto cache = KvCache::Create(loaded.model->Needs(KvType::kF32), KvCache::PagesFor(n), 1);
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

std::vector<double> Softmax(const float* logits, int64_t n) {
  std::vector<double> p(logits, logits + n);
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  for (double& x : p) x /= sum;
  return p;
}

double MeanKl(const std::vector<float>& reference, const std::vector<float>& other, int64_t vocab) {
  double sum = 0;
  for (size_t at = 0; at < reference.size(); at += static_cast<size_t>(vocab)) {
    const std::vector<double> p = Softmax(&reference[at], vocab);
    const std::vector<double> q = Softmax(&other[at], vocab);
    for (size_t i = 0; i < p.size(); ++i) sum += p[i] * std::log(p[i] / q[i]);
  }
  return sum * static_cast<double>(vocab) / static_cast<double>(reference.size());
}

// The inputs of one matrix, as they are.
class Recorder : public InputObserver {
 public:
  explicit Recorder(std::string name) : name_(std::move(name)) {}
  void OnInput(std::span<const std::string_view> names, const float* x, int64_t num_tokens,
               int64_t cols) override {
    if (std::find(names.begin(), names.end(), name_) != names.end())
      values.assign(x, x + num_tokens * cols);
  }
  std::vector<float> values;

 private:
  std::string name_;
};

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

TEST_F(CalibrateTest, SumsAreThoseOfTheInputs) {
  const std::vector<int32_t> ids = Ids(kTokens, 1);
  const auto report = Run({ids});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->tokens, kTokens);
  EXPECT_EQ(report->inputs, 17);  // 4 layers of 4, and the head
  const auto file = HessianFile::Open(file_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->num_tokens(), kTokens);
  const struct {
    const char* name;
    int64_t cols;
  } matrices[] = {{"model.layers.0.self_attn.q_proj", 64},  {"model.layers.1.self_attn.v_proj", 64},
                  {"model.layers.2.self_attn.o_proj", 128}, {"model.layers.3.mlp.up_proj", 64},
                  {"model.layers.3.mlp.down_proj", 128},    {"lm_head", 64}};
  for (const auto& matrix : matrices) {
    SCOPED_TRACE(matrix.name);
    // Shared inputs are shown with all their matrices, so any of the names finds them.
    Recorder recorder(matrix.name);
    Logits(llama_, ids, &recorder);
    const auto sums = (*file)->Read(matrix.name, matrix.cols);
    ASSERT_TRUE(sums.ok()) << sums.status().message();
    ASSERT_EQ(recorder.values.size(), static_cast<size_t>(kTokens * matrix.cols));
    double largest = 0;
    double worst = 0;
    for (int64_t i = 0; i < matrix.cols; ++i) {
      for (int64_t j = 0; j < matrix.cols; ++j) {
        double sum = 0;
        for (int64_t t = 0; t < kTokens; ++t) {
          sum += double{recorder.values[static_cast<size_t>(t * matrix.cols + i)]} *
                 recorder.values[static_cast<size_t>(t * matrix.cols + j)];
        }
        largest = std::max(largest, std::fabs(sum));
        worst = std::max(worst, std::fabs(sum - (*sums)[static_cast<size_t>(i * matrix.cols + j)]));
      }
    }
    EXPECT_LT(worst, 1e-5 * largest);
  }
}

TEST_F(CalibrateTest, LittleMemoryGivesTheSameFile) {
  const std::vector<std::vector<int32_t>> texts = {Ids(3 * kTokens, 1), Ids(kTokens, 2)};
  ASSERT_TRUE(Run(texts).ok());
  const auto whole = ReadTextFile(file_);
  options_.memory_bytes = 3 * 128 * 128 * 4;
  options_.num_threads = 1;
  int64_t last = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  };
  const auto report = Run(texts);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->passes, 2);
  EXPECT_EQ(last, report->passes * report->tokens);
  EXPECT_TRUE(*ReadTextFile(file_) == *whole);
  options_.memory_bytes = 1000;
  EXPECT_EQ(Run(texts).status().code(), StatusCode::kOutOfMemory);
}

TEST_F(CalibrateTest, ConversionIsCloserToTheOriginal) {
  ASSERT_TRUE(Run({Ids(32 * kTokens, 1)}).ok());
  const std::vector<int32_t> ids = Ids(4 * kTokens, 2);  // not those of the calibration
  const std::vector<float> reference = Logits(llama_, ids);
  const int64_t vocab = llama_.model->spec().vocab_size;
  const auto kl = [&](const std::string& path) {
    return MeanKl(reference, Logits(Load(path), ids), vocab);
  };
  const double rms = kl(ConvertTo("rms", Rounding::kRms, ""));
  const double search = kl(ConvertTo("search", Rounding::kSearch, ""));
  const std::string one = ConvertTo("one", Rounding::kRms, file_, 1);
  const double calibrated = kl(one);
  EXPECT_LT(search, rms);
  EXPECT_LT(calibrated, 0.8 * search);
  const std::string three = ConvertTo("three", Rounding::kRms, file_, 3);
  EXPECT_TRUE(*ReadTextFile(one + "/model.safetensors") ==
              *ReadTextFile(three + "/model.safetensors"));
}

TEST_F(CalibrateTest, RefusesAFileOfAnotherModel) {
  ASSERT_TRUE(Run({Ids(kTokens, 1)}).ok());
  const Loaded other = Load(TQ_TEST_DATA "/models/mistral_sliding");
  ConvertOptions options;
  options.settings.group_size = 32;
  options.calibration = file_;
  const Status status = Convert(*other.source, folder_ + "/out", options).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("found that of another checkpoint"), std::string::npos)
      << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  options.calibration = TQ_TEST_DATA "/models/llama/model.safetensors";
  EXPECT_NE(Convert(*other.source, folder_ + "/out", options)
                .status()
                .message()
                .find("turboquant calibrate"),
            std::string::npos);
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(CalibrateTest, RefusesDamagedSums) {
  const std::vector<HessianWriter::Input> inputs = {{{"a", "b"}, 16}, {{"c"}, 32}};
  std::vector<float> sums(16 * 16, 1.0f);
  std::vector<float> wrong(32 * 32, 1.0f);
  wrong[5] = 2;
  auto writer = HessianWriter::Create(file_, inputs, 7, "0123");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(inputs[0], sums).ok());
  ASSERT_TRUE((*writer)->Append(inputs[1], wrong).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto file = HessianFile::Open(file_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->fingerprint(), "0123");
  EXPECT_EQ((*file)->num_tokens(), 7);
  EXPECT_EQ(*(*file)->Read("b", 16), sums);
  EXPECT_EQ((*file)->Read("b", 32).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ((*file)->Read("c", 32).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ((*file)->Read("d", 16).status().code(), StatusCode::kNotFound);
}

TEST_F(CalibrateTest, BadInputsAreOneLineAndLeaveNothing) {
  EXPECT_NE(Run({Ids(kTokens - 1, 1)}).status().message().find("at least 96 tokens"),
            std::string::npos);
  std::vector<int32_t> ids = Ids(kTokens, 1);
  ids[3] = 9999;
  EXPECT_EQ(Run({ids}).status().code(), StatusCode::kInvalidArgument);
  options_.seq_len = 100000;
  EXPECT_NE(Run({Ids(kTokens, 1)}).status().message().find("the model's context"),
            std::string::npos);
  options_.seq_len = kTokens;
  std::atomic<bool> cancel{true};
  options_.cancel = &cancel;
  EXPECT_EQ(Run({Ids(kTokens, 1)}).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(NumFiles(), 0u);
}

}  // namespace
}  // namespace tq
