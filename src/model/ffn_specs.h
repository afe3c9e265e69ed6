// The feed-forward parts of a block as data. Field names are config.json's. The maths is in ffns/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "backend/ops.h"
#include "backend/ops_moe.h"
#include "model/mixer_specs.h"

namespace tq {

struct DenseFfnSpec {
  int64_t intermediate_size = 0;
  Activation activation = Activation::kSilu;
  bool bias = false;
  bool gated = true;   // false: down(relu(up x)^2), no gate_proj
  float alpha = 0.0f;  // of kClampedSilu and kSitu (backend/ops.h)
  float limit = 0.0f;
};

struct MoeSpec {
  RouterRule router;
  std::string router_name = "gate";  // <ffn>gate.weight [E, hidden]
  bool router_bias = false;
  bool selection_bias = false;  // <router>.e_score_correction_bias [E]
  // Gemma's router: reads norm(x) * router.scale / sqrt(hidden), weights * router.per_expert_scale.
  bool scaled_router = false;
  float router_eps = 1e-6f;
  DenseFfnSpec expert;      // of each <ffn>experts.{e}.
  std::string shared_name;  // "shared_expert", "shared_experts"; empty: none
  DenseFfnSpec shared;
  bool shared_gate = false;  // times sigmoid(shared_expert_gate x)
  int64_t latent_size = 0;   // > 0: experts work on a projection of x
  std::string latent_down, latent_up;
  std::optional<NormSpec> latent_norm;  // on the experts' sum, <ffn>routed_expert_norm
};

// monostate: the block has no feed-forward part.
using FfnSpec = std::variant<std::monostate, DenseFfnSpec, MoeSpec>;

}  // namespace tq
