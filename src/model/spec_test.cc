#include "model/spec.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/rope.h"

namespace tq {
namespace {

Json Llama() {
  return {{"model_type", "llama"},
          {"vocab_size", 320},
          {"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"intermediate_size", 128},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"max_position_embeddings", 512}};
}

std::string ErrorOf(const Json& config) {
  const auto spec = ParseModelSpec(config, {.has_lm_head = true});
  return spec.ok() ? "" : spec.status().message();
}

TEST(ParseModelSpec, ReadsALlama) {
  auto spec = ParseModelSpec(Llama(), {.has_lm_head = true});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->blocks.size(), 2u);
  EXPECT_EQ(spec->blocks[1].prefix, "model.layers.1.");
  EXPECT_EQ(AttentionOf(spec->blocks[0]).head_dim, 16);
  EXPECT_FALSE(spec->tie_word_embeddings);
  EXPECT_TRUE(ParseModelSpec(Llama(), {})->tie_word_embeddings);
  // embedding, 2 x (2 norms + 7 matrices), final norm, head
  EXPECT_EQ(NeededTensors(*spec).size(), 1u + 2 * 9 + 2);
}

TEST(ParseModelSpec, UnknownModelTypeNamesTheNearestFirst) {
  Json config = Llama();
  config["model_type"] = "qwen33";
  const std::string error = ErrorOf(config);
  EXPECT_NE(error.find("\"qwen33\" is not known; known (nearest first): qwen3, qwen2"),
            std::string::npos)
      << error;
}

TEST(ParseModelSpec, AKeyThatNobodyReadsIsRefusedByName) {
  Json config = Llama();
  config["logit_scale"] = 0.5;
  EXPECT_NE(ErrorOf(config).find("\"logit_scale\" is not understood"), std::string::npos);
  config["logit_scale"] = nullptr;
  EXPECT_EQ(ErrorOf(config), "");
  config.erase("logit_scale");
  config["torch_dtype"] = "bfloat16";
  config["transformers_version"] = "4.40";
  EXPECT_EQ(ErrorOf(config), "");
}

TEST(ParseModelSpec, SaysWhatIsWrong) {
  const struct {
    const char* key;
    Json value;
    const char* message;
  } cases[] = {
      {"hidden_act", "tanh", "hidden_act: expected silu or gelu_pytorch_tanh, found \"tanh\""},
      {"num_hidden_layers", 0, "num_hidden_layers: expected 1..4096, found 0"},
      {"num_hidden_layers", 2147483648ll, "num_hidden_layers: expected 1..4096, found 2147483648"},
      {"hidden_size", -64, "hidden_size: expected 1.."},
      {"hidden_size", "wide", "hidden_size: expected an integer, found \"wide\""},
      {"num_key_value_heads", 3, "divisible by num_key_value_heads, found 4 and 3"},
      {"head_dim", 15, "head_dim: expected an even number"},
      {"rms_norm_eps", -1.0, "rms_norm_eps: expected a number between 0 and 1"},
      {"rope_scaling",
       {{"rope_type", "su"}, {"factor", 2.0}},
       "expected rope_type default, linear, llama3, yarn or proportional, found \"su\""},
      {"rope_scaling",
       {{"rope_type", "linear"}, {"factor", 2.0}, {"mystery", 1}},
       "key \"mystery\" is not understood"},
      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 0.0}}, "factor >= 1"},
      {"rope_parameters", {{"partial_rotary_factor", 1e300}}, "0 < partial_rotary_factor <= 1"},
      {"quantization_config", {{"quant_method", "gptq"}}, "method \"gptq\" is not supported"},
      {"layer_types", {"full_attention"}, "layer_types: expected 2 entries, found 1"},
      {"rope_interleaved", true, "interleaved rope is not supported"},
  };
  for (const auto& c : cases) {
    Json config = Llama();
    config[c.key] = c.value;
    const std::string error = ErrorOf(config);
    EXPECT_NE(error.find(c.message), std::string::npos) << c.key << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  Json missing = Llama();
  missing.erase("hidden_size");
  EXPECT_EQ(ErrorOf(missing), "config.json: hidden_size is missing");
  EXPECT_NE(ErrorOf(Json::array()), "");
}

TEST(ParseModelSpec, RopeMustFitEveryHead) {
  const Json config = {{"model_type", "deepseek_v32"},
                       {"vocab_size", 320},
                       {"hidden_size", 64},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 4},
                       {"intermediate_size", 128},
                       {"q_lora_rank", 48},
                       {"kv_lora_rank", 32},
                       {"qk_nope_head_dim", 32},
                       {"qk_rope_head_dim", 16},
                       {"v_head_dim", 32},
                       {"index_head_dim", 8}};
  EXPECT_EQ(ErrorOf(config),
            "config.json: model.layers.0.self_attn.indexer: expected at most 8 rotary dims (the "
            "head's size), found 16");
}

