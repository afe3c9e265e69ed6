#include "quantize/recipe.h"

#include <charconv>
#include <utility>
#include <vector>

namespace tq {
namespace {

constexpr NamedRecipe kRecipes[] = {
#define RECIPE(name, text) {name, text},
#include "quantize/recipes.inc"
#undef RECIPE
};

bool IsTierStart(std::string_view text) {
  return text.starts_with("tq") && text.size() > 2 &&
         (text[2] == 'T' || (text[2] >= '0' && text[2] <= '9'));
}

// Where the recipe begins in a folder's name.
size_t RecipeStart(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    const bool fresh = at == 0 || text[at - 1] == '-' || text[at - 1] == '/';
    if (fresh && IsTierStart(text.substr(at))) return at;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> Parts(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find_first_of("-/");
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// "g64" with prefix "g" gives 64; -1: not that.
int NumberAfter(std::string_view prefix, std::string_view part) {
  if (!part.starts_with(prefix)) return -1;
  part.remove_prefix(prefix.size());
  int number = -1;
  const char* end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  return error == std::errc() && stop == end && number >= 0 ? number : -1;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Recipe> Run(std::string_view recipe) {
    for (const std::string_view part : Parts(recipe)) {
      TQ_RETURN_IF_ERROR(IsTierStart(part) ? Tier(part) : Option(part));
    }
    if (recipe_.expert_down_bits && !has_experts_) {
      return Bad("-down" + std::to_string(*recipe_.expert_down_bits) +
                 " needs an expert tier like tq3a-tqTe before it");
    }
    if (attention_only_) return Bad("an attention tier needs an expert tier like tq2e after it");
    return recipe_;
  }

 private:
  Status Bad(const std::string& what) const {
    return InvalidArgument("recipe \"" + std::string(text_.substr(0, 80)) + "\": " + what +
                           "; a recipe is like tq3, tq4-g64-x8, tq3a-tq2e-g32 or "
                           "tq3a-tqTe-down4-g64");
  }

  Status Once(std::string_view part, int place) {
    if (place <= place_) {
      return Bad("\"" + std::string(part) + "\" is there twice or out of order");
    }
    place_ = place;
    return Status::Ok();
  }

  Status Width(std::string_view part, int bits, std::optional<int>& out) const {
    if (bits < 2 || bits > 4) return Bad("expected 2, 3 or 4 bits, found \"" + Shown(part) + "\"");
    out = bits;
    return Status::Ok();
  }

  static std::string Shown(std::string_view part) { return std::string(part.substr(0, 40)); }

  Status Tier(std::string_view part) {
    if (part == "tqTe") {
      TQ_RETURN_IF_ERROR(Once(part, 2));
      attention_only_ = false;
      has_experts_ = true;
      recipe_.ternary_experts = true;
      return Status::Ok();
    }
    const char kind = part.back() == 'a' || part.back() == 'e' ? part.back() : '\0';
    const std::string_view number = kind == '\0' ? part : part.substr(0, part.size() - 1);
    const int bits = NumberAfter("tq", number);
    if (kind == 'e') {
      TQ_RETURN_IF_ERROR(Once(part, 2));
      attention_only_ = false;
      has_experts_ = true;
      return Width(part, bits, recipe_.mlp_bits);
    }
    // One width for all leaves no room for a tier of the experts.
    TQ_RETURN_IF_ERROR(Once(part, kind == 'a' ? 1 : 2));
    attention_only_ = kind == 'a';
    return Width(part, bits, recipe_.bits);
  }

  Status Option(std::string_view part) {
    if (part == "mini") {
      TQ_RETURN_IF_ERROR(Once(part, 4));
      if (has_experts_ || recipe_.bits != 3) return Bad("\"mini\" goes with tq3 alone");
      recipe_.extras_bits = 4;
      return Status::Ok();
    }
    if (const int bits = NumberAfter("down", part); bits >= 0) {
      TQ_RETURN_IF_ERROR(Once(part, 3));
      return Width(part, bits, recipe_.expert_down_bits);
    }
    if (const int group = NumberAfter("g", part); group >= 0) {
      TQ_RETURN_IF_ERROR(Once(part, 5));
      if (group != 32 && group != 64 && group != 128) {
        return Bad("expected a group of 32, 64 or 128, found \"" + Shown(part) + "\"");
      }
      recipe_.group_size = group;
      return Status::Ok();
    }
    if (const int bits = NumberAfter("x", part); bits >= 0) {
      TQ_RETURN_IF_ERROR(Once(part, 6));
      if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
        return Bad("expected extras of 2, 3, 4 or 8 bits, found \"" + Shown(part) + "\"");
      }
      if (recipe_.extras_bits && *recipe_.extras_bits != bits) {
        return Bad("\"mini\" means extras of 4 bits, \"" + Shown(part) + "\" says otherwise");
      }
      recipe_.extras_bits = bits;
      return Status::Ok();
    }
    return Bad("\"" + Shown(part) + "\" is no part of one");
  }

  std::string_view text_;
  Recipe recipe_;
  int place_ = 0;  // of the last part: they have an order
  bool has_experts_ = false;
  bool attention_only_ = false;
};

}  // namespace

Result<Recipe> ParseRecipe(std::string_view text) {
  const size_t start = RecipeStart(text);
  Parser parser(text);
  return parser.Run(start == std::string_view::npos ? text : text.substr(start));
}

QuantizeSettings WithRecipe(QuantizeSettings settings, const Recipe& recipe) {
  settings.bits = recipe.bits.value_or(settings.bits);
  settings.group_size = recipe.group_size.value_or(settings.group_size);
  if (recipe.mlp_bits) settings.mlp_bits = recipe.mlp_bits;
  settings.ternary_experts = settings.ternary_experts || recipe.ternary_experts;
  if (recipe.expert_down_bits) settings.expert_down_bits = recipe.expert_down_bits;
  if (recipe.extras_bits) {
    if (!settings.affine_extras) settings.affine_extras = AffineSpec();
    settings.affine_extras->bits = *recipe.extras_bits;
  }
  return settings;
}

std::string RecipeName(const QuantizeSettings& settings) {
  const int attention = settings.attn_bits.value_or(settings.bits);
  const int experts = settings.mlp_bits.value_or(settings.bits);
  std::string name = "tq" + std::to_string(attention);
  if (settings.ternary_experts || settings.expert_down_bits || experts != attention) {
    name += settings.ternary_experts ? "a-tqTe" : "a-tq" + std::to_string(experts) + "e";
  }
  if (settings.expert_down_bits) name += "-down" + std::to_string(*settings.expert_down_bits);
  name += "-g" + std::to_string(settings.group_size);
  if (settings.affine_extras) name += "-x" + std::to_string(settings.affine_extras->bits);
  return name;
}

std::span<const NamedRecipe> KnownRecipes() { return kRecipes; }

}  // namespace tq
