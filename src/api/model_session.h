// ModelSession: one opened checkpoint with everything that answering needs: weights on a backend,
// tokenizer, chat template, defaults, and an engine. Programs and the public API build on it.
// Thread: opened by one; engine() and the const parts may be used by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  int64_t memory_bytes = 0;           // weights, caches and workspace together; 0: no limit
  std::optional<KvSettings> kv = {};  // unset: f16, in parity mode f32; `exact` is chosen so too
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
  // As asked for; by default f32 in parity mode, so that nothing rounds, else f16.
  const KvSettings& kv() const { return kv_; }
  // For engines that are started later.
  void set_kv(const KvSettings& kv) { kv_ = kv; }
  // KV cache of one token, all layers.
  int64_t kv_bytes_per_token() const;

  // Reads tokenizer, template and defaults on the first call. Thread: one caller.
  Result<const TextAssets*> LoadText();

  // Starts the engine; kv is set here, and what FitEngine sets when there is a memory limit. With a
  // disk cache, the checkpoint is read once to name its content.
  // Errors: kOutOfMemory (no room for the context), what Engine::Create says.
  Result<Engine*> StartEngine(EngineOptions options);

 private:
  ModelSession() = default;

  int64_t memory_bytes_ = 0;
  KvSettings kv_;
  std::unique_ptr<WeightSource> source_;
  CheckpointParts parts_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<TextAssets> text_;
  std::unique_ptr<Engine> engine_;  // last: ends before what it uses
};

}  // namespace tq
