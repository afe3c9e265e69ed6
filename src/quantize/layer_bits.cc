#include "quantize/layer_bits.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace tq {
namespace {

bool IsAttention(std::string_view segment) {
  return segment == "self_attn" || segment == "attention" || segment == "linear_attn";
}

bool IsMlp(std::string_view segment) { return segment == "mlp" || segment == "feed_forward"; }

template <typename Visit>
void ForEachSegment(std::string_view path, Visit visit) {
  while (!path.empty()) {
    const size_t dot = path.find('.');
    visit(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
}

Status CheckOneOf(const char* name, int value, std::initializer_list<int> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return Status::Ok();
  std::string list;
  for (const int item : allowed) list += (list.empty() ? "" : ", ") + std::to_string(item);
  return InvalidArgument(std::string(name) + ": expected one of " + list + ", found " +
                         std::to_string(value));
}

Status CheckOptional(const char* name, const std::optional<int>& value,
                     std::initializer_list<int> allowed) {
  return value ? CheckOneOf(name, *value, allowed) : Status::Ok();
}

// The last matrix of an expert, by either of its published names.
bool IsExpertDown(std::string_view path) {
  return path.ends_with(".down_proj") || path.ends_with(".switch_mlp.fc2");
}

Status CheckExperts(const QuantizeSettings& settings) {
  TQ_RETURN_IF_ERROR(CheckOptional("expert down bits", settings.expert_down_bits, {2, 3, 4}));
  TQ_RETURN_IF_ERROR(CheckOneOf("protect bits", settings.protect_bits, {2, 3, 4}));
  for (const auto& [layer, entries] : settings.expert_layer_tiers) {
    TQ_RETURN_IF_ERROR(CheckOneOf("codebook entries of an expert layer", entries, {3, 4, 8, 16}));
  }
  if (settings.expert_layer_tiers.empty()) return Status::Ok();
  const char* other = settings.expert_down_bits                   ? "expert down bits"
                      : !settings.protected_expert_layers.empty() ? "protected expert layers"
                                                                  : nullptr;
  if (other == nullptr) return Status::Ok();
  return InvalidArgument(std::string("expert layer tiers and ") + other +
                         " both set the width of a layer's experts: give one of them");
}

}  // namespace

Status QuantizeSettings::Validate() const {
  TQ_RETURN_IF_ERROR(CheckOneOf("bits", bits, {2, 3, 4}));
  TQ_RETURN_IF_ERROR(CheckOneOf("group size", group_size, {16, 32, 64, 128}));
  TQ_RETURN_IF_ERROR(CheckOptional("attention bits", attn_bits, {1, 2, 3, 4}));
  TQ_RETURN_IF_ERROR(CheckOptional("mlp bits", mlp_bits, {1, 2, 3, 4}));
  TQ_RETURN_IF_ERROR(CheckOptional("mlp group size", mlp_group_size, {16, 32, 64, 128}));
  if (rotation != "hadamard" && rotation != "blockwise_hadamard" && rotation != "none") {
    return InvalidArgument("rotation: expected hadamard, blockwise_hadamard or none, found " +
                           rotation);
  }
  TQ_RETURN_IF_ERROR(CheckExperts(*this));
  if (!affine_extras) return Status::Ok();
  TQ_RETURN_IF_ERROR(CheckOneOf("extras bits", affine_extras->bits, {2, 3, 4, 8}));
  return CheckOneOf("extras group size", affine_extras->group, {32, 64, 128});
}

int BitsForPath(const QuantizeSettings& settings, std::string_view path) {
  const auto own = settings.path_bits.find(std::string(path));
  if (own != settings.path_bits.end()) return own->second;
  int result = settings.bits;
  bool decided = false;
  bool shared = false;
  ForEachSegment(path, [&](std::string_view segment) {
    shared =
        shared || segment.starts_with("shared_expert") || segment.starts_with("routed_expert_");
  });
  ForEachSegment(path, [&](std::string_view segment) {
    if (decided) return;
    if (IsAttention(segment)) {
      result = settings.attn_bits.value_or(settings.bits);
      decided = true;
    } else if (IsMlp(segment)) {
      result = shared ? settings.bits : settings.mlp_bits.value_or(settings.bits);
      decided = true;
    }
  });
  return result;
}

int GroupForPath(const QuantizeSettings& settings, std::string_view path) {
  int result = settings.group_size;
  ForEachSegment(path, [&](std::string_view segment) {
    if (IsMlp(segment)) result = settings.mlp_group_size.value_or(settings.group_size);
  });
  return result;
}

int LayerOfPath(std::string_view path) {
  int layer = -1;
  bool after_layers = false;
  ForEachSegment(path, [&](std::string_view segment) {
    int number = 0;
    const char* end = segment.data() + segment.size();
    const auto [stop, error] = std::from_chars(segment.data(), end, number);
    if (after_layers && layer < 0 && error == std::errc() && stop == end) layer = number;
    after_layers = segment == "layers";
  });
  return layer;
}

int CodebookEntriesForPath(const QuantizeSettings& settings, std::string_view path,
                           bool routed_expert) {
  int entries = 1 << BitsForPath(settings, path);
  if (!routed_expert || settings.path_bits.contains(std::string(path))) return entries;
  const int down_bits = IsExpertDown(path) ? settings.expert_down_bits.value_or(0) : 0;
  if (settings.ternary_experts) entries = 3;
  if (down_bits > 0) entries = 1 << down_bits;
  const int layer = LayerOfPath(path);
  const auto tier = settings.expert_layer_tiers.find(layer);
  if (tier != settings.expert_layer_tiers.end()) entries = tier->second;
  const auto& layers = settings.protected_expert_layers;
  if (std::find(layers.begin(), layers.end(), layer) != layers.end()) {
    entries = 1 << std::max(settings.protect_bits, down_bits);
  }
  return entries;
}

bool IsQuantizable(int64_t rows, int64_t cols, int group) {
  return rows >= 32 && cols >= 32 && cols % group == 0;
}

}  // namespace tq
