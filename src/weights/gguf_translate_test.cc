// Variants of a tiny model: what the fixtures of real writers do not show.
#include "base/json.h"
#include "weights/gguf_translate.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weights/gguf_builder_for_test.h"
#include "weights/source.h"

namespace tq {
namespace {

class GgufVariantTest : public testing::Test {
 protected:
  const std::string path_ = testing::TempDir() + "/variant_test.gguf";
  void TearDown() override { std::filesystem::remove(path_); }

  Result<std::unique_ptr<WeightSource>> Open(const GgufBuilder& builder) {
    EXPECT_TRUE(WriteFile(path_, builder.Build()).ok());
    return OpenSource(path_);
  }
  Json Config(const GgufBuilder& builder) {
    const auto source = Open(builder);
    EXPECT_TRUE(source.ok()) << source.status().message();
    if (!source.ok()) return Json::object();
    return *ParseJson(*(*source)->ReadDocument("config.json"), "config.json");
  }
  void ExpectRefused(const GgufBuilder& builder, StatusCode code, std::string_view part) {
    const auto source = Open(builder);
    ASSERT_FALSE(source.ok()) << part;
    EXPECT_EQ(source.status().code(), code) << source.status().message();
    EXPECT_NE(source.status().message().find(part), std::string::npos) << source.status().message();
  }
};

TEST_F(GgufVariantTest, DefaultsFollowTheSizes) {
  const Json config = Config(TinyLlamaGguf());
  EXPECT_EQ(config["head_dim"], 4);
  EXPECT_EQ(config["vocab_size"], 6);
  EXPECT_EQ(config["rms_norm_eps"], 1e-5);
  EXPECT_EQ(config["rope_theta"], 10000.0);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["attention_bias"], false);
  EXPECT_EQ(config["bos_token_id"], 1);
  EXPECT_FALSE(config.contains("rope_scaling"));
  EXPECT_EQ(Config(TinyLlamaGguf()
                       .Remove("llama.attention.head_count_kv")
                       .Tensor("blk.0.attn_k.weight", {8, 8})
                       .Tensor("blk.0.attn_v.weight", {8, 8}))["num_key_value_heads"],
            2);
}

TEST_F(GgufVariantTest, HeadRowsComeBackInOrder) {
  const auto source = Open(TinyLlamaGguf());
  ASSERT_TRUE(source.ok());
  // Rows of a head are stored as 0 2 1 3 of Hugging Face's.
  const auto values = *ReadFloats(*(*source)->Find("model.layers.0.self_attn.k_proj.weight"));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[8], 17.0f);
  EXPECT_EQ(values[16], 9.0f);
  EXPECT_EQ(values[24], 25.0f);
}

TEST_F(GgufVariantTest, BiasesComeTogether) {
  GgufBuilder b = TinyLlamaGguf();
  b.Tensor("blk.0.attn_q.bias", {8}).Tensor("blk.0.attn_k.bias", {4});
  b.Tensor("blk.0.attn_v.bias", {4});
  ExpectRefused(b, StatusCode::kNotFound, "blk.0.attn_output.bias");
  b.Tensor("blk.0.attn_output.bias", {8});
  EXPECT_EQ(Config(b)["attention_bias"], true);
  const auto source = Open(b);
  EXPECT_EQ(*ReadFloats(*(*source)->Find("model.layers.0.self_attn.k_proj.bias")),
            (std::vector<float>{1, 3, 2, 4}));
}

TEST_F(GgufVariantTest, FusedAttentionIsSplit) {
  GgufBuilder b = TinyLlamaGguf();
  b.RemoveTensor("blk.0.attn_q.weight").RemoveTensor("blk.0.attn_k.weight");
  ExpectRefused(GgufBuilder(b).Tensor("blk.0.attn_qkv.weight", {8, 16}), StatusCode::kCorrupt,
                "attn_v");
  b.RemoveTensor("blk.0.attn_v.weight").Tensor("blk.0.attn_qkv.weight", {8, 16});
  const auto source = Open(b);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto v = *ReadFloats(*(*source)->Find("model.layers.0.self_attn.v_proj.weight"));
  EXPECT_EQ(v.size(), 32u);
  EXPECT_EQ(v[0], 97.0f);
  ExpectRefused(b.Tensor("blk.0.attn_qkv.weight", {8, 12}), StatusCode::kCorrupt, "attn_qkv");
}

