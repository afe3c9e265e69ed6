// The flags that say how matrices are quantized, and how they, a recipe and the defaults become
// settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "quantize/layer_bits.h"

namespace tq {

// Empty: not given.
struct QuantizeFlags {
  std::string recipe;
  std::optional<int> bits;
  std::optional<int> group_size;
  std::optional<std::string> rotation;
  std::optional<uint64_t> rotation_seed;
  std::optional<int> attn_bits;
  std::optional<int> mlp_bits;
  std::optional<int> mlp_group_size;
  bool use_qjl = false;
  bool ternary_experts = false;
  std::optional<int> expert_down_bits;
  std::string protect_expert_layers;
  std::optional<int> protect_bits;
  std::string expert_layer_tiers;  // a file
  bool quantize_extras = false;
  std::optional<int> extras_bits;
  std::optional<int> extras_group_size;
};

void AddQuantizeFlags(CLI::App& app, QuantizeFlags& flags);

// For the end of --help.
std::string RecipeHelp();

// Defaults, then the recipe, then the flags. warnings: flags without effect.
// Errors: kInvalidArgument (values, combinations, the recipe, the file of tiers), kNotFound, kIo.
Result<QuantizeSettings> SettingsOf(const QuantizeFlags& flags, std::vector<std::string>& warnings);

}  // namespace tq
