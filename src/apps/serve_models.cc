#include "apps/serve_models.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/session_outline.h"
#include "apps/hub_flags.h"
#include "apps/serve_replay.h"
#include "apps/session_flags.h"
#include "base/file.h"
#include "plan/machines.h"

namespace tq {
namespace {

class SessionModel final : public server::LoadedModel {
 public:
  SessionModel(std::unique_ptr<ModelSession> session, Engine& engine)
      : session_(std::move(session)), engine_(engine) {}
  Engine& engine() override { return engine_; }

 private:
  const std::unique_ptr<ModelSession> session_;
  Engine& engine_;  // the session's
};

// "Qwen3-8B-3bit" of "models/Qwen3-8B-3bit/"; of a name of the Hub, what stands before "@".
std::string OwnName(const std::string& argument) {
  std::filesystem::path name(argument);
  if (!FileExists(argument)) name = argument.substr(0, argument.find('@'));
  if (!name.has_filename()) name = name.parent_path();
  return name.has_filename() ? name.filename().string() : argument;
}

Result<std::vector<std::string>> SplitNames(const std::string& argument, std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    if (end == 0) {
      return InvalidArgument(
          fmt::format("expected NAME=PATH or NAME,NAME=PATH, found \"{}\"", argument));
    }
    names.emplace_back(text.substr(0, end));
    if (end == text.size()) return names;
    text.remove_prefix(end + 1);
  }
}

Result<std::unique_ptr<server::LoadedModel>> LoadSession(const std::string& path,
                                                         const CommonFlags& common,
                                                         const Console& console,
                                                         const std::optional<KvSettings>& kv,
                                                         const EngineOptions& options) {
  TQ_ASSIGN_OR_RETURN(std::unique_ptr<ModelSession> session,
                      OpenSession(path, common, console, kv));
  TQ_ASSIGN_OR_RETURN(Engine * engine, session->StartEngine(options));
  return std::unique_ptr<server::LoadedModel>(
      std::make_unique<SessionModel>(std::move(session), *engine));
}

// common: with the limit for this model.
Result<server::ModelEntry> DescribeModel(const ServeFlags& flags, const CommonFlags& common,
                                         const ServeModel& model, const Console& console) {
  server::ModelEntry entry;
  TQ_ASSIGN_OR_RETURN(const std::optional<KvSettings> kv, KvSettingsOf(flags.kv));
  TQ_ASSIGN_OR_RETURN(const EngineOptions options, ServeEngineOptions(flags, model.path));
  TQ_ASSIGN_OR_RETURN(SessionOutline outline,
                      OutlineSession(SessionOptionsOf(model.path, common, kv), options));
  TQ_RETURN_IF_ERROR(outline.text.tokenizer_status);
  entry.card.text = std::make_shared<const TextAssets>(std::move(outline.text));
  entry.card.backend = std::move(outline.backend);
  entry.card.vocab_size = outline.vocab_size;
  entry.card.engine = std::move(outline.engine);
  entry.card.kv_bytes_per_token = outline.kv_bytes_per_token;
  entry.card.memory_bytes = outline.memory_bytes;
  entry.load = [path = model.path, common, console, kv, options] {
    return LoadSession(path, common, console, kv, options);
  };
  return entry;
}

}  // namespace

Result<ServeModel> ParseServeModel(const std::string& argument) {
  ServeModel model{.names = {}, .path = argument};
  const size_t sign = FileExists(argument) ? std::string::npos : argument.find('=');
  if (sign != std::string::npos) {
    TQ_ASSIGN_OR_RETURN(model.names,
                        SplitNames(argument, std::string_view(argument).substr(0, sign)));
    model.path = argument.substr(sign + 1);
  } else {
    model.names = {OwnName(argument)};
  }
  const std::string problem = ModelPath()(model.path);
  if (!problem.empty()) return NotFound(problem);
  return model;
}

CLI::Validator ServeModelArgument() {
  return {[](const std::string& argument) { return ParseServeModel(argument).status().message(); },
          "", "model"};
}

Result<ServeModels> DescribeModels(const ServeFlags& flags, const Console& console) {
  const bool several = flags.models.size() > 1;
  if (several && !flags.names.empty()) {
    return InvalidArgument(
        "--served-model-name: expected one model, found several: write --model NAME=PATH for each");
  }
  CommonFlags common = flags.common;
  // Together they shall not take more than there is.
  if (several && common.memory_gb == 0) {
    common.memory_gb = static_cast<double>(ThisMachine().usable_bytes) * 1e-9;
  }
  ServeModels out;
  for (const std::string& argument : flags.models) {
    TQ_ASSIGN_OR_RETURN(ServeModel model, ParseServeModel(argument));
    if (!flags.names.empty()) model.names = flags.names;
    auto entry = flags.replay.empty() ? DescribeModel(flags, common, model, console)
                                      : DescribeReplay(flags, model);
    if (!entry.ok()) return several ? entry.status().WithContext(model.names[0]) : entry.status();
    entry->card.name = model.names.front();
    entry->card.aliases.assign(model.names.begin() + 1, model.names.end());
    out.entries.push_back(std::move(entry).value());
  }
  out.pool.memory_bytes = SessionOptionsOf("", common, {}).memory_bytes;
  out.pool.max_loaded = flags.max_loaded;
  out.pool.idle_unload = std::chrono::milliseconds(static_cast<int64_t>(flags.idle_unload * 1000));
  out.pool.max_waiting = flags.max_queue;
  return out;
}

}  // namespace tq
