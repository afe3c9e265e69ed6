// Model: the blocks of a checkpoint with their prepared weights. Deeply const after Load, so
// sessions, caches and scratch memory are passed in (step_context.h). Any thread may read it;
// Forward runs on the engine thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cache/kv_cache.h"
#include "model/hidden_rows.h"
#include "model/model_parts.h"
#include "model/spec.h"
#include "model/step_context.h"
#include "weights/source.h"

namespace tq {

// Progress of a load: bytes done of bytes in all. May be null.
using LoadProgress = void (*)(void* context, int64_t done_bytes, int64_t total_bytes);

// quantization.rotation of a TurboQuant config.json is not "none".
bool ConfigRotates(const Json& config);

// What every layer of such a model remembers, without its weights.
std::vector<CacheNeeds> CacheNeedsOf(const ModelSpec& spec, const KvSettings& settings);

class Model {
 public:
  // Maps, checks and prepares every tensor. `backend` must outlive the model.
  // Errors: what ParseModelSpec says; kNotFound / kCorrupt for missing, unused or ill-shaped
  // tensors.
  static Result<std::unique_ptr<const Model>> Load(const WeightSource& source, Backend& backend,
                                                   LoadProgress progress = nullptr,
                                                   void* context = nullptr);
  // Of the tensors that `loader` gives. Errors: the loader's.
  static Result<std::unique_ptr<const Model>> LoadFrom(ModelSpec spec, TensorLoader& loader);

  const ModelSpec& spec() const { return spec_; }
  // One entry per layer, for KvCache::Create.
  std::vector<CacheNeeds> Needs(const KvSettings& settings) const;
  // Every prepared matrix with its name, in forward order (`inspect`, memory plans).
  struct NamedWeight {
    std::string name;
    const Weight* weight;
  };
  std::vector<NamedWeight> Weights() const;
  int64_t prepared_bytes() const;
  // Tables that stay in the mapped checkpoint (weights/row_table.h): not resident, not in
  // prepared_bytes. The source may go; its files stay mapped.
  int64_t mapped_bytes() const;
  // Bytes of weights that one decode step of one sequence reads.
  int64_t decode_bytes() const;
  // Prepared bytes of the routed experts, all of them, and the share that a token reads.
  int64_t expert_bytes() const;
  double expert_share() const;

  // Runs one step: logits[i * vocab_size ...] of token plan.logits_tokens[i]. K and V of the plan's
  // tokens are appended to `cache`. Requires: every id < vocab_size, pages allocated for every
  // position.
  void Forward(StepContext& step, KvCache& cache, float* logits) const;
  // Also gives the hidden states of `hidden.tokens`.
  void ForwardHidden(StepContext& step, KvCache& cache, float* logits,
                     const HiddenRows& hidden) const;

  // The same piece by piece, for those who change weights on the way. x [T, residual_width()]: the
  // residual before the first block, then through one block. Requires: blocks_stand_alone().
  void EmbedTokens(StepContext& step, float* x) const;
  void ForwardBlock(StepContext& step, KvCache& cache, size_t index, float* x) const;
  int64_t residual_width() const { return spec_.hidden_size * spec_.num_streams; }
  // False where a block reads what earlier blocks keep beside the residual.
  bool blocks_stand_alone() const;

 private:
  Model() = default;
  void BeginStep(StepContext& step) const;
  Residuals Embed(StepContext& step) const;
  const float* FinalHidden(StepContext& step, const Residuals& residuals) const;
  // Rows `tokens` of it, normed, to `out`.
  void HeadInput(StepContext& step, const float* final_hidden, std::span<const int32_t> tokens,
                 float* out) const;
  void Head(StepContext& step, const float* head_in, int64_t num_rows, float* logits) const;

  ModelSpec spec_;
  ModelParts parts_;
};

}  // namespace tq
