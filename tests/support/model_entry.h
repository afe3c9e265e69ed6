// Models for tests of the server: a StepModel as one of its models.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/engine_lengths.h"
#include "engine/step_model.h"
#include "server/served_model.h"

namespace tq::test {

class EngineModel final : public server::LoadedModel {
 public:
  static Result<std::unique_ptr<server::LoadedModel>> Load(std::unique_ptr<StepModel> model,
                                                           const EngineOptions& options) {
    auto loaded = std::make_unique<EngineModel>();
    TQ_ASSIGN_OR_RETURN(loaded->engine_, Engine::Create(std::move(model), options));
    return std::unique_ptr<server::LoadedModel>(std::move(loaded));
  }
  Engine& engine() override { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

inline server::ModelCard MakeCard(const std::string& name, std::shared_ptr<const TextAssets> text,
                                  const StepModel& model, const EngineOptions& options) {
  server::ModelCard card{.name = name, .text = std::move(text)};
  card.vocab_size = model.vocab_size();
  card.engine = options;
  const Status filled = FillInLengths(model.max_position_embeddings(), card.engine);
  TQ_CHECK(filled.ok());
  card.kv_bytes_per_token = KvCache::BytesPerPage(model.Needs(options.kv)) / kPageTokens;
  return card;
}

// Can be loaded once.
inline server::ModelEntry MakeEntry(const std::string& name, std::shared_ptr<const TextAssets> text,
                                    std::unique_ptr<StepModel> model,
                                    const EngineOptions& options) {
  server::ModelCard card = MakeCard(name, std::move(text), *model, options);
  const auto kept = std::make_shared<std::unique_ptr<StepModel>>(std::move(model));
  return {std::move(card),
          [kept, options] { return EngineModel::Load(std::move(*kept), options); }};
}

// Made anew for each load.
inline server::ModelEntry MakeEntry(const std::string& name, std::shared_ptr<const TextAssets> text,
                                    std::function<std::unique_ptr<StepModel>()> make,
                                    const EngineOptions& options) {
  server::ModelCard card = MakeCard(name, std::move(text), *make(), options);
  return {std::move(card),
          [make = std::move(make), options] { return EngineModel::Load(make(), options); }};
}

}  // namespace tq::test
