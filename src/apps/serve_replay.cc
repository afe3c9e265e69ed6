#include "apps/serve_replay.h"

#include <utility>
#include <vector>

#include "base/file.h"
#include "server/replay.h"
#include "weights/source.h"

namespace tq {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr int64_t kDefaultContext = int64_t{1} << 18;

}  // namespace

Result<std::unique_ptr<ReplaySession>> OpenReplay(const ServeFlags& flags) {
  auto session = std::make_unique<ReplaySession>();
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.model));
  Result<TextAssets> text = LoadTextAssets(*source);
  if (!text.ok()) return text.status().WithContext(flags.model);
  session->text = std::move(text).value();
  TQ_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(flags.replay, kMostBytes));
  TQ_ASSIGN_OR_RETURN(std::vector<server::ReplayAnswer> answers,
                      server::ParseReplay(file, flags.replay));
  const int64_t context = flags.context_length > 0 ? flags.context_length : kDefaultContext;
  Result<std::unique_ptr<StepModel>> model =
      server::MakeReplayModel(std::move(answers), session->text, context);
  if (!model.ok()) return model.status().WithContext(flags.replay);
  TQ_ASSIGN_OR_RETURN(EngineOptions options, ServeEngineOptions(flags));
  options.disk_cache = {};  // its pages hold nothing
  // A place is a few bytes: nobody has to give way.
  if (options.kv_tokens == 0) options.kv_tokens = context * options.max_sequences;
  TQ_ASSIGN_OR_RETURN(session->engine, Engine::Create(std::move(model).value(), options));
  return session;
}

}  // namespace tq
