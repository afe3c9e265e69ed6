// StepModel: what the engine needs of a model. The adapter for Model is in model_step.cc; tests use
// a model without weights. Thread: engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "backend/step_plan.h"
#include "base/check.h"
#include "cache/kv_cache.h"
#include "model/hidden_rows.h"

namespace tq {

class StepModel {
 public:
  virtual ~StepModel() = default;
  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_position_embeddings() const = 0;
  virtual std::vector<CacheNeeds> Needs(const KvSettings& settings) const = 0;
  // Of everything but the tokens that the bytes of a page or a state depend on. Two that differ
  // never share pages.
  virtual std::string Fingerprint(const KvSettings& settings) const = 0;
  // As Model::Forward: logits[i * vocab_size ...] of token plan.logits_tokens[i].
  virtual void Forward(const StepPlan& plan, KvCache& cache, float* logits) = 0;
  // Floats of a token's hidden state; 0: this model gives none.
  virtual int64_t hidden_size() const { return 0; }
  // Forward that also gives hidden states. Requires: hidden_size() > 0.
  virtual void ForwardHidden(const StepPlan&, KvCache&, float* /*logits*/, const HiddenRows&) {
    TQ_CHECK(hidden_size() > 0);
  }
};

}  // namespace tq
