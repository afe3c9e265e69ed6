// FakeModel, for tests: a StepModel without weights. It writes every id into the KV pages and makes
// the logits from all cached ids up to the token, so a wrong page, position or order changes the
// answer. A recurrent one carries the same in its state too, and a state that is not that of the
// pages changes the answer.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/step_model.h"

namespace tq {

class FakeModel : public StepModel {
 public:
  static constexpr int64_t kVocab = 97;
  using StepHook = std::function<void(const StepPlan&)>;

  explicit FakeModel(int64_t max_context = 4096, StepHook hook = nullptr, bool recurrent = false)
      : max_context_(max_context), hook_(std::move(hook)), recurrent_(recurrent) {}

  int64_t vocab_size() const override { return kVocab; }
  int64_t max_position_embeddings() const override { return max_context_; }
  std::vector<CacheNeeds> Needs(const KvSettings&) const override {
    return {
        {.paged = {{.settings = KvFormat::kF32, .num_kv_heads = 1, .head_dim = 2, .v_head_dim = 2}},
         .state_floats = recurrent_ ? 2 : 0}};
  }
  std::string Fingerprint(const KvSettings&) const override { return "fake"; }

  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override {
    if (hook_) hook_(plan);
    size_t next_logits = 0;
    for (const SequencePlan& sequence : plan.sequences) {
      for (int64_t i = 0; i < sequence.num_tokens; ++i) {
        const int64_t token = sequence.first_token + i;
        const int64_t position = sequence.start_position + i;
        TQ_CHECK(plan.positions[static_cast<size_t>(token)] == position);
        const int32_t id = plan.ids[static_cast<size_t>(token)];
        std::memcpy(Place(cache, sequence, position), &id, 4);
        const uint64_t state = recurrent_ ? AdvanceState(cache, sequence, position, id) : 0;
        if (next_logits == plan.logits_tokens.size()) continue;
        if (plan.logits_tokens[next_logits] != token) continue;
        uint64_t hash = kSeed;
        for (int64_t p = 0; p <= position; ++p) {
          int32_t cached = 0;
          std::memcpy(&cached, Place(cache, sequence, p), 4);
          hash = Mix(hash, cached);
        }
        if (recurrent_ && state != hash) hash = ~hash;
        FillLogits(hash, {logits + next_logits * kVocab, size_t{kVocab}});
        ++next_logits;
      }
    }
    TQ_CHECK(next_logits == plan.logits_tokens.size());
  }

  // One sequence, alone, without pages.
  static std::vector<float> LogitsAfter(std::span<const int32_t> ids) {
    uint64_t hash = kSeed;
    for (const int32_t id : ids) hash = Mix(hash, id);
    std::vector<float> logits(kVocab);
    FillLogits(hash, logits);
    return logits;
  }

 private:
  static constexpr uint64_t kSeed = 0x243f6a8885a308d3;

  static uint64_t Mix(uint64_t hash, int32_t id) {
    hash = (hash ^ static_cast<uint32_t>(id)) * 0x9E3779B97F4A7C15;
    return hash ^ (hash >> 29);
  }
  static void FillLogits(uint64_t hash, std::span<float> logits) {
    for (size_t id = 0; id < logits.size(); ++id) {
      logits[id] = static_cast<float>(Mix(hash, static_cast<int32_t>(id)) >> 40) * 0x1.0p-21f;
    }
  }
  static uint64_t AdvanceState(KvCache& cache, const SequencePlan& sequence, int64_t position,
                               int32_t id) {
    const StateRef states = cache.layer(0).State(0);
    float* slot = states.base + sequence.state_slot * states.state_stride;
    uint64_t state = kSeed;
    if (position > 0) std::memcpy(&state, slot, sizeof(state));
    state = Mix(state, id);
    std::memcpy(slot, &state, sizeof(state));
    return state;
  }
  static std::byte* Place(KvCache& cache, const SequencePlan& sequence, int64_t position) {
    LayerCache::Paged& layer = cache.layer(0).paged[0];
    const int32_t page = sequence.pages[static_cast<size_t>(position / kPageTokens)];
    return layer.pages.data() + page * layer.layout.page_bytes() + position % kPageTokens * 4;
  }

  int64_t max_context_;
  StepHook hook_;
  bool recurrent_;
};

}  // namespace tq
