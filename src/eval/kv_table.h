// What compressed KV caches cost in quality: each setting against the exact cache of the same
// model, over a text.
#pragma once

#include <span>
#include <vector>

#include "eval/perplexity.h"

namespace tq {

struct KvRow {
  KvSettings kv;
  double bytes_per_token = 0;  // all layers, without exact pages
  double perplexity = 0;
  double kl = 0;              // mean of KL(exact || this) over all tokens, natural logarithm
  double top1_agreement = 0;  // share of the tokens where both rank the same id first
};

struct KvTable {
  std::vector<KvRow> rows;  // the exact cache (options.kv), then the settings
  int64_t chunks = 0;
  int64_t tokens = 0;  // of the text
  double seconds = 0;
};

// Chunks, progress and errors as in Perplexity. Memory: the logits of a step, twice.
Result<KvTable> EvaluateKv(const Model& model, Backend& backend, std::span<const int32_t> ids,
                           std::span<const KvSettings> settings, const PerplexityOptions& options);

}  // namespace tq
