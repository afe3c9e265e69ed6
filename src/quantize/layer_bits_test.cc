#include "quantize/layer_bits.h"

#include <gtest/gtest.h>

#include "quantize/expert_layers.h"

namespace tq {
namespace {

TEST(LayerBits, FollowsThePath) {
  QuantizeSettings settings;
  settings.attn_bits = 4;
  settings.mlp_bits = 2;
  settings.mlp_group_size = 32;
  EXPECT_EQ(BitsForPath(settings, "model.layers.0.self_attn.q_proj"), 4);
  EXPECT_EQ(BitsForPath(settings, "model.layers.0.mlp.up_proj"), 2);
  EXPECT_EQ(BitsForPath(settings, "model.layers.0.mlp.shared_expert.up_proj"), 3);
  EXPECT_EQ(BitsForPath(settings, "model.layers.0.mlp.routed_expert_up_proj"), 3);
  EXPECT_EQ(BitsForPath(settings, "backbone.layers.0.mixer.up_proj"), 3);
  EXPECT_EQ(BitsForPath(settings, "lm_head"), 3);
  EXPECT_EQ(GroupForPath(settings, "model.layers.0.mlp.up_proj"), 32);
  EXPECT_EQ(GroupForPath(settings, "model.layers.0.self_attn.q_proj"), 64);
}

TEST(LayerBits, LaterExpertRulesOverruleEarlier) {
  const std::string gate = "model.layers.2.mlp.switch_mlp.gate_proj";
  const std::string down = "model.layers.2.mlp.switch_mlp.down_proj";
  QuantizeSettings settings = {.bits = 3};
  settings.mlp_bits = 2;
  EXPECT_EQ(CodebookEntriesForPath(settings, gate, true), 4);
  settings.ternary_experts = true;
  EXPECT_EQ(CodebookEntriesForPath(settings, gate, true), 3);
  EXPECT_EQ(CodebookEntriesForPath(settings, gate, false), 4);  // a dense layer
  settings.expert_down_bits = 4;
  EXPECT_EQ(CodebookEntriesForPath(settings, gate, true), 3);
  EXPECT_EQ(CodebookEntriesForPath(settings, down, true), 16);
  EXPECT_EQ(CodebookEntriesForPath(settings, "backbone.layers.0.mixer.switch_mlp.fc2", true), 16);
  EXPECT_EQ(CodebookEntriesForPath(settings, "backbone.layers.0.mixer.switch_mlp.fc1", true), 3);
  settings.protected_expert_layers = {1, 2};
  settings.protect_bits = 3;
  EXPECT_EQ(CodebookEntriesForPath(settings, gate, true), 8);
  EXPECT_EQ(CodebookEntriesForPath(settings, down, true), 16);  // the wider of the two
  EXPECT_EQ(CodebookEntriesForPath(settings, "model.layers.3.mlp.switch_mlp.gate_proj", true), 3);

  QuantizeSettings tiers = {.bits = 4};
  tiers.ternary_experts = true;
  tiers.expert_layer_tiers = {{2, 8}};
  EXPECT_EQ(CodebookEntriesForPath(tiers, down, true), 8);
  EXPECT_EQ(CodebookEntriesForPath(tiers, "model.layers.3.mlp.switch_mlp.up_proj", true), 3);
}

TEST(LayerBits, LayersComeFromThePath) {
  EXPECT_EQ(LayerOfPath("language_model.model.layers.12.mlp.up_proj"), 12);
  EXPECT_EQ(LayerOfPath("backbone.layers.0.mixer.switch_mlp.fc1"), 0);
  EXPECT_EQ(LayerOfPath("lm_head"), -1);
  EXPECT_EQ(LayerOfPath("model.layers.x.mlp"), -1);
}

std::string ErrorOf(const QuantizeSettings& settings) { return settings.Validate().message(); }

TEST(LayerBits, SettingsOutOfRangeAreNamed) {
  QuantizeSettings settings;
  settings.bits = 5;
  EXPECT_EQ(ErrorOf(settings), "bits: expected one of 2, 3, 4, found 5");
  settings = {};
  settings.mlp_bits = 0;
  EXPECT_EQ(ErrorOf(settings), "mlp bits: expected one of 1, 2, 3, 4, found 0");
  settings = {};
  settings.expert_down_bits = 1;
  EXPECT_EQ(ErrorOf(settings), "expert down bits: expected one of 2, 3, 4, found 1");
  settings = {};
  settings.protect_bits = 8;
  EXPECT_EQ(ErrorOf(settings), "protect bits: expected one of 2, 3, 4, found 8");
  settings = {};
  settings.affine_extras = AffineSpec{6, 64};
  EXPECT_EQ(ErrorOf(settings), "extras bits: expected one of 2, 3, 4, 8, found 6");
  settings.affine_extras = AffineSpec{4, 16};
  EXPECT_EQ(ErrorOf(settings), "extras group size: expected one of 32, 64, 128, found 16");
}

TEST(LayerBits, TiersStandAlone) {
  QuantizeSettings settings;
  settings.expert_layer_tiers = {{0, 3}};
  EXPECT_TRUE(settings.Validate().ok());
  settings.expert_down_bits = 4;
  EXPECT_EQ(ErrorOf(settings),
            "expert layer tiers and expert down bits both set the width of a layer's experts: give "
            "one of them");
  settings.expert_down_bits.reset();
  settings.protected_expert_layers = {1};
  EXPECT_NE(ErrorOf(settings).find("protected expert layers both"), std::string::npos);
}

TEST(ExpertLayers, ListsAndRanges) {
  EXPECT_EQ(*ParseLayerList("0-2,7, 5"), (std::vector<int>{0, 1, 2, 5, 7}));
  EXPECT_EQ(*ParseLayerList("3,3,2-3"), (std::vector<int>{2, 3}));
  for (const char* bad : {"", "x", "1,", "3-1", "-1", "1-2-3", "99999999999", "0-10000"}) {
    const Status status = ParseLayerList(bad).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_NE(status.message().find("expected layers like 0-5,42-47"), std::string::npos) << bad;
  }
}

TEST(ExpertLayers, BothFormsOfTiers) {
  const std::map<int, int> want = {{0, 3}, {1, 4}, {10, 16}};
  EXPECT_EQ(*ParseExpertLayerTiers(R"({"0": "ternary", "1": "2", "10": 4})", "f"), want);
  EXPECT_EQ(*ParseExpertLayerTiers(R"({"tiers": {"0": "ternary", "1": 2, "10": "4"}})", "f"), want);
  EXPECT_EQ(TierName(3), "ternary");
  EXPECT_EQ(TierName(16), "4");
}

TEST(ExpertLayers, MalformedTiersAreNamed) {
  const auto error = [](const char* text) {
    return ParseExpertLayerTiers(text, "tiers.json").status().message();
  };
  EXPECT_EQ(error(R"({"0": "5"})"),
            "tiers.json: layer 0: expected ternary, 2, 3 or 4, found \"5\"");
  EXPECT_EQ(error(R"({"0": true})"),
            "tiers.json: layer 0: expected ternary, 2, 3 or 4, found \"boolean\"");
  EXPECT_NE(error(R"({"zero": "2"})").find("expected a layer of 0 to 9999, found \"zero\""),
            std::string::npos);
  EXPECT_NE(error(R"({"1": "2", "01": "3"})").find("layer 1 is there twice"), std::string::npos);
  EXPECT_NE(error("{}").find("found none"), std::string::npos);
  EXPECT_NE(error("[1]").find("found array"), std::string::npos);
  EXPECT_NE(error("{").find("tiers.json"), std::string::npos);
}

}  // namespace
}  // namespace tq
