// StepContext: everything that one step may change or borrow, handed down by the engine.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/step_plan.h"
#include "model/mixer_specs.h"
#include "tensor/scratch.h"

namespace tq {

// cos and sin of one RopeSpec for the step's tokens.
struct RopeTable {
  const float* cos = nullptr;  // [T, rotary_dim / 2]
  const float* sin = nullptr;
  int rotary_dim = 0;
};

// Sees the hidden states as they pass: index 0 is the embedding output, i + 1 the output of block
// i.
class HiddenObserver {
 public:
  virtual ~HiddenObserver() = default;
  virtual void OnHidden(size_t index, const float* hidden, int64_t num_tokens,
                        int64_t hidden_size) = 0;
};

// Sees what enters the matrices: one call for all that share an input, before they are applied.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // names: of the matrices, without ".weight". x [num_tokens, cols], not rotated. An expert that no
  // token was sent to has num_tokens 0.
  virtual void OnInput(std::span<const std::string_view> names, const float* x, int64_t num_tokens,
                       int64_t cols) = 0;
};

struct StepContext {
  Backend& backend;
  Scratch& scratch;
  const StepPlan& plan;
  HiddenObserver* observer = nullptr;
  std::vector<RopeTable> ropes;  // filled by Forward, one per ModelSpec::ropes
  InputObserver* input_observer = nullptr;
  const std::vector<RopeSpec>* rope_specs = nullptr;  // set by Forward: ModelSpec::ropes

  int64_t num_tokens() const { return plan.num_tokens(); }
  // Uninitialised floats until the innermost ScratchScope ends.
  float* Floats(int64_t n) { return scratch.Alloc<float>(static_cast<size_t>(n)); }
};

}  // namespace tq
