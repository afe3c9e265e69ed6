// Engine: one step thread that serves many requests at once. Submit from any thread; each step
// mixes one chunk of prefill with the decodes of all running sequences. Greedy output of a request
// does not depend on what else runs (docs/numerics.md).
#pragma once

#include <cstdint>
#include <memory>

#include "backend/ops.h"
#include "base/status.h"
#include "cache/disk_cache.h"
#include "engine/request.h"
#include "engine/step_model.h"
#include "engine/token_stream.h"

namespace tq {

class Backend;
class Model;

struct EngineOptions {
  // Tokens of one sequence. 0: the model's max_position_embeddings, or kv_tokens if that is
  // smaller.
  int64_t max_context = 0;
  int64_t kv_tokens = 0;        // tokens of all sequences together; 0: max_context
  int max_sequences = 16;       // running at once; others wait
  int max_queue = 256;          // waiting; more are refused with kBusy
  int64_t prefill_chunk = 512;  // prompt tokens per step
  KvSettings kv = KvFormat::kF16;
  bool prefix_cache = true;  // requests share what their prompts have in common
  // Kept states of recurrent layers, for the prefix cache; -1: default_checkpoints().
  // Without recurrent layers none is made.
  int64_t state_checkpoints = -1;
  // Takes requests with pooling. Costs a chunk's hidden states; without effect where the model
  // gives none.
  bool embeddings = false;
  // What outlives the engine; needs the prefix cache.
  DiskCacheOptions disk_cache = {};
  int64_t default_checkpoints() const { return 4 + 2 * int64_t{max_sequences}; }
  // Errors: kInvalidArgument naming the field, the range and the value.
  Status Validate() const;
};

struct EngineStats {
  int64_t steps = 0;
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t free_pages = 0;  // that a request can have: unused, or kept by the prefix cache alone
  int64_t total_pages = 0;
  int64_t kv_bytes_per_token = 0;
  // The prefix cache.
  int64_t cached_pages = 0;   // in it now, also of running requests
  int64_t checkpoints = 0;    // states in it now
  int64_t prefix_hits = 0;    // requests that ended and had found something
  int64_t cached_tokens = 0;  // what those found
  int64_t evicted_pages = 0;
  int64_t preemptions = 0;  // requests that gave way for want of pages or for a higher priority
  // The disk cache.
  int64_t disk_hits = 0;           // requests that went on from it
  int64_t disk_loaded_tokens = 0;  // what those took from it
  int64_t disk_bytes = 0;          // in its folder now
  int64_t disk_written_files = 0;
  int64_t disk_write_errors = 0;   // after one nothing is written for a minute
  int64_t disk_dropped_files = 0;  // broken ones
};

class Engine {
 public:
  // model and backend must outlive the engine. Errors: kInvalidArgument, kOutOfMemory.
  static Result<std::unique_ptr<Engine>> Create(const Model& model, Backend& backend,
                                                EngineOptions options);
  static Result<std::unique_ptr<Engine>> Create(std::unique_ptr<StepModel> model,
                                                EngineOptions options);
  ~Engine();  // cancels what runs and what waits
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Requests start in the order of their priority, then of their submission, each when a place and
  // pages for its prompt are free. One that runs may have to give way and start again; its answer
  // does not change. Dropping the returned pointer cancels; it may outlive the engine.
  // Errors: kInvalidArgument (what GenerateRequest::Validate refuses), kBusy (queue full).
  Result<std::shared_ptr<TokenStream>> Submit(GenerateRequest request);
  EngineStats stats() const;
  // The last error of the disk cache's writes, or ok.
  Status disk_error() const;
  // As given to Create, with the zeros filled in.
  const EngineOptions& options() const { return options_; }

 private:
  struct Impl;
  Engine(const EngineOptions& options, std::unique_ptr<Impl> impl);
  EngineOptions options_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq
