#include "api/model_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cache/prefix_tree.h"
#include "engine/workspace.h"

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

// Takes from memory_bytes_, in this order: weights, workspace, logits and the states of running
// sequences; then checkpoints of states, at most a quarter of the rest; pages get what is left.
Status ModelSession::FitToBudget(EngineOptions& options) const {
  const int64_t context =
      options.max_context > 0 ? options.max_context : model_->spec().max_position_embeddings;
  const std::vector<CacheNeeds> needs = model_->Needs(options.kv_type);
  const int64_t page_bytes =
      KvCache::BytesPerPage(needs) + static_cast<int64_t>(sizeof(PrefixNode));
  const int64_t slot_bytes = KvCache::BytesPerSlot(needs);
  const int64_t logits_bytes = model_->spec().vocab_size * static_cast<int64_t>(sizeof(float));
  const int64_t fixed =
      model_->prepared_bytes() + options.max_sequences * (slot_bytes + logits_bytes);
  const int64_t least_tokens = std::max<int64_t>(options.max_context, kPageTokens);
  const int64_t least_pages = KvCache::PagesFor(least_tokens);
  TQ_ASSIGN_OR_RETURN(const int64_t measured,
                      MeasureWorkspace(*model_, *backend_, options.kv_type, context));
  int64_t workspace = 0;
  int64_t room = 0;
  while (true) {
    workspace = measured * KvCache::PagesFor(options.prefill_chunk + options.max_sequences);
    room = memory_bytes_ - fixed - workspace;
    // A shorter chunk gives the same answer.
    if (room >= least_pages * page_bytes || options.prefill_chunk < kPageTokens) break;
    options.prefill_chunk /= 2;
  }
  if (room < least_pages * page_bytes) {
    return OutOfMemory(fmt::format(
        "memory: expected room for a context of {} tokens ({:.3f} GB) beside {:.3f} "
        "GB of weights and {:.3f} GB of workspace and states, found {:.3f} GB: raise "
        "the limit, lower the context or the prefill chunk",
        least_tokens, Gb(least_pages * page_bytes), Gb(model_->prepared_bytes()),
        Gb(workspace + fixed - model_->prepared_bytes()), Gb(std::max<int64_t>(room, 0))));
  }
  if (slot_bytes > 0) {
    const int64_t most = std::min(room / 4, room - least_pages * page_bytes) / slot_bytes;
    const int64_t wanted =
        options.state_checkpoints < 0 ? options.default_checkpoints() : options.state_checkpoints;
    options.state_checkpoints = std::min(wanted, most);
    room -= options.state_checkpoints * slot_bytes;
  }
  const int64_t wanted =
      options.kv_tokens > 0 ? options.kv_tokens : std::max<int64_t>(context, kPageTokens);
  options.kv_tokens = std::min(room / page_bytes * kPageTokens, wanted);
  return Status::Ok();
}

Result<Engine*> ModelSession::StartEngine(EngineOptions options) {
  options.kv_type = kv_type();
  if (memory_bytes_ > 0) TQ_RETURN_IF_ERROR(FitToBudget(options));
  TQ_ASSIGN_OR_RETURN(engine_, Engine::Create(*model_, *backend_, options));
  return engine_.get();
}

}  // namespace tq
