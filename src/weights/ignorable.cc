#include "weights/ignorable.h"

#include <string>

#include "weights/naming/aliases.h"

namespace tq {
namespace {

constexpr std::string_view kSuffixes[] = {
    ".rotary_emb.inv_freq", ".k_scale",          ".v_scale",
    ".input_scale",         ".activation_scale", ".input_global_scale",
};
constexpr std::string_view kPrefixes[] = {"mtp.", "model.mtp.", "model.encoder_layers."};

// "model.layers.61." of a tensor of a layer, or nothing.
std::string_view LayerPrefix(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return {};
  const size_t dot = name.find('.', kLayers.size());
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot + 1);
}

}  // namespace

bool IsIgnorableTensor(const WeightSource& source, std::string_view name) {
  if (IsTowerTensor(name)) return true;
  for (const std::string_view suffix : kSuffixes) {
    if (name.ends_with(suffix)) return true;
  }
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  const std::string_view layer = LayerPrefix(name);
  return !layer.empty() && source.Find(std::string(layer) + "eh_proj.weight") != nullptr;
}

}  // namespace tq
