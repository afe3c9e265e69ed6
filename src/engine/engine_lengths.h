// What Engine::Create makes of lengths that are not given.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/engine.h"

namespace tq {

// Replaces the zeros of max_context and kv_tokens, for a model of so many positions. Errors:
// kInvalidArgument.
Status FillInLengths(int64_t model_context, EngineOptions& options);

}  // namespace tq
