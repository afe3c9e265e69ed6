// What an answer cost: speeds, memory, and how close decoding came to the memory's bandwidth.
#pragma once

#include <string>

#include "api/model_session.h"
#include "base/json.h"
#include "engine/request.h"

namespace tq {

struct RunStats {
  GenerateStats engine;
  double prompt_tokens_per_second = 0;  // of those that were computed
  double generated_tokens_per_second = 0;
  double weight_bytes_per_second = 0;  // read while decoding
  double bandwidth = 0;                // measured, bytes per second; 0: unknown
  int64_t peak_memory_bytes = 0;       // of the process so far
};

// bandwidth: of MeasureReadBandwidth, or 0.
RunStats MakeRunStats(const ModelSession& session, const GenerateStats& engine, double bandwidth);
// Several lines.
std::string StatsText(const RunStats& stats, FinishReason reason);
// One line, for a conversation.
std::string StatsLine(const RunStats& stats);
OrderedJson StatsJson(const RunStats& stats);

// Peak resident memory of this process.
int64_t PeakMemoryBytes();

}  // namespace tq
