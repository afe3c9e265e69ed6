// Rules of a plan that need no state of it: float types, latent heads, layers of experts, the draft
// head.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quantize/convert_plan.h"

namespace tq {

// The type that a float tensor keeps or gets. tensor: null or not float-like for a quantized
// source, whose values only f32 holds.
DType KeptType(const SourceTensor* tensor, std::string_view name, const ConvertOptions& options);

// How the published loader wants the latent attention's kv_b_proj: cut into embed_q and
// unembed_out. Empty: as it is (other matrices; deepseek_v2).
struct LatentHeads {
  HeadCut embed_q;      // [rank, key size] per head
  HeadCut unembed_out;  // [value size, rank] per head
};
std::optional<LatentHeads> LatentHeadsOf(const ModelSpec& model, const TensorNeed& need);

// The shape without padding: kimi_k3 publishes decays of head_dim values, one for each head and
// then zeros.
Shape UnpaddedShape(const ModelSpec& model, const TensorNeed& need);

// layers: those with routed experts. Errors: kInvalidArgument for a tier of any other layer.
Status CheckExpertLayers(const QuantizeSettings& settings, const std::set<int>& layers,
                         std::vector<std::string>& warnings);

// The tensors mtp.* under the names and in the file that the published loader looks for.
// Errors: kUnsupported (a quantized head).
Status AddDraftHead(const WeightSource& source, std::vector<ConvertItem>& items,
                    std::vector<std::string>& warnings);

}  // namespace tq
