// The one formula for what an engine takes: `turboquant plan` states it before a byte of weights is
// there, ModelSession admits by it. Bytes in, bytes out.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "cache/kv_cache.h"
#include "engine/engine.h"
#include "engine/workspace.h"
#include "model/model.h"

namespace tq {

// What the formula needs to know of a model on a backend.
struct ModelMemory {
  int64_t weight_bytes = 0;  // prepared
  std::vector<CacheNeeds> needs;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_position_embeddings = 0;
  std::function<Result<int64_t>(const StepShape&)> workspace;

  // All layers, with what the prefix cache and the sampler keep of a page.
  int64_t page_bytes() const;
  int64_t slot_bytes() const { return KvCache::BytesPerSlot(needs); }
  // The first pages of sequences that are kept exact (KvSettings::min_tokens).
  int64_t exact_bytes(int max_sequences) const;
};
// model and backend must outlive the result. The only place that asks a model for its cache.
ModelMemory MemoryOf(const Model& model, Backend& backend, const KvSettings& kv);

// Parts of an engine's memory.
struct EngineMemory {
  int64_t weights = 0;
  int64_t pages = 0;        // keys and values of kv_tokens
  int64_t exact_pages = 0;  // those of first positions, beside the packed ones
  int64_t states = 0;       // of recurrent layers, running sequences
  int64_t checkpoints = 0;  // of such states, for the prefix cache
  int64_t logits = 0;       // and hidden states, of an engine that gives embeddings
  int64_t sampling = 0;     // scratch of the sampler, once for all
  int64_t disk_copies = 0;  // of pages and states on their way to the disk
  int64_t workspace = 0;    // scratch memory of the largest step
  int64_t total() const {
    return weights + pages + exact_pages + states + checkpoints + logits + sampling + disk_copies +
           workspace;
  }
};

// Of these options; zeros mean what Engine::Create makes of them. Errors: MeasureWorkspace's.
Result<EngineMemory> ChargeEngine(const ModelMemory& model, const EngineOptions& options);

// Makes the options fit into memory_bytes. In this order: weights, workspace, logits and the states
// of running sequences; then checkpoints of states, at most a quarter of the rest; pages get what
// is left. Sets kv_tokens, state_checkpoints and, if it must, a shorter prefill_chunk. Errors:
// kOutOfMemory, no room for the context.
Result<EngineMemory> FitEngine(const ModelMemory& model, int64_t memory_bytes,
                               EngineOptions& options);

}  // namespace tq
