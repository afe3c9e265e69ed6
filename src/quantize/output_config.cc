#include "quantize/output_config.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "codec/turbo_quant.h"
#include "quantize/expert_layers.h"

namespace tq {
namespace {

template <typename T>
OrderedJson OptionalValue(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson QuantizationBlock(const QuantizeSettings& settings) {
  OrderedJson block;
  block["mode"] = "turboquant";
  block["bits"] = settings.bits;
  block["group_size"] = settings.group_size;
  block["use_qjl"] = settings.use_qjl;
  block["rotation"] = settings.rotation;
  block["rotation_seed"] = settings.rotation_seed;
  block["attn_bits"] = OptionalValue(settings.attn_bits);
  block["mlp_bits"] = OptionalValue(settings.mlp_bits);
  block["mlp_group_size"] = OptionalValue(settings.mlp_group_size);
  block["ternary_experts"] = settings.ternary_experts;
  block["expert_down_bits"] = OptionalValue(settings.expert_down_bits);
  if (!settings.protected_expert_layers.empty()) {
    block["protected_expert_layers"] = settings.protected_expert_layers;
    block["protect_bits"] = settings.protect_bits;
  }
  for (const auto& [layer, entries] : settings.expert_layer_tiers) {
    block["expert_layer_tiers"][std::to_string(layer)] = TierName(entries);
  }
  block["codebook"] = OrderedJson::array();
  for (const float entry : LloydMaxCodebook(1 << settings.bits).stored) {
    block["codebook"].push_back(static_cast<double>(entry));
  }
  if (settings.affine_extras) {
    block["affine_extras"] = {{"bits", settings.affine_extras->bits},
                              {"group_size", settings.affine_extras->group}};
  }
  return block;
}

// "dtype", or "torch_dtype" in older files, there and in the part of the text model.
void SetDtype(OrderedJson& config, DType dtype) {
  const char* name = dtype == DType::kF16    ? "float16"
                     : dtype == DType::kBf16 ? "bfloat16"
                                             : "float32";
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (config.contains(key)) config[key] = name;
  }
}

}  // namespace

Result<std::string> TurboQuantConfig(const std::string& source_config,
                                     const QuantizeSettings& settings,
                                     const std::optional<DType>& dtype) {
  TQ_ASSIGN_OR_RETURN(OrderedJson config, ParseOrderedJson(source_config, "config.json"));
  config.erase("_name_or_path");
  config.erase("vision_config");
  if (dtype) SetDtype(config, *dtype);
  if (config.contains("text_config") && config["text_config"].is_object()) {
    config["text_config"].erase("quantization_config");
    if (dtype) SetDtype(config["text_config"], *dtype);
  }
  config["quantization"] = QuantizationBlock(settings);
  config["quantization_config"] = config["quantization"];
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  OrderedJson sorted = OrderedJson::object();
  for (const std::string& key : keys) sorted[key] = config[key];
  return sorted.dump(4) + "\n";
}

std::string ShardIndex(std::vector<std::pair<std::string, std::string>> shard_of,
                       int64_t total_bytes, int64_t total_elements) {
  std::sort(shard_of.begin(), shard_of.end());
  OrderedJson index;
  index["metadata"]["total_size"] = total_bytes;
  index["metadata"]["total_parameters"] = total_elements;
  index["weight_map"] = OrderedJson::object();
  for (const auto& [name, file] : shard_of) index["weight_map"][name] = file;
  return index.dump(4) + "\n";
}

std::string ShardName(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

}  // namespace tq
