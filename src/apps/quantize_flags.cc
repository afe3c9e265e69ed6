#include "apps/quantize_flags.h"

#include <fmt/format.h>

#include "base/file.h"
#include "quantize/expert_layers.h"
#include "quantize/recipe.h"

namespace tq {
namespace {

void AddWidths(CLI::App& app, QuantizeFlags& flags) {
  app.add_option("--recipe", flags.recipe,
                 "Widths by the name of a published build, listed below; other flags overrule it");
  app.add_option("-b,--bits", flags.bits, "Bits per weight [3]")->check(CLI::IsMember({2, 3, 4}));
  app.add_option("-g,--group-size", flags.group_size, "Weights that share a scale [64]")
      ->check(CLI::IsMember({32, 64, 128}));
  app.add_option("--attn-bits", flags.attn_bits, "Bits of attention matrices")
      ->check(CLI::IsMember({1, 2, 3, 4}));
  app.add_option("--mlp-bits", flags.mlp_bits, "Bits of feed-forward matrices and routed experts")
      ->check(CLI::IsMember({1, 2, 3, 4}));
  app.add_option("--mlp-group-size", flags.mlp_group_size, "Group of feed-forward matrices")
      ->check(CLI::IsMember({16, 32, 64, 128}));
  app.add_option("--rotation", flags.rotation,
                 "hadamard, blockwise_hadamard (the same), or none [hadamard]")
      ->check(CLI::IsMember({"hadamard", "blockwise_hadamard", "none"}));
  app.add_option("--rotation-seed", flags.rotation_seed, "Seed of the signs [42]");
  app.add_flag("--use-qjl", flags.use_qjl,
               "A one-bit residual beside the codes, of all matrices but routed experts");
}

void AddExperts(CLI::App& app, QuantizeFlags& flags) {
  app.add_flag("--ternary-experts", flags.ternary_experts, "Routed experts in trits (1.6 bits)");
  app.add_option("--expert-down-bits", flags.expert_down_bits,
                 "Bits of the down_proj of routed experts")
      ->check(CLI::IsMember({2, 3, 4}));
  CLI::Option* protect = app.add_option("--protect-expert-layers", flags.protect_expert_layers,
                                        "Layers whose experts get --protect-bits, like 0-5,42-47");
  app.add_option("--protect-bits", flags.protect_bits, "Bits of the protected layers [3]")
      ->check(CLI::IsMember({2, 3, 4}));
  app.add_option("--expert-layer-tiers", flags.expert_layer_tiers,
                 "JSON file of the experts' width by layer: {\"0\": \"ternary\", \"1\": \"3\"}, or "
                 "that below \"tiers\"")
      ->excludes(protect);
}

void AddExtras(CLI::App& app, QuantizeFlags& flags) {
  app.add_flag("--quantize-extras", flags.quantize_extras,
               "Also embeddings and matrices that the group does not fit, affinely");
  app.add_option("--extras-bits", flags.extras_bits, "Bits of the extras [4]")
      ->check(CLI::IsMember({2, 3, 4, 8}));
  app.add_option("--extras-group-size", flags.extras_group_size, "Group of the extras [64]")
      ->check(CLI::IsMember({32, 64, 128}));
}

void SetExtras(const QuantizeFlags& flags, QuantizeSettings& settings,
               std::vector<std::string>& warnings) {
  if (flags.quantize_extras && !settings.affine_extras) settings.affine_extras = AffineSpec();
  if (!settings.affine_extras) {
    if (flags.extras_bits || flags.extras_group_size) {
      warnings.push_back(
          "--extras-bits and --extras-group-size have no effect without --quantize-extras");
    }
    return;
  }
  settings.affine_extras->bits = flags.extras_bits.value_or(settings.affine_extras->bits);
  settings.affine_extras->group = flags.extras_group_size.value_or(settings.affine_extras->group);
}

Status SetExperts(const QuantizeFlags& flags, QuantizeSettings& settings,
                  std::vector<std::string>& warnings) {
  settings.ternary_experts = settings.ternary_experts || flags.ternary_experts;
  if (flags.expert_down_bits) settings.expert_down_bits = flags.expert_down_bits;
  if (!flags.protect_expert_layers.empty()) {
    auto layers = ParseLayerList(flags.protect_expert_layers);
    if (!layers.ok()) return layers.status().WithContext("--protect-expert-layers");
    settings.protected_expert_layers = std::move(*layers);
  } else if (flags.protect_bits) {
    warnings.push_back("--protect-bits has no effect without --protect-expert-layers");
  }
  settings.protect_bits = flags.protect_bits.value_or(settings.protect_bits);
  if (flags.expert_layer_tiers.empty()) return Status::Ok();
  auto text = ReadTextFile(flags.expert_layer_tiers);
  if (!text.ok()) return text.status().WithContext("--expert-layer-tiers");
  TQ_ASSIGN_OR_RETURN(settings.expert_layer_tiers,
                      ParseExpertLayerTiers(*text, flags.expert_layer_tiers));
  return Status::Ok();
}

}  // namespace

void AddQuantizeFlags(CLI::App& app, QuantizeFlags& flags) {
  AddWidths(app, flags);
  AddExperts(app, flags);
  AddExtras(app, flags);
}

std::string RecipeHelp() {
  std::string text =
      "Recipes: tqN, or tqNa-tqMe for attention and experts (T: trits), then -downD, -gGROUP, "
      "-xEXTRAS:\n";
  for (const NamedRecipe& recipe : KnownRecipes()) {
    text += fmt::format("  {:<22} {}\n", recipe.name, recipe.text);
  }
  return text;
}

Result<QuantizeSettings> SettingsOf(const QuantizeFlags& flags,
                                    std::vector<std::string>& warnings) {
  QuantizeSettings settings;
  if (!flags.recipe.empty()) {
    TQ_ASSIGN_OR_RETURN(const Recipe recipe, ParseRecipe(flags.recipe));
    settings = WithRecipe(settings, recipe);
  }
  settings.bits = flags.bits.value_or(settings.bits);
  settings.group_size = flags.group_size.value_or(settings.group_size);
  settings.rotation = flags.rotation.value_or(settings.rotation);
  settings.rotate = settings.rotation != "none";
  settings.rotation_seed = flags.rotation_seed.value_or(settings.rotation_seed);
  settings.attn_bits = flags.attn_bits;
  if (flags.mlp_bits) settings.mlp_bits = flags.mlp_bits;
  settings.mlp_group_size = flags.mlp_group_size;
  settings.use_qjl = flags.use_qjl;
  TQ_RETURN_IF_ERROR(SetExperts(flags, settings, warnings));
  SetExtras(flags, settings, warnings);
  TQ_RETURN_IF_ERROR(settings.Validate());
  return settings;
}

}  // namespace tq
