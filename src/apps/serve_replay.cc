#include "apps/serve_replay.h"

#include <utility>
#include <vector>

#include "base/file.h"
#include "engine/engine_lengths.h"
#include "server/replay.h"
#include "weights/source.h"

namespace tq {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr int64_t kDefaultContext = int64_t{1} << 18;

class ReplayModel final : public server::LoadedModel {
 public:
  explicit ReplayModel(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
  Engine& engine() override { return *engine_; }

 private:
  const std::unique_ptr<Engine> engine_;
};

}  // namespace

Result<server::ModelEntry> DescribeReplay(const ServeFlags& flags, const ServeModel& model) {
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(model.path));
  Result<TextAssets> loaded = LoadTextAssets(*source);
  if (!loaded.ok()) return loaded.status().WithContext(model.path);
  const auto text = std::make_shared<const TextAssets>(std::move(loaded).value());
  TQ_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(flags.replay, kMostBytes));
  TQ_ASSIGN_OR_RETURN(const std::vector<server::ReplayAnswer> answers,
                      server::ParseReplay(file, flags.replay));
  const int64_t context = flags.context_length > 0 ? flags.context_length : kDefaultContext;
  const Result<std::unique_ptr<StepModel>> trial = server::MakeReplayModel(answers, *text, context);
  if (!trial.ok()) return trial.status().WithContext(flags.replay);

  server::ModelEntry entry;
  EngineOptions& options = entry.card.engine;
  TQ_ASSIGN_OR_RETURN(options, ServeEngineOptions(flags, model.path));
  options.disk_cache = {};  // its pages hold nothing
  // A place is a few bytes: nobody has to give way.
  if (options.kv_tokens == 0) options.kv_tokens = context * options.max_sequences;
  TQ_RETURN_IF_ERROR(options.Validate());
  TQ_RETURN_IF_ERROR(FillInLengths(context, options));
  entry.card.kv_bytes_per_token = KvCache::BytesPerPage((*trial)->Needs(options.kv)) / kPageTokens;
  entry.card.text = text;
  entry.card.backend = "replay";
  entry.card.vocab_size = text->tokenizer->vocab_size();
  entry.load = [text, answers, context, options]() -> Result<std::unique_ptr<server::LoadedModel>> {
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<StepModel> made,
                        server::MakeReplayModel(answers, *text, context));
    TQ_ASSIGN_OR_RETURN(auto engine, Engine::Create(std::move(made), options));
    return std::unique_ptr<server::LoadedModel>(std::make_unique<ReplayModel>(std::move(engine)));
  };
  return entry;
}

}  // namespace tq