TEST(ParseModelSpec, EveryArchitectureIsListedOnce) {
  const std::vector<std::string> types = KnownModelTypes();
  for (size_t i = 1; i < types.size(); ++i) EXPECT_LT(types[i - 1], types[i]);
}

// Values computed from the published formula.
TEST(Rope, Llama3Frequencies) {
  const Json config = {{"rope_theta", 5e5},
                       {"rope_scaling",
                        {{"rope_type", "llama3"},
                         {"factor", 8.0},
                         {"low_freq_factor", 1.0},
                         {"high_freq_factor", 4.0},
                         {"original_max_position_embeddings", 8192}}}};
  ConfigReader reader(config, "config.json");
  const RopeSpec spec = ReadRope(reader, 128, {10000.0, 131072});
  ASSERT_TRUE(reader.status().ok()) << reader.status().message();
  const std::pair<size_t, double> want[] = {{28, 3.2114460e-3}, {29, 2.1665708e-3},
                                            {32, 5.2484616e-4}, {35, 9.5562124e-5},
                                            {36, 7.7846553e-5}, {63, 3.0689260e-7}};
  for (const auto& [j, value] : want) EXPECT_NEAR(spec.inv_freq[j] / value, 1.0, 1e-6) << j;
}

// RT-02: a window of 32 K, scaled by 4.
TEST(ParseModelSpec, RT02_TheWindowIsThatOfTheScaledRope) {
  Json config = Llama();
  config["max_position_embeddings"] = 32768;
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  const auto scaled = ParseModelSpec(config, {});
  ASSERT_TRUE(scaled.ok()) << scaled.status().message();
  EXPECT_EQ(scaled->max_position_embeddings, 131072);
  // One that says it already, or is longer than the scaling's.
  for (const int64_t window : {131072, 262144}) {
    config["max_position_embeddings"] = window;
    EXPECT_EQ(ParseModelSpec(config, {})->max_position_embeddings, window);
  }
  config.erase("rope_scaling");
  config["max_position_embeddings"] = 32768;
  EXPECT_EQ(ParseModelSpec(config, {})->max_position_embeddings, 32768);
}

TEST(Rope, YarnWithoutTruncation) {
  const Json config = {{"rope_theta", 150000.0},
                       {"rope_scaling",
                        {{"rope_type", "yarn"},
                         {"factor", 32.0},
                         {"beta_fast", 32.0},
                         {"beta_slow", 1.0},
                         {"truncate", false},
                         {"original_max_position_embeddings", 4096}}}};
  ConfigReader reader(config, "config.json");
  const RopeSpec spec = ReadRope(reader, 64, {10000.0, 131072});
  ASSERT_TRUE(reader.status().ok()) << reader.status().message();
  EXPECT_NEAR(spec.attention_factor, 1.3465736, 1e-6);
  // The ramp runs from 8.09278 to 17.39802: 8 is untouched, 18 is divided, 12 lies between.
  const auto base = [](int j) { return std::pow(150000.0, -2.0 * j / 64); };
  const double ramp = (12 - 8.09278) / (17.39802 - 8.09278);
  EXPECT_NEAR(spec.inv_freq[8] / base(8), 1.0, 1e-6);
  EXPECT_NEAR(spec.inv_freq[18] / base(18), 1.0 / 32, 1e-7);
  EXPECT_NEAR(spec.inv_freq[12] / base(12), ramp / 32 + 1 - ramp, 1e-5);
}

