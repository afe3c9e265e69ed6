// Engine: one step thread that serves many requests at once. Submit from any thread; each step
// mixes one chunk of prefill with the decodes of all running sequences. Greedy output of a request
// does not depend on what else runs (docs/numerics.md).
#pragma once

#include <cstdint>
#include <memory>

#include "backend/ops.h"
#include "base/status.h"
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
  KvType kv_type = KvType::kF16;
  // Errors: kInvalidArgument naming the field, the range and the value.
  Status Validate() const;
};

struct EngineStats {
  int64_t steps = 0;
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t free_pages = 0;
  int64_t total_pages = 0;
  int64_t kv_bytes_per_token = 0;
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

  // Requests start in the order of their submission, each when a place and pages for its prompt and
  // max_tokens are free. Dropping the returned pointer cancels; it may outlive the engine.
  // Errors: kInvalidArgument (what GenerateRequest::Validate refuses), kBusy (queue full).
  Result<std::shared_ptr<TokenStream>> Submit(GenerateRequest request);
  EngineStats stats() const;
  // As given to Create, with the zeros filled in.
  const EngineOptions& options() const { return options_; }

 private:
  struct Impl;
  Engine(const EngineOptions& options, std::unique_ptr<Impl> impl);
  EngineOptions options_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq
