#include "plan/memory_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/memory.h"
#include "cache/disk_cache.h"
#include "cache/prefix_tree.h"
#include "engine/scheduler.h"
#include "sampling/sampler.h"

namespace tq {
namespace {

int64_t ContextOf(const ModelMemory& model, const EngineOptions& options) {
  return options.max_context > 0 ? options.max_context : model.max_position_embeddings;
}

int64_t WantedCheckpoints(const EngineOptions& options) {
  if (!options.prefix_cache) return 0;
  return options.state_checkpoints < 0 ? options.default_checkpoints() : options.state_checkpoints;
}

// All but checkpoints and pages.
Result<EngineMemory> ChargeFixed(const ModelMemory& model, const EngineOptions& options) {
  EngineMemory out;
  out.weights = model.weight_bytes;
  out.states = options.max_sequences * model.slot_bytes();
  out.exact_pages = model.exact_bytes(options.max_sequences);
  out.logits = options.max_sequences * model.vocab_size * static_cast<int64_t>(sizeof(float));
  if (options.embeddings) {
    out.logits += options.prefill_chunk * model.hidden_size * static_cast<int64_t>(sizeof(float));
  }
  out.sampling = SamplerScratch::BytesFor(model.vocab_size, 0);
  if (!options.disk_cache.folder.empty() && options.prefix_cache) {
    out.disk_copies =
        DiskCache::BufferBytes(KvCache::LargestPageBytes(model.needs), model.slot_bytes());
  }
  TQ_ASSIGN_OR_RETURN(out.workspace, model.workspace({.context = ContextOf(model, options),
                                                      .prefill_chunk = options.prefill_chunk,
                                                      .max_sequences = options.max_sequences}));
  return out;
}

}  // namespace

int64_t ModelMemory::page_bytes() const {
  return KvCache::BytesPerPage(needs) + static_cast<int64_t>(sizeof(PrefixNode)) +
         SamplerScratch::BytesFor(0, kPageTokens);
}

int64_t ModelMemory::exact_bytes(int max_sequences) const {
  return KvCache::BytesPerExactPage(needs) * NumExactPages(needs, max_sequences);
}

ModelMemory MemoryOf(const Model& model, Backend& backend, const KvSettings& kv) {
  ModelMemory out;
  out.weight_bytes = model.prepared_bytes();
  out.needs = model.Needs(kv);
  out.vocab_size = model.spec().vocab_size;
  out.hidden_size = model.spec().hidden_size;
  out.max_position_embeddings = model.spec().max_position_embeddings;
  out.workspace = [&model, &backend, kv](const StepShape& shape) {
    return MeasureWorkspace(model, backend, kv, shape);
  };
  return out;
}

Result<EngineMemory> ChargeEngine(const ModelMemory& model, const EngineOptions& options) {
  TQ_ASSIGN_OR_RETURN(EngineMemory out, ChargeFixed(model, options));
  out.checkpoints = WantedCheckpoints(options) * model.slot_bytes();
  const int64_t tokens = options.kv_tokens > 0 ? options.kv_tokens : ContextOf(model, options);
  out.pages = KvCache::PagesFor(tokens) * model.page_bytes();
  return out;
}

Result<EngineMemory> FitEngine(const ModelMemory& model, int64_t memory_bytes,
                               EngineOptions& options) {
  const int64_t page_bytes = model.page_bytes();
  const int64_t slot_bytes = model.slot_bytes();
  const int64_t least_tokens = std::max<int64_t>(options.max_context, kPageTokens);
  const int64_t least_pages = KvCache::PagesFor(least_tokens);
  EngineMemory out;
  int64_t room = 0;
  while (true) {
    TQ_ASSIGN_OR_RETURN(out, ChargeFixed(model, options));
    room = memory_bytes - out.total();
    // A shorter chunk gives the same answer.
    if (room >= least_pages * page_bytes || options.prefill_chunk < kPageTokens) break;
    options.prefill_chunk /= 2;
  }
  if (room < least_pages * page_bytes) {
    return OutOfMemory(
        fmt::format("memory: expected room for a context of {} tokens ({:.3f} GB) beside {:.3f} "
                    "GB of weights and {:.3f} GB of workspace and states, found {:.3f} GB: raise "
                    "the limit, lower the context or the prefill chunk",
                    least_tokens, Gb(least_pages * page_bytes), Gb(out.weights),
                    Gb(out.total() - out.weights), Gb(std::max<int64_t>(room, 0))));
  }
  if (slot_bytes > 0) {
    const int64_t most = std::min(room / 4, room - least_pages * page_bytes) / slot_bytes;
    options.state_checkpoints = std::min(WantedCheckpoints(options), most);
    out.checkpoints = options.state_checkpoints * slot_bytes;
    room -= out.checkpoints;
  }
  const int64_t wanted = options.kv_tokens > 0
                             ? options.kv_tokens
                             : std::max<int64_t>(ContextOf(model, options), kPageTokens);
  options.kv_tokens = std::min(room / page_bytes * kPageTokens, wanted);
  out.pages = KvCache::PagesFor(options.kv_tokens) * page_bytes;
  return out;
}

}  // namespace tq
