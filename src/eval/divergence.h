// Divergence: how far a model's predictions are from those of a reference (the checkpoint that it
// was converted from), over a text.
#pragma once

#include <span>

#include "eval/perplexity.h"

namespace tq {

struct DivergenceReport {
  double kl = 0;              // mean of KL(reference || model) over all tokens, natural logarithm
  double top1_agreement = 0;  // share of the tokens where both rank the same id first
  double perplexity = 0;      // of the model, of the reference: as Perplexity gives them
  double reference_perplexity = 0;
  int64_t chunks = 0;
  int64_t tokens = 0;
  double seconds = 0;
};

// KL(softmax(reference) || softmax(other)), in f64. Requires: equal sizes, not empty.
double KlDivergence(std::span<const float> reference, std::span<const float> other);

// Chunks and errors as in Perplexity; kInvalidArgument also when the vocabularies differ. Each
// model runs on a backend of its own, or on the same. Memory: the logits of one chunk of both.
Result<DivergenceReport> Divergence(const Model& model, Backend& backend, const Model& reference,
                                    Backend& reference_backend, std::span<const int32_t> ids,
                                    const PerplexityOptions& options);

}  // namespace tq
