// All logits of one sequence, written to a safetensors file for a comparison with a reference.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backend/backend.h"
#include "base/status.h"
#include "model/model.h"

namespace tq {

struct LogitsOptions {
  bool hidden = false;        // also the hidden states: embedding output, then each layer's
  int64_t prefill_chunk = 0;  // tokens per step; 0: what keeps the logits small
  KvSettings kv = KvFormat::kF16;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> progress;
};

// f32 "logits" [ids, vocab_size] and, when wanted, "hidden" [layers + 1, ids, hidden_size]. The
// file appears whole or not at all; an older one is replaced. Errors: kInvalidArgument (an id
// beyond the vocabulary, longer than the context), kIo, kCancelled, kOutOfMemory.
Status WriteLogits(const Model& model, Backend& backend, std::span<const int32_t> ids,
                   const std::string& path, const LogitsOptions& options);

}  // namespace tq
