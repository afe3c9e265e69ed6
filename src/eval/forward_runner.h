// ForwardRunner: one sequence through a model, with all logits, for comparisons with a reference
// and for perplexity. Not the serving path (engine/), but the same forward pass and caches. Thread:
// one caller.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "cache/kv_cache.h"
#include "model/model.h"

namespace tq {

class ForwardRunner {
 public:
  // max_tokens bounds the length of the sequence. model and backend must outlive the runner.
  // Errors: kInvalidArgument (longer than the model's context), kOutOfMemory.
  static Result<std::unique_ptr<ForwardRunner>> Create(const Model& model, Backend& backend,
                                                       const KvSettings& kv, int64_t max_tokens);

  // Appends ids to the sequence in pieces of `chunk` tokens (0: all at once). logits gets
  // [ids.size(), vocab_size]; hidden, when not null, [num_layers + 1][ids.size() * hidden_size]:
  // embedding output, then each layer's. Errors: kInvalidArgument (an id beyond the vocabulary, too
  // many tokens).
  Status Append(std::span<const int32_t> ids, int64_t chunk, std::vector<float>* logits,
                std::vector<std::vector<float>>* hidden = nullptr);
  // Starts a new sequence.
  void Reset() { position_ = 0; }
  int64_t position() const { return position_; }

 private:
  ForwardRunner(const Model& model, Backend& backend, KvCache cache, int64_t max_tokens)
      : model_(model), backend_(backend), cache_(std::move(cache)), max_tokens_(max_tokens) {}

  const Model& model_;
  Backend& backend_;
  KvCache cache_;
  int64_t max_tokens_;
  std::vector<int32_t> pages_;
  Scratch scratch_;
  int64_t position_ = 0;
};

}  // namespace tq
