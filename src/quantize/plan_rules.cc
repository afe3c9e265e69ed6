#include "quantize/plan_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "quantize/expert_layers.h"

namespace tq {
namespace {

// Decays and selection biases: small, and more exact than their neighbours on purpose.
constexpr std::string_view kOwnType[] = {".A_log", ".dt_bias", ".D", ".e_score_correction_bias"};

const MlaSpec* MlaAt(const ModelSpec& model, std::string_view name) {
  for (const BlockSpec& block : model.blocks) {
    if (name == block.prefix + block.mixer_name + "kv_b_proj.weight") {
      return std::get_if<MlaSpec>(&block.mixer);
    }
  }
  return nullptr;
}

std::string LayerNames(const std::set<int>& layers) {
  if (layers.empty()) return "none";
  return fmt::format("{}", fmt::join(layers, ", "));
}

}  // namespace

DType KeptType(const SourceTensor* tensor, std::string_view name, const ConvertOptions& options) {
  const bool float_like = tensor == nullptr || tensor->is_float_like;
  if (tensor != nullptr && !float_like && tensor->dtype == DType::kI64) return DType::kI64;
  const bool own_type =
      std::any_of(std::begin(kOwnType), std::end(kOwnType),
                  [&](std::string_view suffix) { return name.ends_with(suffix); });
  if (options.dtype && !own_type) return *options.dtype;
  if (tensor == nullptr || !float_like) return DType::kF32;
  // Plain floats keep their type; block formats become f16, which holds their 8-bit-ish values
  // better than bf16.
  const bool plain = tensor->codec == CodecId::kF32 || tensor->codec == CodecId::kBf16;
  return plain ? tensor->dtype : DType::kF16;
}

std::optional<LatentHeads> LatentHeadsOf(const ModelSpec& model, const TensorNeed& need) {
  if (model.model_type == "deepseek_v2" || !need.name.ends_with(".kv_b_proj.weight")) return {};
  const MlaSpec* mla = MlaAt(model, need.name);
  if (mla == nullptr) return {};
  const HeadCut cut = {.heads = mla->num_attention_heads,
                       .stride = mla->qk_nope_head_dim + mla->v_head_dim,
                       .rank = mla->kv_lora_rank};
  LatentHeads out = {cut, cut};
  out.embed_q.num_rows = mla->qk_nope_head_dim;
  out.embed_q.transposed = true;
  out.unembed_out.first = mla->qk_nope_head_dim;
  out.unembed_out.num_rows = mla->v_head_dim;
  return out;
}

Shape UnpaddedShape(const ModelSpec& model, const TensorNeed& need) {
  if (model.model_type != "kimi_k3" || !need.name.ends_with(".A_log")) return need.shape;
  if (need.shape.size() != 1) return need.shape;
  for (const BlockSpec& block : model.blocks) {
    const auto* kda = std::get_if<KdaSpec>(&block.mixer);
    if (kda == nullptr || need.name != block.prefix + block.mixer_name + "A_log") continue;
    return {std::min<int64_t>(need.shape[0], kda->num_heads)};
  }
  return need.shape;
}

Status CheckExpertLayers(const QuantizeSettings& settings, const std::set<int>& layers,
                         std::vector<std::string>& warnings) {
  for (const auto& [layer, entries] : settings.expert_layer_tiers) {
    if (layers.contains(layer)) continue;
    return InvalidArgument(
        fmt::format("expert layer tiers: layer {} has no routed experts; layers with experts: {}",
                    layer, LayerNames(layers)));
  }
  const int plain_bits = settings.mlp_bits.value_or(settings.bits);
  if (!settings.protected_expert_layers.empty() && !settings.ternary_experts &&
      settings.protect_bits < plain_bits) {
    warnings.push_back(
        fmt::format("protected layers get {} bits, fewer than the {} of the other layers",
                    settings.protect_bits, plain_bits));
  }
  for (const int layer : settings.protected_expert_layers) {
    if (layers.contains(layer)) continue;
    warnings.push_back(
        fmt::format("protected layer {} has no routed experts: no effect there", layer));
  }
  if (layers.empty() && (settings.ternary_experts || settings.expert_down_bits)) {
    warnings.push_back("the model has no routed experts: settings for experts have no effect");
  }
  return Status::Ok();
}

Status AddDraftHead(const WeightSource& source, std::vector<ConvertItem>& items,
                    std::vector<std::string>& warnings) {
  constexpr std::string_view kPrefix = "mtp.";
  bool found = false;
  for (const SourceTensor& tensor : source.tensors()) {
    if (!tensor.name.starts_with(kPrefix)) continue;
    found = true;
    if (!tensor.is_float_like) {
      return Unsupported(fmt::format(
          "tensor {}: expected a draft head of floats, found {}: leave out --keep-mtp or start "
          "from the unquantized checkpoint",
          tensor.name, DTypeName(tensor.dtype)));
    }
    ConvertItem item;
    const std::string name = "tq_speculator." + tensor.name.substr(kPrefix.size());
    item.path = name.substr(0, name.rfind('.'));
    item.sources = {tensor.name};
    item.cols = tensor.shape.empty() ? 1 : tensor.shape.back();
    item.rows = item.cols == 0 ? 0 : NumElements(tensor.shape) / item.cols;
    item.dtype = KeptType(&tensor, tensor.name, {});
    item.file = "model-mtp.safetensors";
    item.outputs = {{name, item.dtype, tensor.shape}};
    items.push_back(std::move(item));
  }
  if (!found) warnings.push_back("the source has no draft head (mtp.*): none was kept");
  return Status::Ok();
}

}  // namespace tq
