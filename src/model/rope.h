// Rotary frequencies: config.json's rope keys -> RopeSpec, and the cos / sin tables of a step.
// Formulas: docs/models.md "rope" (linear, llama3, yarn as published; f64 inside, rounded to f32
// once).
#pragma once

#include <span>

#include "base/json.h"
#include "model/spec.h"
#include "model/step_context.h"

namespace tq {

struct RopeDefaults {
  double theta = 10000.0;
  int64_t max_position_embeddings = 0;
  double partial_rotary_factor = 1.0;
};

// Reads rope_parameters (one dict), or rope_theta with rope_scaling. partial_rotary_factor applies.
// `reader` gets the error when something is wrong or not understood.
RopeSpec ReadRope(ConfigReader& reader, int head_dim, const RopeDefaults& defaults);
// The same from one dict {"rope_type": ..., "rope_theta": ...}, null for none; `theta` counts when
// the dict has none.
RopeSpec RopeFromDict(ConfigReader& reader, const Json* dict, double theta, int head_dim,
                      const RopeDefaults& defaults);

// rope_parameters[layer_type], of configs that give each type of layer its own; null when absent.
const Json* RopeDictOf(ConfigReader& reader, std::string_view layer_type);

// cos, sin [num_tokens, rotary_dim / 2], in scratch memory. positions: [num_tokens], the same on
// every axis, or [kPositionAxes, num_tokens].
RopeTable MakeRopeTable(const RopeSpec& spec, std::span<const int32_t> positions,
                        int64_t num_tokens, Scratch& scratch);

// Heads side by side, x [T, num_heads, head_dim]; the rotary dims begin at `offset`.
struct RopeHeads {
  float* x;
  int num_heads;
  int head_dim;
  int offset = 0;
  bool interleaved = false;
};
void ApplyRope(StepContext& step, const RopeTable& table, const RopeHeads& heads);
// With the step's table of ModelSpec::ropes[rope]; -1: no rope.
void ApplyRope(StepContext& step, int rope, const RopeHeads& heads);

}  // namespace tq
