// Engine::Create for a Model: the adapter from StepModel to Model::Forward.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/backend.h"
#include "engine/engine.h"
#include "engine/step_model.h"
#include "engine/workspace.h"
#include "model/model.h"
#include "model/step_context.h"
#include "tensor/scratch.h"

namespace tq {
namespace {

class ModelStep final : public StepModel {
 public:
  ModelStep(const Model& model, Backend& backend, Scratch scratch)
      : model_(model), backend_(backend), scratch_(std::move(scratch)) {}

  int64_t vocab_size() const override { return model_.spec().vocab_size; }
  int64_t max_position_embeddings() const override { return model_.spec().max_position_embeddings; }
  std::vector<CacheNeeds> Needs(const KvSettings& settings) const override {
    return model_.Needs(settings);
  }
  // The model itself is one object for the life of the engine; its sizes are named so that pages
  // which outlive it are not taken for another's.
  std::string Fingerprint(const KvSettings& settings) const override {
    const ModelSpec& spec = model_.spec();
    return fmt::format("{} layers={} hidden={} vocab={} weights={} activations={} kv={} page={}",
                       spec.model_type, spec.blocks.size(), spec.hidden_size, spec.vocab_size,
                       model_.prepared_bytes(),
                       backend_.activations() == ActivationMode::kF32 ? "f32" : "int8",
                       KvSettingsText(settings), kPageTokens);
  }
  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override {
    ForwardHidden(plan, cache, logits, {});
  }
  int64_t hidden_size() const override { return model_.spec().hidden_size; }
  void ForwardHidden(const StepPlan& plan, KvCache& cache, float* logits,
                     const HiddenRows& hidden) override {
    scratch_.Reset();
    // The vector of ropes is lent, so that a steady state does not allocate it anew.
    StepContext step{
        .backend = backend_, .scratch = scratch_, .plan = plan, .ropes = std::move(ropes_)};
    model_.ForwardHidden(step, cache, logits, hidden);
    ropes_ = std::move(step.ropes);
  }

 private:
  const Model& model_;
  Backend& backend_;
  Scratch scratch_;
  std::vector<RopeTable> ropes_;
};

// The largest step's scratch memory in one block: it is committed when touched, and never grows.
Result<Scratch> MakeScratch(const Model& model, Backend& backend, const EngineOptions& options) {
  Scratch scratch;
  if (backend.Sizing() == nullptr || !options.Validate().ok()) return scratch;
  StepShape shape = {.context = model.spec().max_position_embeddings,
                     .prefill_chunk = options.prefill_chunk,
                     .max_sequences = options.max_sequences};
  for (const int64_t limit : {options.max_context, options.kv_tokens}) {
    if (limit > 0) shape.context = std::min(shape.context, limit);
  }
  TQ_ASSIGN_OR_RETURN(const int64_t bytes, MeasureWorkspace(model, backend, options.kv, shape));
  if (!scratch.Reserve(static_cast<size_t>(bytes))) {
    return OutOfMemory(
        fmt::format("memory: expected {:.3f} GB for the workspace of a step, found "
                    "less: lower the prefill chunk",
                    static_cast<double>(bytes) * 1e-9));
  }
  return scratch;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const Model& model, Backend& backend,
                                               EngineOptions options) {
  TQ_ASSIGN_OR_RETURN(Scratch scratch, MakeScratch(model, backend, options));
  return Create(std::make_unique<ModelStep>(model, backend, std::move(scratch)), options);
}

}  // namespace tq
