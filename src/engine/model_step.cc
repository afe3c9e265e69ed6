// Engine::Create for a Model: the adapter from StepModel to Model::Forward.
#include <utility>

#include <fmt/format.h>

#include "backend/backend.h"
#include "engine/engine.h"
#include "engine/step_model.h"
#include "model/model.h"
#include "model/step_context.h"
#include "tensor/scratch.h"

namespace tq {
namespace {

class ModelStep final : public StepModel {
 public:
  ModelStep(const Model& model, Backend& backend) : model_(model), backend_(backend) {}

  int64_t vocab_size() const override { return model_.spec().vocab_size; }
  int64_t max_position_embeddings() const override { return model_.spec().max_position_embeddings; }
  std::vector<CacheNeeds> Needs(KvType type) const override { return model_.Needs(type); }
  // The model itself is one object for the life of the engine; its sizes are named so that pages
  // which outlive it are not taken for another's.
  std::string Fingerprint(KvType type) const override {
    const ModelSpec& spec = model_.spec();
    return fmt::format("{} layers={} hidden={} vocab={} weights={} activations={} kv={} page={}",
                       spec.model_type, spec.blocks.size(), spec.hidden_size, spec.vocab_size,
                       model_.prepared_bytes(),
                       backend_.activations() == ActivationMode::kF32 ? "f32" : "int8",
                       type == KvType::kF32 ? "f32" : "f16", kPageTokens);
  }
  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override {
    scratch_.Reset();
    // The vector of ropes is lent, so that a steady state does not allocate it anew.
    StepContext step{
        .backend = backend_, .scratch = scratch_, .plan = plan, .ropes = std::move(ropes_)};
    model_.Forward(step, cache, logits);
    ropes_ = std::move(step.ropes);
  }

 private:
  const Model& model_;
  Backend& backend_;
  Scratch scratch_;
  std::vector<RopeTable> ropes_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const Model& model, Backend& backend,
                                               EngineOptions options) {
  return Create(std::make_unique<ModelStep>(model, backend), options);
}

}  // namespace tq
