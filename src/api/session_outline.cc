#include "api/session_outline.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/memory.h"
#include "engine/engine_lengths.h"
#include "plan/memory_plan.h"
#include "plan/sized_model.h"
#include "weights/source.h"

namespace tq {
Status CheckBudget(std::string_view what, int64_t bytes, int64_t memory_bytes) {
  if (memory_bytes == 0 || bytes <= memory_bytes) return Status::Ok();
  return OutOfMemory(
      fmt::format("memory: expected at most {:.3f} GB (the given limit), found {:.3f} GB of {}: "
                  "raise the limit or use a smaller checkpoint",
                  Gb(memory_bytes), Gb(bytes), what));
}

Result<SessionOutline> OutlineSession(const SessionOptions& options, EngineOptions engine) {
  SessionOutline out;
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                      MakeBackend(options.backend, options.backend_options));
  engine.kv = KvSettingsFor(backend->activations(), options.kv);
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(options.path));
  const Result<SizedModel> sized = SizeModel(*source, *backend);
  if (!sized.ok()) return sized.status().WithContext(options.path);
  Result<TextAssets> text = LoadTextAssets(*source);
  if (!text.ok()) return text.status().WithContext(options.path);
  const ModelMemory memory = MemoryOf(*sized->model, *sized->backend, engine.kv);
  if (options.memory_bytes > 0) {
    TQ_RETURN_IF_ERROR(CheckBudget("prepared weights", memory.weight_bytes, options.memory_bytes));
    TQ_RETURN_IF_ERROR(FitEngine(memory, options.memory_bytes, engine).status());
  }
  TQ_RETURN_IF_ERROR(engine.Validate());
  TQ_RETURN_IF_ERROR(FillInLengths(memory.max_position_embeddings, engine));
  TQ_ASSIGN_OR_RETURN(const EngineMemory charged, ChargeEngine(memory, engine));
  out.text = std::move(text).value();
  out.engine = std::move(engine);
  out.backend = fmt::format("{}/{}", backend->name(), backend->isa());
  out.vocab_size = memory.vocab_size;
  out.kv_bytes_per_token = KvCache::BytesPerPage(memory.needs) / kPageTokens;
  out.memory_bytes = charged.total();
  return out;
}

}  // namespace tq
