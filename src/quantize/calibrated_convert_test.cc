// Conversion by a calibration: less divergence, experts, widths by kind.
#include <algorithm>

#include <gtest/gtest.h>

#include "quantize/calibration_for_test.h"
#include "quantize/hessian_file.h"
#include "quantize/kind_divergence.h"
#include "quantize/ldlq.h"

namespace tq {
namespace {

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

// Experts share the layer's input; each reads its own through down_proj, and some read nothing.
TEST_F(CalibrateTest, ExpertsWithoutTokensAreRoundedAlone) {
  const Loaded moe = Load(TQ_TEST_DATA "/models/qwen3_moe");
  const auto vocab = static_cast<int32_t>(moe.model->spec().vocab_size);
  options_.seq_len = 2;
  const auto report =
      Calibrate(*moe.source, *moe.model, *moe.backend, {RandomIds(2, vocab, 1)}, file_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto file = HessianFile::Open(file_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::string experts = "model.layers.0.mlp.experts.";
  EXPECT_EQ((*file)->InputName(experts + "1.gate_proj"), experts + "0.up_proj");
  EXPECT_EQ((*file)->InputName(experts + "1.up_proj"), experts + "0.up_proj");
  EXPECT_EQ((*file)->InputName(experts + "1.down_proj"), experts + "1.down_proj");
  EXPECT_EQ(*(*file)->Rows(experts + "1.up_proj"), 2);
  int64_t routed = 0;
  int never = -1;
  const int num_experts = 8;  // of the fixture
  for (int e = 0; e < num_experts; ++e) {
    const int64_t rows = *(*file)->Rows(experts + std::to_string(e) + ".down_proj");
    routed += rows;
    if (rows == 0) never = e;
  }
  EXPECT_GT(routed, 2);
  ASSERT_GE(never, 0);

  const auto convert = [&](const std::string& name, const std::string& calibration) {
    ConvertOptions options;
    options.settings.group_size = 32;
    options.calibration = calibration;
    options.num_threads = 2;
    const auto converted = Convert(*moe.source, folder_ + "/" + name, options);
    EXPECT_TRUE(converted.ok()) << converted.status().message();
    auto source = OpenSource(folder_ + "/" + name);
    EXPECT_TRUE(source.ok());
    return std::move(*source);
  };
  const auto plain = convert("plain", "");
  const auto calibrated = convert("calibrated", file_);
  const auto same = [&](int e) {
    const std::string name = experts + std::to_string(e) + ".down_proj.weight";
    return std::ranges::equal(plain->Find(name)->bytes, calibrated->Find(name)->bytes);
  };
  int differ = 0;
  for (int e = 0; e < num_experts; ++e) differ += same(e) ? 0 : 1;
  EXPECT_TRUE(same(never));
  EXPECT_GT(differ, 0);
}

TEST_F(CalibrateTest, KindsAreMeasuredOneByOneAndWidthsAreRecorded) {
  ASSERT_TRUE(Run({Ids(4 * kTokens, 1)}).ok());
  const std::vector<int32_t> ids = Ids(kTokens, 2);
  const std::vector<float> reference = Logits(llama_, ids);
  const int64_t vocab = llama_.model->spec().vocab_size;
  ConvertOptions options;
  options.settings.group_size = 32;
  options.calibration = file_;
  options.num_threads = 2;
  const auto candidates = ListBitCandidates(*llama_.source, options);
  ASSERT_TRUE(candidates.ok()) << candidates.status().message();
  ASSERT_EQ(candidates->size(), 29u);
  EXPECT_LT(candidates->front().bytes[0], candidates->front().bytes[1]);
  EXPECT_LT(candidates->front().bytes[1], candidates->front().bytes[2]);
  int64_t last = 0;
  int64_t total = 0;
  options.progress = [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  const auto kinds = MeasureKinds(*llama_.source, options, folder_ + "/kind",
                                  [&](const WeightSource& source) -> Result<double> {
                                    Loaded changed;
                                    changed.backend = MakeF32Backend();
                                    auto model = Model::Load(source, *changed.backend);
                                    if (!model.ok()) return model.status();
                                    changed.model = std::move(*model);
                                    return MeanKl(reference, Logits(changed, ids), vocab);
                                  });
  ASSERT_TRUE(kinds.ok()) << kinds.status().message();
  EXPECT_EQ(last, total);
  EXPECT_EQ(NumFiles(), 1u);
  ASSERT_EQ(kinds->size(), 8u);  // q, k, v, o, gate, up, down, and the head
  for (const auto& [kind, kl] : *kinds) EXPECT_GT(kl, 0) << kind;

  options.progress = {};
  const auto plan = AllocateBits(*candidates, *kinds, 3.6);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  options.settings.path_bits = plan->bits;
  const auto report = Convert(*llama_.source, folder_ + "/out", options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_NEAR(8.0 * static_cast<double>(report->quantized_bytes) /
                  static_cast<double>(report->quantized_weights),
              plan->bits_per_weight, 1e-9);
  const Loaded mixed = Load(folder_ + "/out");
  for (const auto& [path, bits] : plan->bits) {
    EXPECT_EQ(mixed.source->Find(path + ".codebook")->shape, Shape{int64_t{1} << bits}) << path;
  }
}

TEST(LdlqDamping, GrowsWhereFewTokensSpeak) {
  EXPECT_NEAR(LdlqDamping(512, 1 << 20), LdlqOptions().damping, 1e-3);
  EXPECT_GT(LdlqDamping(512, 1), 10);
}

}  // namespace
}  // namespace tq
