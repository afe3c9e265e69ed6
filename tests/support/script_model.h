// ScriptModel, for tests: a StepModel over byte_tokenizer.h that says a given text behind every
// <|assistant|>, then ends its turn. It reads the script's place from the KV pages, so caches,
// batches and prefixes have to be right.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/step_model.h"
#include "support/byte_tokenizer.h"

namespace tq::test {

class ScriptModel : public StepModel {
 public:
  using StepHook = std::function<void(const StepPlan&)>;
  static constexpr int64_t kVocab = 256 + kFirstByteId;
  static constexpr int32_t kEnd = 2;
  static constexpr int32_t kAssistant = 4;

  // script: what it says; repeated for ever when `endless`.
  ScriptModel(std::string script, bool endless, StepHook hook, int64_t max_context)
      : script_(std::move(script)),
        endless_(endless),
        hook_(std::move(hook)),
        max_context_(max_context) {}

  int64_t vocab_size() const override { return kVocab; }
  int64_t max_position_embeddings() const override { return max_context_; }
  std::vector<CacheNeeds> Needs(const KvSettings&) const override {
    return {{.paged = {{.settings = KvFormat::kF32, .num_kv_heads = 1, .head_dim = 2, .v_head_dim = 2}},
             .state_floats = 0}};
  }
  std::string Fingerprint(const KvSettings&) const override { return "script"; }

  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override {
    if (hook_) hook_(plan);
    size_t next_logits = 0;
    for (const SequencePlan& sequence : plan.sequences) {
      for (int64_t i = 0; i < sequence.num_tokens; ++i) {
        const int64_t token = sequence.first_token + i;
        const int64_t position = sequence.start_position + i;
        SetPlace(cache, sequence, position, plan.ids[static_cast<size_t>(token)]);
        if (next_logits == plan.logits_tokens.size()) continue;
        if (plan.logits_tokens[next_logits] != token) continue;
        float* row = logits + static_cast<int64_t>(next_logits) * kVocab;
        std::fill(row, row + kVocab, 0.0f);
        row[NextId(cache, sequence, position)] = 1.0f;
        ++next_logits;
      }
    }
  }

 private:
  int32_t NextId(KvCache& cache, const SequencePlan& sequence, int64_t position) const {
    auto at = static_cast<size_t>(GetPlace(cache, sequence, position));
    if (endless_) at %= script_.size();
    if (at >= script_.size()) return kEnd;
    return static_cast<unsigned char>(script_[at]) + kFirstByteId;
  }
  // How many tokens ago the last <|assistant|> was.
  static int32_t GetPlace(KvCache& cache, const SequencePlan& sequence, int64_t position) {
    int32_t place = 0;
    std::memcpy(&place, Place(cache, sequence, position), 4);
    return place;
  }
  static void SetPlace(KvCache& cache, const SequencePlan& sequence, int64_t position, int32_t id) {
    const bool begins = id == kAssistant || position == 0;
    const int32_t place = begins ? 0 : GetPlace(cache, sequence, position - 1) + 1;
    std::memcpy(Place(cache, sequence, position), &place, 4);
  }
  static std::byte* Place(KvCache& cache, const SequencePlan& sequence, int64_t position) {
    LayerCache::Paged& layer = cache.layer(0).paged[0];
    const int32_t page = sequence.pages[static_cast<size_t>(position / kPageTokens)];
    return layer.pages.data() + page * layer.layout.page_bytes() + position % kPageTokens * 4;
  }

  std::string script_;
  bool endless_;
  StepHook hook_;
  int64_t max_context_;
};

}  // namespace tq::test