RopeSpec SectionedRope(const Json& section, bool interleaved, std::string* error = nullptr) {
  const Json config = {{"rope_parameters",
                        {{"rope_type", "default"},
                         {"rope_theta", 1e7},
                         {"mrope_section", section},
                         {"mrope_interleaved", interleaved}}}};
  ConfigReader reader(config, "config.json");
  RopeSpec spec = ReadRope(reader, 64, {10000.0, 4096});
  if (error != nullptr) *error = reader.status().message();
  return spec;
}

TEST(Rope, SectionsSayWhichAxisTurnsAPair) {
  std::string axes;
  for (const uint8_t axis : SectionedRope({11, 11, 10}, true).axes) axes += "thw"[axis];
  EXPECT_EQ(axes, "thwthwthwthwthwthwthwthwthwthwth");
  axes.clear();
  for (const uint8_t axis : SectionedRope({16, 12, 4}, true).axes) axes += "thw"[axis];
  EXPECT_EQ(axes, "thwthwthwthwthtthtthtthtthtthtth");
  axes.clear();
  for (const uint8_t axis : SectionedRope({16, 12, 4}, false).axes) axes += "thw"[axis];
  EXPECT_EQ(axes, "tttttttttttttttthhhhhhhhhhhhwwww");
}

TEST(Rope, SectionsMustMakeUpThePairs) {
  const Json wrong[] = {{11, 11, 11}, {16, 16}, {-1, 17, 16}, {9007199254740993, 1, 1}};
  for (const Json& section : wrong) {
    std::string error;
    SectionedRope(section, true, &error);
    EXPECT_NE(error.find("mrope_section: expected 3 counts that make up 32 (half of the rotary "
                         "dims), found ["),
              std::string::npos)
        << error;
  }
}

TEST(Rope, AxesTurnTheirOwnPairs) {
  for (const bool interleaved : {true, false}) {
    const RopeSpec spec = SectionedRope({11, 11, 10}, interleaved);
    const std::vector<int32_t> positions = {5, 1000, 5, 7, 900, 123};  // [3, 2]
    Scratch scratch;
    const RopeTable table = MakeRopeTable(spec, positions, 2, scratch);
    for (int t = 0; t < 2; ++t) {
      for (int j = 0; j < 32; ++j) {
        int axis = j < 11 ? 0 : j < 22 ? 1 : 2;
        if (interleaved) axis = j % 3;
        const double inv = static_cast<double>(static_cast<float>(std::pow(1e7, -2.0 * j / 64)));
        const double angle = positions[static_cast<size_t>(axis * 2 + t)] * inv;
        EXPECT_NEAR(table.cos[t * 32 + j], std::cos(angle), 1e-4) << t << " " << j;
        EXPECT_NEAR(table.sin[t * 32 + j], std::sin(angle), 1e-4) << t << " " << j;
      }
    }
  }
}

TEST(Rope, EqualAxesAreOneAxis) {
  const RopeSpec spec = SectionedRope({11, 11, 10}, true);
  const std::vector<int32_t> one = {3, 70000};
  const std::vector<int32_t> three = {3, 70000, 3, 70000, 3, 70000};
  Scratch scratch;
  const RopeTable a = MakeRopeTable(spec, one, 2, scratch);
  const RopeTable b = MakeRopeTable(spec, three, 2, scratch);
  EXPECT_TRUE(std::equal(a.cos, a.cos + 64, b.cos));
  EXPECT_TRUE(std::equal(a.sin, a.sin + 64, b.sin));
}

TEST(Rope, TableUsesAbsolutePositions) {
  RopeSpec spec;
  spec.inv_freq = {1.0f, 0.01f};
  spec.attention_factor = 2.0f;
  const std::vector<int32_t> positions = {0, 1000};
  Scratch scratch;
  const RopeTable table = MakeRopeTable(spec, positions, 2, scratch);
  EXPECT_EQ(table.rotary_dim, 4);
  EXPECT_EQ(table.cos[0], 2.0f);
  EXPECT_EQ(table.sin[1], 0.0f);
  EXPECT_NEAR(table.cos[2], 2 * std::cos(1000.0), 1e-6);
  EXPECT_NEAR(table.sin[3], 2 * std::sin(10.0), 1e-6);
}

}  // namespace
}  // namespace tq
