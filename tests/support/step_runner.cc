#include "support/step_runner.h"

namespace tq::test {
namespace {

// The embeddings; of several equal streams the first.
class EmbeddingCopier : public HiddenObserver {
 public:
  EmbeddingCopier(int64_t hidden_size, std::vector<float>& out)
      : hidden_size_(hidden_size), out_(out) {}
  void OnHidden(size_t index, const float* hidden, int64_t num_tokens, int64_t width) override {
    if (index != 0) return;
    for (int64_t t = 0; t < num_tokens; ++t) {
      out_.insert(out_.end(), hidden + t * width, hidden + t * width + hidden_size_);
    }
  }

 private:
  int64_t hidden_size_;
  std::vector<float>& out_;
};

}  // namespace

StepRunner::StepRunner(const Loaded& loaded, int num_sequences, int64_t max_tokens,
                       const std::optional<KvSettings>& kv)
    : loaded_(loaded), pages_(static_cast<size_t>(num_sequences)) {
  const int64_t pages = KvCache::PagesFor(max_tokens);
  auto cache = KvCache::Create(loaded.model->Needs(kv.value_or(KvSettingsFor(*loaded.backend))),
                               pages * num_sequences, num_sequences);
  TQ_CHECK(cache.ok());
  // Dealt out in turn, so that no sequence has neighbouring pages.
  for (int64_t page = 0; page < pages; ++page) {
    for (auto& own : pages_) TQ_CHECK(cache->Allocate(1, own));
  }
  cache_ = std::make_unique<KvCache>(std::move(*cache));
}

StepPlan StepRunner::Plan(const std::vector<Piece>& pieces) const {
  StepPlan plan;
  for (const Piece& piece : pieces) {
    plan.sequences.push_back({.first_token = plan.num_tokens(),
                              .num_tokens = static_cast<int64_t>(piece.ids.size()),
                              .start_position = piece.start,
                              .state_slot = piece.sequence,
                              .pages = pages_[static_cast<size_t>(piece.sequence)]});
    for (size_t i = 0; i < piece.ids.size(); ++i) {
      plan.logits_tokens.push_back(static_cast<int32_t>(plan.ids.size()));
      plan.ids.push_back(piece.ids[i]);
      plan.positions.push_back(static_cast<int32_t>(piece.start + static_cast<int64_t>(i)));
    }
  }
  return plan;
}

std::vector<float> StepRunner::Run(const StepPlan& plan, std::vector<float>* embedded) {
  const ModelSpec& spec = loaded_.model->spec();
  std::vector<float> logits(plan.ids.size() * static_cast<size_t>(spec.vocab_size));
  Scratch scratch;
  StepContext step{*loaded_.backend, scratch, plan, nullptr, {}};
  std::vector<float> ignored;
  EmbeddingCopier copier(spec.hidden_size, embedded != nullptr ? *embedded : ignored);
  if (embedded != nullptr) step.observer = &copier;
  loaded_.model->Forward(step, *cache_, logits.data());
  return logits;
}

}  // namespace tq::test
