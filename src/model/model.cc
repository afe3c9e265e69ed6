#include "model/model.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {

Result<std::unique_ptr<const Model>> Model::Load(const WeightSource& source, Backend& backend,
                                                 LoadProgress progress, void* context) {
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  std::unique_ptr<Model> model(new Model());
  TQ_ASSIGN_OR_RETURN(model->spec_,
                      ParseModelSpec(config, source.Find("lm_head.weight") != nullptr));
  const ModelSpec& spec = model->spec_;

  std::function<void(int64_t, int64_t)> report;
  if (progress != nullptr) {
    report = [progress, context](int64_t done, int64_t total) { progress(context, done, total); };
  }
  WeightLoader loader(source, backend, ConfigRotates(config), report);
  TQ_ASSIGN_OR_RETURN(
      model->embed_, loader.Matrix("model.embed_tokens.weight", spec.vocab_size, spec.hidden_size));
  for (const BlockSpec& block_spec : spec.blocks) {
    TQ_ASSIGN_OR_RETURN(Block block, Block::Load(block_spec, spec.hidden_size, loader));
    model->blocks_.push_back(std::move(block));
  }
  TQ_ASSIGN_OR_RETURN(model->final_norm_, loader.Vector("model.norm.weight", spec.hidden_size));
  if (!spec.tie_word_embeddings) {
    TQ_ASSIGN_OR_RETURN(model->lm_head_,
                        loader.Matrix("lm_head.weight", spec.vocab_size, spec.hidden_size));
  }
  TQ_RETURN_IF_ERROR(loader.CheckAllUsed(spec.tie_word_embeddings));
  return std::unique_ptr<const Model>(std::move(model));
}

bool ConfigRotates(const Json& config) {
  const auto quantization = config.find("quantization");
  if (quantization == config.end() || !quantization->is_object()) return false;
  const auto rotation = quantization->find("rotation");
  return rotation == quantization->end() || *rotation != "none";
}

std::vector<KvLayout> Model::CacheLayouts(KvType type) const {
  std::vector<KvLayout> out;
  for (const Block& block : blocks_) out.push_back(block.mixer().CacheNeeds(type));
  return out;
}

std::vector<Model::NamedWeight> Model::Weights() const {
  std::vector<NamedWeight> out;
  const auto add = [](void* list, const std::string& name, const Weight& weight) {
    static_cast<std::vector<NamedWeight>*>(list)->push_back({name, &weight});
  };
  out.push_back({"model.embed_tokens", embed_.get()});
  for (const Block& block : blocks_) {
    block.mixer().VisitWeights(add, &out);
    block.ffn().VisitWeights(add, &out);
  }
  if (lm_head_ != nullptr) out.push_back({"lm_head", lm_head_.get()});
  return out;
}

int64_t Model::prepared_bytes() const {
  int64_t bytes = 0;
  for (const NamedWeight& weight : Weights()) bytes += weight.weight->bytes();
  return bytes;
}

int64_t Model::decode_bytes() const {
  // An untied embedding gives one row; a tied one is read whole as the head.
  const int64_t skipped =
      lm_head_ != nullptr ? embed_->bytes() - embed_->bytes() / spec_.vocab_size : 0;
  return prepared_bytes() - skipped;
}

}  // namespace tq
