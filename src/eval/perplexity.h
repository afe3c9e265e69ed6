// Perplexity of a text: how well a model predicts each token from those before it in its chunk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/status.h"
#include "model/model.h"

namespace tq {

struct PerplexityOptions {
  int64_t seq_len = 512;      // tokens per chunk; the first of each is context only
  int64_t num_samples = 512;  // chunks at most
  int64_t prefill_chunk = 0;  // tokens per step; 0: what keeps the logits small
  KvSettings kv = KvFormat::kF16;
  std::optional<KvSettings> reference_kv = {};  // in Divergence; unset: kv
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> progress;
};

struct PerplexityReport {
  double perplexity = 0;
  double mean_nll = 0;  // natural logarithm
  int64_t chunks = 0;
  int64_t tokens = 0;   // run through the model
  int64_t targets = 0;  // predicted
  double seconds = 0;
};

// Lines with something else than white space, joined by two newlines: the preparation of a text
// file.
std::string JoinNonBlankLines(std::string_view text);

// -log softmax(logits)[id], in f64.
double NegativeLogLikelihood(std::span<const float> logits, int32_t id);

// Whole chunks in a text of num_ids, at most num_samples. Errors: kInvalidArgument when there is
// none.
Result<int64_t> CountChunks(int64_t num_ids, const PerplexityOptions& options);

// Non-overlapping chunks of seq_len ids from the start; a shorter rest is left out.
// Errors: kInvalidArgument (fewer ids than one chunk, ids beyond the vocabulary, a chunk longer
// than the context), kCancelled, kOutOfMemory.
Result<PerplexityReport> Perplexity(const Model& model, Backend& backend,
                                    std::span<const int32_t> ids, const PerplexityOptions& options);

}  // namespace tq
