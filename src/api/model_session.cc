#include "api/model_session.h"

#include <utility>

#include "api/session_outline.h"
#include "plan/memory_plan.h"
#include "weights/checkpoint_content.h"

namespace tq {
namespace {

void ReportProgress(void* context, int64_t done, int64_t total) {
  const auto& progress = *static_cast<const ModelSession::Progress*>(context);
  if (progress) progress(done, total);
}

}  // namespace

Result<std::unique_ptr<ModelSession>> ModelSession::Open(const SessionOptions& options,
                                                         const Progress& progress) {
  std::unique_ptr<ModelSession> session(new ModelSession());
  session->memory_bytes_ = options.memory_bytes;
  TQ_ASSIGN_OR_RETURN(session->backend_, MakeBackend(options.backend, options.backend_options));
  session->kv_ = KvSettingsFor(session->backend_->activations(), options.kv);
  TQ_ASSIGN_OR_RETURN(session->source_, OpenSource(options.path));
  Result<CheckpointParts> parts = ReadCheckpointParts(*session->source_);
  if (!parts.ok()) return parts.status().WithContext(options.path);
  session->parts_ = std::move(parts).value();
  TQ_RETURN_IF_ERROR(
      CheckBudget("stored weights", session->parts_.prepared_bytes, options.memory_bytes));
  Progress report = progress;
  Result<std::unique_ptr<const Model>> model =
      Model::Load(*session->source_, *session->backend_, ReportProgress, &report);
  if (!model.ok()) return model.status().WithContext(options.path);
  session->model_ = std::move(model).value();
  TQ_RETURN_IF_ERROR(
      CheckBudget("prepared weights", session->model_->prepared_bytes(), options.memory_bytes));
  return session;
}

int64_t ModelSession::kv_bytes_per_token() const {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : model_->Needs(kv())) {
    for (const KvLayout& layout : needs.paged) bytes += layout.page_bytes();
  }
  return bytes / kPageTokens;
}

Result<const TextAssets*> ModelSession::LoadText() {
  if (text_ == nullptr) {
    Result<TextAssets> text = LoadTextAssets(*source_);
    if (!text.ok()) return text.status().WithContext(source_->path());
    text_ = std::make_unique<TextAssets>(std::move(text).value());
  }
  return static_cast<const TextAssets*>(text_.get());
}

Result<Engine*> ModelSession::StartEngine(EngineOptions options) {
  options.kv = kv();
  if (memory_bytes_ > 0) {
    const ModelMemory memory = MemoryOf(*model_, *backend_, options.kv);
    TQ_RETURN_IF_ERROR(FitEngine(memory, memory_bytes_, options).status());
  }
  if (!options.disk_cache.folder.empty() && options.disk_cache.content.empty()) {
    options.disk_cache.content =
        NotedCheckpointContent(*source_, options.disk_cache.folder + "/checkpoints");
  }
  TQ_ASSIGN_OR_RETURN(engine_, Engine::Create(*model_, *backend_, options));
  return engine_.get();
}

}  // namespace tq
