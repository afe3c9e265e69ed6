// The forward pass: embed, then each block, then the head for the tokens whose logits are wanted.
#include <cstring>

#include "model/model.h"
#include "model/rope.h"

namespace tq {
namespace {

// Rows `tokens` of x [T, n], one after another.
const float* GatherRows(const std::vector<int32_t>& tokens, const float* x, int64_t n,
                        int64_t num_tokens, Scratch& scratch) {
  if (static_cast<int64_t>(tokens.size()) == num_tokens) return x;
  float* out = scratch.Alloc<float>(tokens.size() * static_cast<size_t>(n));
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::memcpy(out + static_cast<int64_t>(i) * n, x + tokens[i] * n,
                static_cast<size_t>(n) * sizeof(float));
  }
  return out;
}

}  // namespace

void Model::Forward(StepContext& step, KvCache& cache, float* logits) const {
  const ScratchScope scope(step.scratch);
  const StepPlan& plan = step.plan;
  const int64_t num_tokens = plan.num_tokens();
  const int64_t hidden = spec_.hidden_size;
  step.ropes.clear();
  for (const RopeSpec& rope : spec_.ropes)
    step.ropes.push_back(MakeRopeTable(rope, plan, step.scratch));

  float* x = step.scratch.Alloc<float>(static_cast<size_t>(num_tokens * hidden));
  step.backend.Embed({embed_.get(), plan.ids, spec_.embed_scale, x});
  if (step.observer != nullptr) step.observer->OnHidden(0, x, num_tokens, hidden);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].Forward(step, x, cache.layer(i));
    if (step.observer != nullptr) step.observer->OnHidden(i + 1, x, num_tokens, hidden);
  }
  if (plan.logits_tokens.empty()) return;

  const auto num_logits = static_cast<int64_t>(plan.logits_tokens.size());
  const float* last = GatherRows(plan.logits_tokens, x, hidden, num_tokens, step.scratch);
  float* normed = step.scratch.Alloc<float>(static_cast<size_t>(num_logits * hidden));
  step.backend.RmsNorm({.x = last,
                        .w = final_norm_.data(),
                        .plus_one = spec_.final_norm.plus_one,
                        .eps = spec_.final_norm.eps,
                        .out = normed,
                        .num_rows = num_logits,
                        .n = hidden});
  if (step.input_observer != nullptr && lm_head_ != nullptr) {
    step.input_observer->OnInput({"lm_head"}, normed, num_logits, hidden);
  }
  const Weight* head = lm_head_ != nullptr ? lm_head_.get() : embed_.get();
  const MatMulArgs out[] = {{head, normed, nullptr, logits, num_logits}};
  step.backend.MatMul(out, step.scratch);
  if (spec_.final_logit_softcapping != 0) {
    step.backend.Softcap({logits, spec_.final_logit_softcapping, num_logits * spec_.vocab_size});
  }
}

}  // namespace tq
