#include "quantize/recipe.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

Recipe Parse(const std::string& text) {
  const Result<Recipe> recipe = ParseRecipe(text);
  EXPECT_TRUE(recipe.ok()) << recipe.status().message();
  return recipe.ok() ? *recipe : Recipe();
}

TEST(Recipe, ReadsPublishedNames) {
  EXPECT_EQ(Parse("tq3"), (Recipe{.bits = 3}));
  EXPECT_EQ(Parse("gpt-oss-20b-tq4"), (Recipe{.bits = 4}));
  EXPECT_EQ(Parse("Qwen3.8-27B-tq4-g64"), (Recipe{.bits = 4, .group_size = 64}));
  EXPECT_EQ(Parse("owner/Qwen3-235B-A22B-Instruct-2507-tq3a-tq2e-g32"),
            (Recipe{.bits = 3, .mlp_bits = 2, .group_size = 32}));
  EXPECT_EQ(Parse("tq3a/tq2e-g32"), (Recipe{.bits = 3, .mlp_bits = 2, .group_size = 32}));
  EXPECT_EQ(Parse("Qwen3.6-35B-A3B-tq3a-tqTe-down4-g64"),
            (Recipe{.bits = 3, .ternary_experts = true, .expert_down_bits = 4, .group_size = 64}));
  EXPECT_EQ(Parse("laguna-s21-tqTe-g64"), (Recipe{.ternary_experts = true, .group_size = 64}));
  EXPECT_EQ(Parse("Qwen3.8-27B-tq3-mini-g64"),
            (Recipe{.bits = 3, .group_size = 64, .extras_bits = 4}));
  EXPECT_EQ(Parse("tq4-x8"), (Recipe{.bits = 4, .extras_bits = 8}));
  EXPECT_EQ(Parse("tq3-mini-x4"), (Recipe{.bits = 3, .extras_bits = 4}));
}

struct BadRecipe {
  const char* text;
  const char* expected;
};

TEST(Recipe, RefusesContradictionsInOneLine) {
  const BadRecipe bad[] = {
      {"", "\"\" is no part of one"},
      {"quick", "\"quick\" is no part of one"},
      {"tq5", "expected 2, 3 or 4 bits, found \"tq5\""},
      {"tq3b", "expected 2, 3 or 4 bits, found \"tq3b\""},
      {"tq99999999999999", "expected 2, 3 or 4 bits"},
      {"tq3-tq2e", "\"tq2e\" is there twice or out of order"},
      {"tq3-tq4", "\"tq4\" is there twice or out of order"},
      {"tqTe-tq3a", "\"tq3a\" is there twice or out of order"},
      {"tq3a", "an attention tier needs an expert tier"},
      {"tq3a-g64", "an attention tier needs an expert tier"},
      {"tq3-down4", "-down4 needs an expert tier"},
      {"tq3a-tqTe-down8", "expected 2, 3 or 4 bits, found \"down8\""},
      {"tq3-g48", "expected a group of 32, 64 or 128, found \"g48\""},
      {"tq3-x8-g64", "\"g64\" is there twice or out of order"},
      {"tq3-x5", "expected extras of 2, 3, 4 or 8 bits"},
      {"tq3-mini-x8", "\"mini\" means extras of 4 bits"},
      {"tq4-mini", "\"mini\" goes with tq3 alone"},
      {"tq3a-tq2e-mini", "\"mini\" goes with tq3 alone"},
      {"tq3-fast", "\"fast\" is no part of one"},
  };
  for (const BadRecipe& recipe : bad) {
    const Status status = ParseRecipe(recipe.text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << recipe.text;
    EXPECT_NE(status.message().find(recipe.expected), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

// All settings that a name can tell.
TEST(Recipe, NamesRoundTrip) {
  int count = 0;
  for (const int bits : {2, 3, 4}) {
    for (const int experts : {0, 2, 3, 4}) {
      for (const int down : {0, 2, 4}) {
        for (const int group : {32, 64, 128}) {
          for (const int extras : {0, 2, 8}) {
            QuantizeSettings settings = {.bits = bits, .group_size = group};
            settings.ternary_experts = experts == 0;
            if (experts != 0 && experts != bits) settings.mlp_bits = experts;
            if (down != 0) settings.expert_down_bits = down;
            if (extras != 0) settings.affine_extras = AffineSpec{extras, 64};
            const std::string name = RecipeName(settings);
            const QuantizeSettings back = WithRecipe({}, Parse("some-model-" + name));
            EXPECT_EQ(RecipeName(back), name);
            EXPECT_EQ(back.bits, bits) << name;
            EXPECT_EQ(back.group_size, group) << name;
            EXPECT_EQ(back.ternary_experts, settings.ternary_experts) << name;
            EXPECT_EQ(back.mlp_bits.value_or(back.bits), settings.mlp_bits.value_or(bits)) << name;
            EXPECT_EQ(back.expert_down_bits, settings.expert_down_bits) << name;
            EXPECT_EQ(back.affine_extras ? back.affine_extras->bits : 0, extras) << name;
            ++count;
          }
        }
      }
    }
  }
  EXPECT_EQ(count, 3 * 4 * 3 * 3 * 3);
}

TEST(Recipe, NamesSayWhatThePublisherWouldSay) {
  EXPECT_EQ(RecipeName({}), "tq3-g64");
  QuantizeSettings settings = {.bits = 3, .group_size = 64};
  settings.ternary_experts = true;
  settings.expert_down_bits = 4;
  EXPECT_EQ(RecipeName(settings), "tq3a-tqTe-down4-g64");
  settings = {.bits = 2, .group_size = 32};
  settings.attn_bits = 3;
  settings.mlp_bits = 2;
  EXPECT_EQ(RecipeName(settings), "tq3a-tq2e-g32");
}

TEST(Recipe, EveryListedOneParses) {
  EXPECT_GE(KnownRecipes().size(), 6u);
  for (const NamedRecipe& recipe : KnownRecipes()) {
    const QuantizeSettings settings = WithRecipe({}, Parse(std::string(recipe.name)));
    EXPECT_TRUE(settings.Validate().ok()) << recipe.name;
  }
}

}  // namespace
}  // namespace tq
