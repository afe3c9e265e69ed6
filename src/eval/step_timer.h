// StepTimer: how long steps of a model take, without text or engine: prefill of a chunk, decoding
// of a batch at a depth.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "cache/kv_cache.h"
#include "model/model.h"

namespace tq {

class StepTimer {
 public:
  // Room for `batch` sequences of max_tokens each. The cache's memory is touched, so that reading
  // it costs what it costs in a real run. Errors: kOutOfMemory.
  static Result<std::unique_ptr<StepTimer>> Create(const Model& model, Backend& backend,
                                                   const KvSettings& kv, int64_t max_tokens,
                                                   int batch);
  // Seconds of one step: `batch` sequences with num_tokens new tokens each after `depth` old ones
  // (whose content is arbitrary). One logit per sequence. Requires: depth + num_tokens <=
  // max_tokens.
  double Step(int batch, int64_t num_tokens, int64_t depth);

 private:
  StepTimer(const Model& model, Backend& backend, KvCache cache, int64_t pages_each)
      : model_(model), backend_(backend), cache_(std::move(cache)), pages_each_(pages_each) {}

  const Model& model_;
  Backend& backend_;
  KvCache cache_;
  int64_t pages_each_;
  Scratch scratch_;
};

}  // namespace tq
