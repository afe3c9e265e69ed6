#include "api/model_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tq {
namespace {

double Gb(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

Status CheckBudget(std::string_view what, int64_t bytes, int64_t memory_bytes) {
  if (memory_bytes == 0 || bytes <= memory_bytes) return Status::Ok();
  return OutOfMemory(
      fmt::format("memory: expected at most {:.3f} GB (the given limit), found {:.3f} GB of {}: "
                  "raise the limit or use a smaller checkpoint",
                  Gb(memory_bytes), Gb(bytes), what));
}

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

KvType ModelSession::kv_type() const {
  return backend_->activations() == ActivationMode::kF32 ? KvType::kF32 : KvType::kF16;
}

int64_t ModelSession::kv_bytes_per_token() const {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : model_->Needs(kv_type())) {
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
  options.kv_type = kv_type();
  if (memory_bytes_ > 0) {
    const int64_t page = kv_bytes_per_token() * kPageTokens;
    const int64_t room = memory_bytes_ - model_->prepared_bytes();
    const int64_t tokens = room / std::max<int64_t>(page, 1) * kPageTokens;
    if (tokens < std::max<int64_t>(options.max_context, kPageTokens)) {
      return OutOfMemory(
          fmt::format("memory: expected room for a context of {} tokens ({:.3f} GB) beside {:.3f} "
                      "GB of weights, "
                      "found {:.3f} GB: raise the limit or lower the context",
                      std::max<int64_t>(options.max_context, kPageTokens),
                      Gb(std::max<int64_t>(options.max_context, kPageTokens) * page / kPageTokens),
                      Gb(model_->prepared_bytes()), Gb(std::max<int64_t>(room, 0))));
    }
    const int64_t context =
        options.max_context > 0 ? options.max_context : model_->spec().max_position_embeddings;
    options.kv_tokens = std::min(tokens, std::max<int64_t>(context, kPageTokens));
  }
  TQ_ASSIGN_OR_RETURN(engine_, Engine::Create(*model_, *backend_, options));
  return engine_.get();
}

}  // namespace tq
