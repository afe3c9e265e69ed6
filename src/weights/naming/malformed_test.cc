// Tensors that cannot be given canonical names and shapes: each is refused with one line.
#include <gtest/gtest.h>

#include "weights/fake_source_for_test.h"
#include "weights/ignorable.h"
#include "weights/naming/aliases.h"
#include "weights/naming/canonical.h"

namespace tq {
namespace {

struct Declared {
  const char* name;
  DType dtype;
  Shape shape;
};

std::string Canonicalize(const std::vector<Declared>& declared,
                         std::vector<SourceTensor>* out = nullptr) {
  FakeSource source;
  for (const Declared& tensor : declared) {
    const auto bytes = static_cast<size_t>(NumElements(tensor.shape)) * DTypeBytes(tensor.dtype);
    source.Add(tensor.name, tensor.dtype, tensor.shape, std::vector<uint8_t>(bytes));
  }
  std::vector<SourceTensor> tensors = source.tensors();
  const Status status = CanonicalizeTensors("", "folder", tensors);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  if (out != nullptr) *out = std::move(tensors);
  return status.message();
}

TEST(CanonicalNames, TwoTensorsOfOneName) {
  EXPECT_EQ(Canonicalize({{"language_model.model.norm.weight", DType::kF32, {4}},
                          {"model.language_model.norm.weight", DType::kF32, {4}}}),
            "folder: tensors \"language_model.model.norm.weight\" and "
            "\"model.language_model.norm.weight\" are both \"model.norm.weight\": expected one of "
            "them");
  EXPECT_NE(Canonicalize({{"model.layers.0.mlp.experts.1.up_proj.weight", DType::kF32, {2, 2}},
                          {"model.layers.0.mlp.switch_mlp.up_proj.weight", DType::kF32, {2, 2, 2}}})
                .find("are both \"model.layers.0.mlp.experts.1.up_proj.weight\""),
            std::string::npos);
}

TEST(CanonicalNames, StacksThatAreNone) {
  const char* up = "model.layers.0.mlp.switch_mlp.up_proj.weight";
  const std::string expected = "folder: tensor \"" + std::string(up) +
                               "\": expected matrices of 1 to 4096 experts or heads, found ";
  EXPECT_EQ(Canonicalize({{up, DType::kF32, {5000, 1, 1}}}), expected + "[5000, 1, 1]");
  EXPECT_EQ(Canonicalize({{up, DType::kF32, {1 << 30, 0, 1}}}), expected + "[1073741824, 0, 1]");
  EXPECT_EQ(Canonicalize({{up, DType::kF32, {}}}), expected + "[]");
  EXPECT_EQ(Canonicalize({{up, DType::kF32, {2, 1, 1, 1}}}), expected + "[2, 1, 1, 1]");
  EXPECT_EQ(Canonicalize({{"model.layers.0.experts.gate_up_proj", DType::kBf16, {2, 3, 4}}}),
            "folder: tensor \"model.layers.0.experts.gate_up_proj\": expected as many gate as up "
            "rows, found [2, 3, 4]");
  EXPECT_EQ(Canonicalize({{"model.layers.0.mlp.switch_mlp.up_proj.codebook", DType::kF16, {4}}}),
            "folder: tensor \"model.layers.0.mlp.switch_mlp.up_proj.codebook\": expected a weight "
            "beside it, found none");
  EXPECT_NE(Canonicalize({{"model.layers.0.mlp.experts.gate_up_proj", DType::kBf16, {2, 3, 4}},
                          {"model.layers.0.mlp.experts.gate_up_proj_bias", DType::kBf16, {2, 6}}})
                .find("rows of its bias], found [2, 3, 4]"),
            std::string::npos);
}

TEST(CanonicalNames, FusedProjectionsThatCannotBeParted) {
  const char* fused = "model.layers.0.attention.query_key_value.weight";
  EXPECT_EQ(Canonicalize({{fused, DType::kF32, {8, 4}}}),
            "folder: tensor \"" + std::string(fused) +
                "\": expected rows of query, key and value, found [8, 4]");
  EXPECT_NE(Canonicalize({{fused, DType::kF32, {8, 4}},
                          {"model.layers.0.attention.dense.weight", DType::kF32, {4, 3}}}),
            "");
  EXPECT_NE(Canonicalize({{"model.layers.0.self_attn.qkv_proj.weight", DType::kF32, {6, 4}},
                          {"model.layers.0.self_attn.qkv_proj.bias", DType::kF32, {4}}})
                .find("expected rows that part with those of [6, 4], found [4]"),
            std::string::npos);
  std::vector<SourceTensor> tensors;
  EXPECT_EQ(Canonicalize({{fused, DType::kF32, {8, 4}},
                          {"model.layers.0.attention.dense.weight", DType::kF32, {4, 4}}},
                         &tensors),
            "");
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[3].name, "model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(tensors[3].shape, (Shape{2, 4}));
}

TEST(CanonicalNames, ConvolutionsAreDepthwise) {
  EXPECT_EQ(Canonicalize({{"model.layers.0.mixer.conv1d.weight", DType::kF32, {4, 2, 3}}}),
            "folder: tensor \"model.layers.0.mixer.conv1d.weight\": expected a depthwise "
            "convolution [channels, 1, taps], found [4, 2, 3]");
  EXPECT_EQ(Canonicalize({{"audio_tower.conv1d.weight", DType::kF32, {4, 2, 3}}}), "");
}

TEST(CanonicalNames, Spellings) {
  const std::pair<const char*, const char*> cases[] = {
      {"backbone.norm_f.weight", "model.norm.weight"},
      {"backbone.layers.3.mixer.D", "model.layers.3.mixer.D"},
      {"language_model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
      {"model.language_model.visual.pos_embed.weight", "model.visual.pos_embed.weight"},
      {"model.decoder.layers.1.layer_scalar", "model.layers.1.layer_scalar"},
      {"model.encoder.language_model.layers.1.layer_scalar", "model.encoder_layers.1.layer_scalar"},
      {"tq_speculator.fc.weight", "mtp.fc.weight"},
      {"language_model.model.layers.1.self_attention_res.proj_weight",
       "model.layers.1.self_attention_res_proj.weight"},
      {"language_model.model.output_attn_res.norm_weight", "model.output_attn_res_norm.weight"},
      {"model.layers.1.block_sparse_moe.e_score_correction_bias",
       "model.layers.1.mlp.gate.e_score_correction_bias"},
      {"model.layers.1.ple.ple_embedding.ngram_embedding.shards.7.weight",
       "model.layers.1.ple.ple_embedding.ngram_embedding.shard_7.weight"},
      {"model.layers.1.mlp.shared_experts.up_proj.weight",
       "model.layers.1.mlp.shared_experts.up_proj.weight"},
      {"model.layers.1.mlp.experts.3.w2.weight_scale_inv",
       "model.layers.1.mlp.experts.3.down_proj.scales"},
  };
  for (const auto& [stored, canonical] : cases) EXPECT_EQ(CanonicalName(stored, ""), canonical);
  EXPECT_EQ(CanonicalName("model.layers.1.mlp.shared_experts.up_proj.weight", "laguna"),
            "model.layers.1.mlp.shared_expert.up_proj.weight");
}

TEST(CanonicalNames, IgnorableTensors) {
  FakeSource source;
  const std::vector<float> one(1);
  for (const char* name : {"model.layers.4.eh_proj.weight", "model.layers.4.mlp.up_proj.weight"}) {
    source.Add(name, DType::kF32, {1, 1}, one);
  }
  for (const char* name :
       {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.0.self_attn.k_scale",
        "model.layers.0.mlp.up_proj.input_global_scale", "model.visual.blocks.0.norm1.weight",
        "vision_tower.ln_pre.weight", "mtp.fc.weight", "model.layers.4.mlp.up_proj.weight",
        "model.encoder_layers.0.layer_scalar"}) {
    EXPECT_TRUE(IsIgnorableTensor(source, name)) << name;
  }
  for (const char* name : {"model.layers.3.mlp.up_proj.weight", "model.norm.weight",
                           "model.layers.0.layer_scalar", "lm_head.weight"}) {
    EXPECT_FALSE(IsIgnorableTensor(source, name)) << name;
  }
}

}  // namespace
}  // namespace tq
