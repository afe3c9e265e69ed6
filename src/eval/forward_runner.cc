#include "eval/forward_runner.h"

#include <algorithm>
#include <string>

namespace tq {
namespace {

class HiddenCopier : public HiddenObserver {
 public:
  explicit HiddenCopier(std::vector<std::vector<float>>& out) : out_(out) {}
  void OnHidden(size_t index, const float* hidden, int64_t num_tokens,
                int64_t hidden_size) override {
    if (out_.size() <= index) out_.resize(index + 1);
    out_[index].insert(out_[index].end(), hidden, hidden + num_tokens * hidden_size);
  }

 private:
  std::vector<std::vector<float>>& out_;
};

}  // namespace

Result<std::unique_ptr<ForwardRunner>> ForwardRunner::Create(const Model& model, Backend& backend,
                                                             const KvSettings& kv,
                                                             int64_t max_tokens) {
  if (max_tokens < 1 || max_tokens > model.spec().max_position_embeddings) {
    return InvalidArgument("expected 1.." + std::to_string(model.spec().max_position_embeddings) +
                           " tokens (the model's context), found " + std::to_string(max_tokens));
  }
  TQ_ASSIGN_OR_RETURN(KvCache cache,
                      KvCache::Create(model.Needs(kv), KvCache::PagesFor(max_tokens), 1));
  std::unique_ptr<ForwardRunner> runner(
      new ForwardRunner(model, backend, std::move(cache), max_tokens));
  TQ_CHECK(runner->cache_.Allocate(runner->cache_.num_pages(), runner->pages_));
  return runner;
}

Status ForwardRunner::Append(std::span<const int32_t> ids, int64_t chunk,
                             std::vector<float>* logits, std::vector<std::vector<float>>* hidden) {
  const int64_t vocab = model_.spec().vocab_size;
  const auto n = static_cast<int64_t>(ids.size());
  if (position_ + n > max_tokens_) {
    return InvalidArgument("expected at most " + std::to_string(max_tokens_) + " tokens, found " +
                           std::to_string(position_ + n));
  }
  for (int64_t i = 0; i < n; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    if (id < 0 || id >= vocab) {
      return InvalidArgument("token " + std::to_string(i) +
                             ": expected an id below the vocabulary's " + std::to_string(vocab) +
                             ", found " + std::to_string(id));
    }
  }
  if (chunk <= 0) chunk = std::max<int64_t>(n, 1);
  logits->resize(static_cast<size_t>(n * vocab));
  if (hidden != nullptr) hidden->clear();
  for (int64_t begin = 0; begin < n; begin += chunk) {
    const int64_t count = std::min(chunk, n - begin);
    StepPlan plan;
    for (int64_t i = 0; i < count; ++i) {
      plan.ids.push_back(ids[static_cast<size_t>(begin + i)]);
      plan.positions.push_back(static_cast<int32_t>(position_ + i));
      plan.logits_tokens.push_back(static_cast<int32_t>(i));
    }
    plan.sequences.push_back(
        {.first_token = 0, .num_tokens = count, .start_position = position_, .pages = pages_});
    scratch_.Reset();
    StepContext step{backend_, scratch_, plan, nullptr, {}};
    std::vector<std::vector<float>> piece;
    HiddenCopier copier(hidden != nullptr ? *hidden : piece);
    if (hidden != nullptr) step.observer = &copier;
    model_.Forward(step, cache_, logits->data() + begin * vocab);
    position_ += count;
  }
  return Status::Ok();
}

}  // namespace tq
