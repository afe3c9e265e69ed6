#include "weights/ignorable.h"

#include <string>
#include <utility>

#include "weights/naming/aliases.h"

namespace tq {
namespace {

constexpr std::string_view kSuffixes[] = {
    ".rotary_emb.inv_freq", ".k_scale",          ".v_scale",
    ".input_scale",         ".activation_scale", ".input_global_scale",
};
constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
    {"mtp.", "draft head"}, {"model.mtp.", "draft head"}, {"model.encoder_layers.", "buffer"}};

// "model.layers.61." of a tensor of a layer, or nothing.
std::string_view LayerPrefix(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return {};
  const size_t dot = name.find('.', kLayers.size());
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot + 1);
}

}  // namespace

std::string_view IgnorablePart(const WeightSource& source, std::string_view name) {
  if (IsTowerTensor(name)) return IsAudioTensor(name) ? "audio tower" : "vision tower";
  for (const std::string_view suffix : kSuffixes) {
    if (name.ends_with(suffix)) return "buffer";
  }
  for (const auto& [prefix, part] : kPrefixes) {
    if (name.starts_with(prefix)) return part;
  }
  const std::string_view layer = LayerPrefix(name);
  const bool draft =
      !layer.empty() && source.Find(std::string(layer) + "eh_proj.weight") != nullptr;
  return draft ? "draft head" : "";
}

}  // namespace tq
