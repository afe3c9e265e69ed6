#include "model/model.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/loader.h"
#include "weights/need_recorder.h"

namespace tq {

namespace {

// The order in which ModelParts reads a checkpoint: the head early.
std::vector<TensorNeed> LoadOrder(const ModelSpec& spec, const WeightSource& source) {
  std::vector<TensorNeed> needs = NeededTensors(spec, &source);
  if (!spec.tie_word_embeddings) std::rotate(needs.begin() + 1, needs.end() - 1, needs.end());
  return needs;
}

}  // namespace

Result<std::unique_ptr<const Model>> Model::Load(const WeightSource& source, Backend& backend,
                                                 LoadProgress progress, void* context) {
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  TQ_ASSIGN_OR_RETURN(ModelSpec spec, ParseModelSpec(config, source.facts()));
  const bool tied = spec.tie_word_embeddings;

  std::function<void(int64_t, int64_t)> report;
  if (progress != nullptr) {
    report = [progress, context](int64_t done, int64_t total) { progress(context, done, total); };
  }
  WeightLoader loader(source, backend, ConfigRotates(config), report);
  loader.Expect(LoadOrder(spec, source));
  TQ_ASSIGN_OR_RETURN(std::unique_ptr<const Model> model, LoadFrom(std::move(spec), loader));
  TQ_RETURN_IF_ERROR(loader.CheckAllUsed(tied));
  return model;
}

Result<std::unique_ptr<const Model>> Model::LoadFrom(ModelSpec spec, TensorLoader& loader) {
  std::unique_ptr<Model> model(new Model());
  model->spec_ = std::move(spec);
  TQ_ASSIGN_OR_RETURN(model->parts_, ModelParts::Load(model->spec_, loader));
  return std::unique_ptr<const Model>(std::move(model));
}

std::vector<TensorNeed> NeededTensors(const ModelSpec& spec, const WeightSource* source) {
  NeedRecorder recorder(source);
  const auto parts = ModelParts::Load(spec, recorder);
  TQ_CHECK(parts.ok());
  return recorder.Take();
}

bool ConfigRotates(const Json& config) {
  const auto quantization = config.find("quantization");
  if (quantization == config.end() || !quantization->is_object()) return false;
  const auto rotation = quantization->find("rotation");
  return rotation == quantization->end() || *rotation != "none";
}

std::vector<CacheNeeds> CacheNeedsOf(const ModelSpec& spec, const KvSettings& settings) {
  NeedRecorder recorder(nullptr);
  const auto parts = ModelParts::Load(spec, recorder);
  TQ_CHECK(parts.ok());
  std::vector<CacheNeeds> out;
  for (const auto& block : parts->blocks) out.push_back(block->Needs(settings));
  return out;
}

std::vector<CacheNeeds> Model::Needs(const KvSettings& settings) const {
  std::vector<CacheNeeds> out;
  for (const auto& block : parts_.blocks) out.push_back(block->Needs(settings));
  return out;
}

std::vector<Model::NamedWeight> Model::Weights() const {
  std::vector<NamedWeight> out;
  const auto add = [](void* list, const std::string& name, const Weight& weight) {
    static_cast<std::vector<NamedWeight>*>(list)->push_back({name, &weight});
  };
  out.push_back({"model.embed_tokens", parts_.embed.get()});
  if (parts_.per_layer) parts_.per_layer->VisitWeights(add, &out);
  if (parts_.self_conditioning) parts_.self_conditioning->VisitWeights(add, &out);
  for (const auto& block : parts_.blocks) block->VisitWeights(add, &out);
  if (parts_.final_streams) parts_.final_streams->VisitWeights(add, &out);
  if (parts_.lm_head != nullptr) out.push_back({"lm_head", parts_.lm_head.get()});
  return out;
}

int64_t Model::prepared_bytes() const {
  int64_t bytes = 0;
  for (const NamedWeight& weight : Weights()) bytes += weight.weight->bytes();
  return bytes;
}

int64_t Model::mapped_bytes() const {
  int64_t bytes = 0;
  for (const auto& block : parts_.blocks) bytes += block->mapped_bytes();
  return bytes;
}

namespace {

// Which share of the experts' weights a token reads: top_k of num_experts.
RouterRule ExpertShare(const ModelSpec& spec) {
  RouterRule share = {.num_experts = 1, .top_k = 1};
  for (const BlockSpec& block : spec.blocks) {
    for (const FfnSpec* part : {&block.ffn, &block.parallel_ffn}) {
      if (const auto* moe = std::get_if<MoeSpec>(part)) share = moe->router;
    }
  }
  return share;
}

bool IsExpert(const Model::NamedWeight& weight) {
  return weight.name.find(".experts.") != std::string::npos;
}

}  // namespace

int64_t Model::expert_bytes() const {
  int64_t bytes = 0;
  for (const NamedWeight& weight : Weights()) {
    if (IsExpert(weight)) bytes += weight.weight->bytes();
  }
  return bytes;
}

double Model::expert_share() const {
  const RouterRule share = ExpertShare(spec_);
  return static_cast<double>(share.top_k) / share.num_experts;
}

int64_t Model::decode_bytes() const {
  // Of an untied embedding one row is read; a tied one is read whole as the head. Of the experts,
  // those that the router picks.
  const RouterRule share = ExpertShare(spec_);
  int64_t bytes = 0;
  for (const NamedWeight& weight : Weights()) {
    const bool is_table = weight.weight == parts_.embed.get() && parts_.lm_head != nullptr;
    int64_t read = weight.weight->bytes();
    if (is_table) read /= spec_.vocab_size;
    if (IsExpert(weight)) read = read * share.top_k / share.num_experts;
    bytes += read;
  }
  return bytes;
}

}  // namespace tq
