// What the disk prompt cache saves: the first turn of a conversation computed, and the next one
// after a restart.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "base/status.h"
#include "model/model.h"

namespace tq {

struct RestartTimes {
  int64_t tokens = 0;
  double cold_seconds = 0;    // from the request to its first token
  double turn_seconds = 0;    // from the request to the end of its answer
  double flush_seconds = 0;   // what ending the engine then took
  double warm_seconds = 0;    // as cold_seconds, of the next turn on a new engine
  int64_t cached_tokens = 0;  // of the next turn's prompt
  int64_t prompt_tokens = 0;  // of the next turn
  int64_t bytes_on_disk = 0;
};

// Uses a folder below the system's temporary one and removes it. Errors: kIo, those of the engine.
Result<RestartTimes> MeasureRestart(const Model& model, Backend& backend, const KvSettings& kv,
                                    int64_t tokens, int64_t chunk);

}  // namespace tq