TEST_F(GgufVariantTest, RopeScalings) {
  const auto scaling = [this](const GgufBuilder& b) { return Config(b)["rope_scaling"]; };
  EXPECT_EQ(scaling(TinyLlamaGguf().Float("llama.rope.scale_linear", 2.0f)),
            Json({{"rope_type", "linear"}, {"factor", 2.0}}));
  EXPECT_EQ(scaling(TinyLlamaGguf().Text("llama.rope.scaling.type", "none")), Json());
  GgufBuilder yarn = TinyLlamaGguf();
  yarn.Text("llama.rope.scaling.type", "yarn").Float("llama.rope.scaling.factor", 4.0f);
  yarn.Int("llama.rope.scaling.original_context_length", 64);
  yarn.Float("llama.rope.scaling.yarn_beta_fast", 16.0f);
  EXPECT_EQ(scaling(yarn), Json({{"rope_type", "yarn"},
                                 {"factor", 4.0},
                                 {"original_max_position_embeddings", 64},
                                 {"beta_fast", 16.0}}));
  EXPECT_EQ(scaling(TinyLlamaGguf().Tensor("rope_freqs.weight", {2})),
            Json({{"rope_type", "tq_factors"}, {"factors", {1.0, 2.0}}}));
  ExpectRefused(TinyLlamaGguf().Text("llama.rope.scaling.type", "longrope"),
                StatusCode::kUnsupported, "longrope");
  ExpectRefused(yarn.Tensor("rope_freqs.weight", {2}), StatusCode::kUnsupported, "rope_freqs");
  ExpectRefused(TinyLlamaGguf().Tensor("rope_freqs.weight", {3}), StatusCode::kCorrupt,
                "rope_freqs.weight");
}

TEST_F(GgufVariantTest, SlidingWindowMakesItMistral) {
  const Json config = Config(TinyLlamaGguf().Int("llama.attention.sliding_window", 4096));
  EXPECT_EQ(config["model_type"], "mistral");
  EXPECT_EQ(config["sliding_window"], 4096);
}

TEST_F(GgufVariantTest, PerLayerArraysMustAgree) {
  const std::string key = "llama.attention.head_count";
  EXPECT_EQ(
      Config(TinyLlamaGguf().Numbers<int32_t>(key, GgufType::kI32, {2, 2}))["num_attention_heads"],
      2);
  ExpectRefused(TinyLlamaGguf().Numbers<int32_t>(key, GgufType::kI32, {2, 1}),
                StatusCode::kUnsupported, key);
  ExpectRefused(TinyLlamaGguf().Numbers<int32_t>(key, GgufType::kI32, {}), StatusCode::kCorrupt,
                key);
}

TEST_F(GgufVariantTest, RefusesWhatItDoesNotUnderstand) {
  ExpectRefused(TinyLlamaGguf().Float("llama.logit_scale", 2.0f), StatusCode::kUnsupported,
                "llama.logit_scale");
  ExpectRefused(TinyLlamaGguf().Tensor("blk.0.attn_q.scale", {1}), StatusCode::kUnsupported,
                "blk.0.attn_q.scale");
  ExpectRefused(TinyLlamaGguf().Tensor("blk.1.attn_norm.weight", {8}), StatusCode::kUnsupported,
                "blk.1.attn_norm.weight");
  ExpectRefused(TinyLlamaGguf().Int("llama.expert_count", 8), StatusCode::kUnsupported,
                "llama.expert_count");
  ExpectRefused(TinyLlamaGguf().Bool("llama.attention.causal", false), StatusCode::kUnsupported,
                "llama.attention.causal");
  ExpectRefused(TinyLlamaGguf().Int("llama.rope.dimension_count", 2), StatusCode::kUnsupported,
                "llama.rope.dimension_count");
}

TEST_F(GgufVariantTest, RefusesLies) {
  ExpectRefused(TinyLlamaGguf().Int("llama.block_count", 1u << 31), StatusCode::kCorrupt,
                "llama.block_count");
  ExpectRefused(TinyLlamaGguf().Int("llama.block_count", 2), StatusCode::kNotFound,
                "blk.1.attn_norm.weight");
  ExpectRefused(TinyLlamaGguf().Int("tokenizer.ggml.bos_token_id", 6), StatusCode::kCorrupt,
                "tokenizer.ggml.bos_token_id");
  ExpectRefused(TinyLlamaGguf().Int("llama.attention.head_count_kv", 0), StatusCode::kCorrupt,
                "head_count_kv");
  ExpectRefused(TinyLlamaGguf().Int("llama.vocab_size", 5).Tensor("token_embd.weight", {8, 5}),
                StatusCode::kCorrupt, "llama.vocab_size");
  ExpectRefused(TinyLlamaGguf().Tensor("token_embd.weight", {8, 9}), StatusCode::kCorrupt,
                "token_embd.weight");
  ExpectRefused(TinyLlamaGguf().Int("llama.attention.head_count", 3), StatusCode::kCorrupt,
                "head_count");
  ExpectRefused(TinyLlamaGguf().Float("llama.rope.freq_base", INFINITY), StatusCode::kCorrupt,
                "llama.rope.freq_base");
  ExpectRefused(TinyLlamaGguf().Text("general.architecture", "ll\xFF"), StatusCode::kCorrupt,
                "general.architecture");
}

}  // namespace
}  // namespace tq
