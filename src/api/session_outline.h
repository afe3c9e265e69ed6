// SessionOutline: what a ModelSession and its engine will be, told from headers: no weights are
// read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/model_session.h"
#include "api/text_assets.h"
#include "base/status.h"
#include "engine/engine.h"

namespace tq {

struct SessionOutline {
  TextAssets text;
  EngineOptions engine;  // as StartEngine makes them, with the lengths filled in
  std::string backend;   // "cpu/avx2"
  int64_t vocab_size = 0;
  int64_t kv_bytes_per_token = 0;
  int64_t memory_bytes = 0;  // weights, caches and workspace
};

// Errors: those of OpenSource, SizeModel, MakeBackend and LoadTextAssets; kOutOfMemory as
// ModelSession.
Result<SessionOutline> OutlineSession(const SessionOptions& options, EngineOptions engine);

// Errors: kOutOfMemory when `bytes` of `what` are more than memory_bytes (0: no limit).
Status CheckBudget(std::string_view what, int64_t bytes, int64_t memory_bytes);

}  // namespace tq
