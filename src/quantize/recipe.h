// Recipes: the names of published builds ("tq3a-tq2e-g32") as settings, and back.
//
//   recipe = tiers ["-mini"] ["-g" G] ["-x" X]
//   tiers  = "tq" N | ["tq" N "a-"] "tq" M "e" ["-down" D]
//
// N: bits of all matrices, or of attention and whatever always runs. M: bits of routed experts, in
// a dense model of the feed-forward; T: trits. D: bits of the experts' down_proj. G: columns that
// share a scale. X: bits of embeddings and the like, which stay floats without it; "mini": 4.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "quantize/layer_bits.h"

namespace tq {

// What a recipe says; what it does not say is empty.
struct Recipe {
  std::optional<int> bits = std::nullopt;
  std::optional<int> mlp_bits = std::nullopt;
  bool ternary_experts = false;
  std::optional<int> expert_down_bits = std::nullopt;
  std::optional<int> group_size = std::nullopt;
  std::optional<int> extras_bits = std::nullopt;
  bool operator==(const Recipe&) const = default;
};

// text: a recipe, or the name of a folder that ends with one. Between tiers a slash will do.
// Errors: kInvalidArgument naming the part that is wrong.
Result<Recipe> ParseRecipe(std::string_view text);
// settings with what the recipe says.
QuantizeSettings WithRecipe(QuantizeSettings settings, const Recipe& recipe);

// The name that a publisher would give, always with its group: "tq3-g64". Rotation, residual,
// protected layers and tiers have no part in it.
std::string RecipeName(const QuantizeSettings& settings);

struct NamedRecipe {
  std::string_view name;
  std::string_view text;  // what it is for
};
// Those that --help shows (recipes.inc).
std::span<const NamedRecipe> KnownRecipes();

}  // namespace tq
