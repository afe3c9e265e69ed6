// ModelSession: one opened checkpoint with everything that answering needs: weights on a backend,
// tokenizer, chat template, defaults, and an engine. Programs and the public API build on it.
// Thread: opened by one; engine() and the const parts may be used by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/text_assets.h"
#include "backend/backend.h"
#include "base/status.h"
#include "engine/engine.h"
#include "model/checkpoint_parts.h"
#include "model/model.h"
#include "weights/source.h"

namespace tq {

struct SessionOptions {
  std::string path;     // a folder in Hugging Face layout or a .gguf file
  std::string backend;  // "" = best
  BackendOptions backend_options;
  int64_t memory_bytes = 0;  // weights, caches and workspace together; 0: no limit
};

class ModelSession {
 public:
  using Progress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

  // Errors: those of OpenSource, Model::Load and MakeBackend; kOutOfMemory over memory_bytes.
  static Result<std::unique_ptr<ModelSession>> Open(const SessionOptions& options,
                                                    const Progress& progress = {});

  const WeightSource& source() const { return *source_; }
  Backend& backend() const { return *backend_; }
  const Model& model() const { return *model_; }
  // What the load used of the checkpoint, and what not.
  const CheckpointParts& parts() const { return parts_; }
  // f32 in parity mode, so that nothing rounds; else f16.
  KvType kv_type() const;
  // KV cache of one token, all layers.
  int64_t kv_bytes_per_token() const;

  // Reads tokenizer, template and defaults on the first call. Thread: one caller.
  Result<const TextAssets*> LoadText();

  // Starts the engine; kv_type is set here, and kv_tokens when a memory limit asks for it.
  // Errors: kOutOfMemory (no room for the context), what Engine::Create says.
  Result<Engine*> StartEngine(EngineOptions options);

 private:
  ModelSession() = default;
  // Sets kv_tokens, state_checkpoints and, if it must, a shorter prefill_chunk.
  Status FitToBudget(EngineOptions& options) const;

  int64_t memory_bytes_ = 0;
  std::unique_ptr<WeightSource> source_;
  CheckpointParts parts_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<TextAssets> text_;
  std::unique_ptr<Engine> engine_;  // last: ends before what it uses
};

}  // namespace tq
