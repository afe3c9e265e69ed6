// Conversion block after block: less divergence, the same bytes whatever the threads and however
// often it was stopped, experts, models that it cannot do.
#include <atomic>

#include <gtest/gtest.h>

#include "quantize/calibration_for_test.h"

namespace tq {
namespace {

class SequentialTest : public CalibrateTest {
 protected:
  Result<ConvertReport> ConvertSequentially(const Loaded& model, const std::string& name,
                                            ConvertOptions options) {
    options.settings.group_size = 32;
    options.calibration = file_;
    options.sequential = model.backend.get();
    return Convert(*model.source, folder_ + "/" + name, options);
  }
  std::string Weights(const std::string& name) {
    return *ReadTextFile(folder_ + "/" + name + "/model.safetensors");
  }
};

TEST_F(SequentialTest, IsCloserToTheOriginalWhateverTheThreads) {
  ASSERT_TRUE(Run({Ids(32 * kTokens, 1)}).ok());
  const std::vector<int32_t> ids = Ids(4 * kTokens, 2);  // not those of the calibration
  const std::vector<float> reference = Logits(llama_, ids);
  const int64_t vocab = llama_.model->spec().vocab_size;
  const auto kl = [&](const std::string& path) {
    return MeanKl(reference, Logits(Load(path), ids), vocab);
  };
  const double calibrated = kl(ConvertTo("calibrated", Rounding::kSearch, file_));
  int64_t last = 0;
  int64_t total = 0;
  ConvertOptions options;
  options.num_threads = 1;
  options.progress = [&](int64_t done, int64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  const auto report = ConvertSequentially(llama_, "one", options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(last, total);
  EXPECT_LT(kl(folder_ + "/one"), calibrated);
  EXPECT_EQ(ListDirectory(folder_ + "/one")->size(),
            ListDirectory(folder_ + "/calibrated")->size());
  options.num_threads = 3;
  options.progress = {};
  ASSERT_TRUE(ConvertSequentially(llama_, "three", options).ok());
  EXPECT_TRUE(Weights("one") == Weights("three"));
}

TEST_F(SequentialTest, GoesOnWhereItWasStopped) {
  ASSERT_TRUE(Run({Ids(4 * kTokens, 1)}).ok());
  ConvertOptions options;
  options.num_threads = 2;
  ASSERT_TRUE(ConvertSequentially(llama_, "whole", options).ok());
  std::atomic<bool> cancel{false};
  options.resume = true;
  options.cancel = &cancel;
  int64_t calls = 0;
  options.progress = [&](int64_t, int64_t) { cancel = ++calls > 9; };  // in the second block
  const Status stopped = ConvertSequentially(llama_, "resumed", options).status();
  EXPECT_EQ(stopped.code(), StatusCode::kCancelled);
  EXPECT_TRUE(FileExists(folder_ + "/.resumed.partial/rounded-00000.safetensors"));
  EXPECT_FALSE(FileExists(folder_ + "/.resumed.partial/rounded-00001.safetensors"));
  options.cancel = nullptr;
  options.progress = {};
  const auto report = ConvertSequentially(llama_, "resumed", options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(Weights("whole") == Weights("resumed"));
}

TEST_F(SequentialTest, ExpertsReadTheTokensThatTheOriginalSentThem) {
  const Loaded moe = Load(TQ_TEST_DATA "/models/qwen3_moe");
  const auto vocab = static_cast<int32_t>(moe.model->spec().vocab_size);
  ASSERT_TRUE(Calibrate(*moe.source, *moe.model, *moe.backend, {RandomIds(16 * kTokens, vocab, 1)},
                        file_, options_)
                  .ok());
  const std::vector<int32_t> ids = RandomIds(4 * kTokens, vocab, 2);
  const std::vector<float> reference = Logits(moe, ids);
  ConvertOptions options;
  options.num_threads = 2;
  options.settings.group_size = 32;
  const auto kl = [&](const std::string& name) {
    return MeanKl(reference, Logits(Load(folder_ + "/" + name), ids), vocab);
  };
  ASSERT_TRUE(Convert(*moe.source, folder_ + "/search", options).ok());
  const auto report = ConvertSequentially(moe, "sequential", options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_LT(kl("sequential"), 0.8 * kl("search"));
}

TEST_F(SequentialTest, RefusesModelsWhoseLayersReadEarlierOnes) {
  const Loaded other = Load(TQ_TEST_DATA "/models/kimi_k3");
  const auto vocab = static_cast<int32_t>(other.model->spec().vocab_size);
  ASSERT_TRUE(Calibrate(*other.source, *other.model, *other.backend, {RandomIds(kTokens, vocab, 1)},
                        file_, options_)
                  .ok());
  const Status status = ConvertSequentially(other, "out", {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  EXPECT_NE(status.message().find("without --sequential"), std::string::npos);
  EXPECT_EQ(NumFiles(), 1u);
}

}  // namespace
}  // namespace tq
