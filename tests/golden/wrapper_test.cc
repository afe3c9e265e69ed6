// Multimodal checkpoints: every wrapper type loads its text part and answers as the text model
// alone, says which parts it did not use, and takes no tensor of a tower for one of its own.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/checkpoint_parts.h"
#include "support/checkpoint.h"
#include "support/raw_checkpoint.h"

namespace tq::test {
namespace {

struct WrapperCase {
  const char* wrapper;  // outer model_type
  const char* text;     // fixture of the text model
  const char* prefix;   // what stands before the text model's "model."
  std::vector<const char*> towers;
  const char* unused;  // how the report begins
};

// Names as the released checkpoints and MLX write them. Shapes are odd on purpose: nobody reads
// them.
const WrapperCase kWrapped[] = {
    {"llava",
     "llama",
     "language_model.model.",
     {"vision_tower.vision_model.embeddings.patch_embedding.weight",
      "vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight",
      "multi_modal_projector.linear_1.weight"},
     "vision tower (3 tensors"},
    {"llava_next",
     "mistral_sliding",
     "model.language_model.",
     {"model.vision_tower.vision_model.post_layernorm.weight", "model.image_newline"},
     "vision tower (2 tensors"},
    {"mistral3",
     "mistral_sliding",
     "language_model.model.",
     {"vision_tower.transformer.layers.0.attention.k_proj.weight", "vision_tower.ln_pre.weight",
      "multi_modal_projector.patch_merger.merging_layer.weight"},
     "vision tower (3 tensors"},
    {"mistral3",
     "llama",
     "model.language_model.",
     {"model.vision_tower.patch_conv.weight", "model.multi_modal_projector.norm.weight"},
     "vision tower (2 tensors"},
    {"gemma3",
     "gemma3_text",
     "language_model.model.",
     {"vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight",
      "multi_modal_projector.mm_input_projection_weight",
      "multi_modal_projector.mm_soft_emb_norm.weight"},
     "vision tower (3 tensors"},
    {"gemma4",
     "gemma4_text",
     "model.language_model.",
     {"model.vision_tower.patch_embedder.input_proj.weight",
      "model.vision_tower.encoder.layers.0.self_attn.q_proj.linear.weight",
      "model.embed_vision.embedding_projection.weight", "model.audio_tower.layers.0.norm.weight",
      "model.embed_audio.embedding_projection.weight"},
     "audio tower (2 tensors, 0.0 MB), vision tower (3 tensors"},
    {"qwen3_5",
     "qwen3_5_text",
     "model.language_model.",
     {"model.visual.patch_embed.proj.weight", "model.visual.blocks.0.attn.qkv.weight",
      "mtp.fc.weight", "mtp.layers.0.self_attn.q_proj.weight"},
     "vision tower (2 tensors, 0.0 MB), draft head (2 tensors"},
    {"qwen3_5_moe",
     "qwen3_5_moe_text",
     "model.language_model.",
     {"model.language_model.visual.merger.linear_fc1.weight"},
     "vision tower (1 tensors"},
    {"qwen4_exp",
     "qwen4_exp_text",
     "model.language_model.",
     {"model.visual.pos_embed.weight"},
     "vision tower (1 tensors"},
    {"kimi_k25",
     "deepseek_v3",
     "language_model.model.",
     {"vision_tower.encoder.blocks.0.wqkv.weight", "mm_projector.proj.0.weight"},
     "vision tower (2 tensors"},
};

std::vector<float> LogitsOf(const std::string& folder) {
  const auto loaded =
      LoadOn(folder, "", {.num_threads = 1, .activations = ActivationMode::kF32, .isa = ""});
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return {};
  return Logits(*loaded, {5, 42, 7, 7, 130, 9, 88});
}

RawCheckpoint Wrap(const WrapperCase& c) {
  RawCheckpoint raw(std::string(TQ_TEST_DATA "/models/") + c.text);
  const std::string prefix = c.prefix;
  raw.Rename([&](std::string name) {
    if (name.starts_with("model.")) return prefix + name.substr(6);
    return prefix.starts_with("language_model.") ? "language_model." + name : name;
  });
  int64_t rows = 3;
  for (const char* tower : c.towers) raw.Add(tower, {rows++, 5});
  const OrderedJson text = raw.config;
  raw.config = {{"model_type", c.wrapper},
                {"text_config", text},
                {"vision_config", {{"hidden_size", 32}, {"model_type", "some_vision_model"}}},
                {"image_token_id", 7}};
  if (text.contains("tie_word_embeddings")) {
    raw.config["tie_word_embeddings"] = text["tie_word_embeddings"];
  }
  return raw;
}

class Wrapper : public testing::TestWithParam<WrapperCase> {};

TEST_P(Wrapper, AnswersAsItsTextModel) {
  const std::string folder =
      Wrap(GetParam()).Write("wrapper_" + std::string(GetParam().wrapper) + GetParam().text);
  const std::vector<float> want = LogitsOf(std::string(TQ_TEST_DATA "/models/") + GetParam().text);
  EXPECT_EQ(LogitsOf(folder), want);
  const auto source = OpenSource(folder);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto parts = ReadCheckpointParts(**source);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_TRUE(UnusedText(*parts).starts_with(GetParam().unused)) << UnusedText(*parts);
}

std::string CaseName(const testing::TestParamInfo<WrapperCase>& info) {
  return std::string(info.param.wrapper) + "_" + info.param.text;
}

INSTANTIATE_TEST_SUITE_P(All, Wrapper, testing::ValuesIn(kWrapped), CaseName);

// Fixtures that are wrappers themselves.
TEST(Wrappers, FixturesWithATowerSaySo) {
  for (const std::string name :
       {"diffusion_gemma", "muse_glimmer", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}) {
    const auto source = OpenSource(TQ_TEST_DATA "/models/" + name);
    ASSERT_TRUE(source.ok()) << source.status().message();
    const auto parts = ReadCheckpointParts(**source);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    ASSERT_EQ(parts->unused.size(), 1u) << name << ": " << UnusedText(*parts);
    EXPECT_EQ(parts->unused[0].part, "vision tower") << name;
    EXPECT_GT(parts->unused[0].num_tensors, 10) << name;
    EXPECT_GT(parts->unused[0].bytes, 10000) << name;
  }
}

TEST(Wrappers, AnUnknownTextModelIsNamedWithTheNearest) {
  RawCheckpoint raw = Wrap(kWrapped[0]);
  raw.config["text_config"]["model_type"] = "llamma";
  auto source = OpenSource(raw.Write("wrapper_unknown_text"));
  ASSERT_TRUE(source.ok());
  std::string error = ReadCheckpointParts(**source).status().message();
  EXPECT_NE(error.find("config.json: text_config: model_type \"llamma\" is not known; known "
                       "(nearest first): llama, "),
            std::string::npos)
      << error;
  raw.config["model_type"] = "llavva";
  source = OpenSource(raw.Write("wrapper_unknown"));
  ASSERT_TRUE(source.ok());
  error = ReadCheckpointParts(**source).status().message();
  EXPECT_NE(error.find("model_type \"llavva\" is not known; known (nearest first): llava, "),
            std::string::npos)
      << error;
}

TEST(Wrappers, ATensorThatOnlyLooksLikeATowersIsNotIgnored) {
  RawCheckpoint raw = Wrap(kWrapped[0]);
  raw.Add("language_model.model.layers.0.vision_gate.weight", {4, 4});
  const auto loaded = LoadOn(raw.Write("wrapper_extra"), "",
                             {.num_threads = 1, .activations = ActivationMode::kF32, .isa = ""});
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("model.layers.0.vision_gate.weight"), std::string::npos)
      << loaded.status().message();
}

}  // namespace
}  // namespace tq::test
