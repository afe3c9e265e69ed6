// The forward pass: embed, then each block, then the head for the tokens whose logits are wanted.
#include <algorithm>

#include "base/check.h"
#include "model/model.h"
#include "model/rope.h"

namespace tq {
namespace {

// Plans are made by our own schedulers: one that does not fit is a bug.
void CheckInputs(const StepPlan& plan, int64_t hidden, bool conditions) {
  const int64_t num_tokens = plan.num_tokens();
  TQ_CHECK(plan.axis_positions.empty() ||
           static_cast<int64_t>(plan.axis_positions.size()) == kPositionAxes * num_tokens);
  for (const EmbeddingSpan& span : plan.embeddings) {
    TQ_CHECK(span.first_token >= 0 && span.num_tokens >= 0 &&
             span.num_tokens <= num_tokens - span.first_token);
    TQ_CHECK(static_cast<int64_t>(span.rows.size()) == span.num_tokens * hidden);
    TQ_CHECK(span.use == EmbeddingUse::kReplace || conditions);
  }
}

// The rows of the step's spans of that use, each at its tokens' place in x [T, hidden]. False when
// there are none.
bool PlaceEmbeddings(StepContext& step, EmbeddingUse use, int64_t hidden, float* x) {
  bool any = false;
  for (const EmbeddingSpan& span : step.plan.embeddings) {
    if (span.use != use) continue;
    any = true;
    step.backend.CopyRows(
        {span.rows.data(), hidden, x + span.first_token * hidden, hidden, span.num_tokens, hidden});
  }
  return any;
}

}  // namespace

// The residual after the last block, as the head's input: [T, hidden], not normed.
const float* Model::FinalHidden(StepContext& step, const Residuals& residuals) const {
  const int64_t n = step.num_tokens() * spec_.hidden_size;
  if (parts_.final_streams) {
    float* out = step.Floats(n);
    parts_.final_streams->Read(step, residuals.x, out, nullptr);
    return out;
  }
  if (parts_.final_mix) {
    float* out = step.Floats(n);
    parts_.final_mix->Apply(step, residuals, out);
    return out;
  }
  return residuals.x;
}

Residuals Model::Embed(StepContext& step) const {
  const int64_t rows = step.num_tokens();
  const int64_t hidden = spec_.hidden_size;
  Residuals residuals;
  residuals.x = step.Floats(rows * hidden * spec_.num_streams);
  const bool streams = spec_.num_streams > 1;
  float* x = streams ? step.Floats(rows * hidden) : residuals.x;
  step.backend.Embed({parts_.embed.get(), step.plan.ids, spec_.embed_scale, x});
  if (spec_.embed_norm) Norm{*spec_.embed_norm, {}}.Apply(step, x, x, rows, hidden);
  PlaceEmbeddings(step, EmbeddingUse::kReplace, hidden, x);
  if (parts_.per_layer) residuals.per_layer_inputs = parts_.per_layer->Compute(step, x);
  if (parts_.self_conditioning && !step.plan.causal) {
    const ScratchScope scope(step.scratch);
    float* last = step.Floats(rows * hidden);
    std::fill_n(last, rows * hidden, 0.0f);
    const bool any = PlaceEmbeddings(step, EmbeddingUse::kCondition, hidden, last);
    parts_.self_conditioning->Apply(step, any ? last : nullptr, x);
  }
  for (int s = 0; streams && s < spec_.num_streams; ++s) {
    step.backend.CopyRows(
        {x, hidden, residuals.x + s * hidden, spec_.num_streams * hidden, rows, hidden});
  }
  return residuals;
}

void Model::BeginStep(StepContext& step) const {
  const StepPlan& plan = step.plan;
  CheckInputs(plan, spec_.hidden_size, parts_.self_conditioning && !plan.causal);
  step.rope_specs = &spec_.ropes;
  step.ropes.clear();
  for (const RopeSpec& rope : spec_.ropes) {
    const bool one_axis = rope.axes.empty() || plan.axis_positions.empty();
    step.ropes.push_back(MakeRopeTable(rope, one_axis ? plan.positions : plan.axis_positions,
                                       plan.num_tokens(), step.scratch));
  }
}

bool Model::blocks_stand_alone() const {
  return std::none_of(spec_.blocks.begin(), spec_.blocks.end(), [](const BlockSpec& block) {
    const auto* attention = std::get_if<AttentionSpec>(&block.mixer);
    return block.residual == Residual::kAttend ||
           (attention != nullptr && attention->kv_layer >= 0);
  });
}

void Model::EmbedTokens(StepContext& step, float* x) const {
  const ScratchScope scope(step.scratch);
  BeginStep(step);
  std::copy_n(Embed(step).x, step.num_tokens() * residual_width(), x);
}

void Model::ForwardBlock(StepContext& step, KvCache& cache, size_t index, float* x) const {
  const ScratchScope scope(step.scratch);
  BeginStep(step);
  Residuals residuals;
  if (parts_.per_layer) residuals.per_layer_inputs = Embed(step).per_layer_inputs;
  residuals.x = x;
  parts_.blocks[index]->Forward(step, residuals, cache, index);
}

void Model::HeadInput(StepContext& step, const float* final_hidden, std::span<const int32_t> tokens,
                      float* out) const {
  const int64_t hidden = spec_.hidden_size;
  const auto count = static_cast<int64_t>(tokens.size());
  step.backend.CopyRows({final_hidden, hidden, out, hidden, count, hidden, tokens.data()});
  if (!parts_.final_streams) parts_.final_norm.Apply(step, out, out, count, hidden);
}

void Model::Head(StepContext& step, const float* head_in, int64_t num_rows, float* logits) const {
  if (step.input_observer != nullptr && parts_.lm_head != nullptr) {
    constexpr std::string_view kName = "lm_head";
    step.input_observer->OnInput({&kName, 1}, head_in, num_rows, spec_.hidden_size);
  }
  const Weight* head = parts_.lm_head != nullptr ? parts_.lm_head.get() : parts_.embed.get();
  const MatMulArgs out[] = {{head, head_in, nullptr, logits, num_rows}};
  step.backend.MatMul(out, step.scratch);
  const int64_t n = num_rows * spec_.vocab_size;
  if (spec_.head.logit_scale != 1.0f) {
    step.backend.Map({.x = logits,
                      .x_stride = n,
                      .out = logits,
                      .num_rows = 1,
                      .n = n,
                      .scale = spec_.head.logit_scale});
  }
  if (spec_.head.final_logit_softcapping != 0) {
    step.backend.Softcap({logits, spec_.head.final_logit_softcapping, n});
  }
}

void Model::Forward(StepContext& step, KvCache& cache, float* logits) const {
  ForwardHidden(step, cache, logits, {});
}

void Model::ForwardHidden(StepContext& step, KvCache& cache, float* logits,
                          const HiddenRows& hidden) const {
  const ScratchScope scope(step.scratch);
  const StepPlan& plan = step.plan;
  const int64_t num_tokens = plan.num_tokens();
  BeginStep(step);

  Residuals residuals = Embed(step);
  if (step.observer != nullptr)
    step.observer->OnHidden(0, residuals.x, num_tokens, residual_width());
  for (size_t i = 0; i < parts_.blocks.size(); ++i) {
    parts_.blocks[i]->Forward(step, residuals, cache, i);
    if (step.observer != nullptr)
      step.observer->OnHidden(i + 1, residuals.x, num_tokens, residual_width());
  }
  if (plan.logits_tokens.empty() && hidden.tokens.empty()) return;

  const float* final_hidden = FinalHidden(step, residuals);
  if (!hidden.tokens.empty()) HeadInput(step, final_hidden, hidden.tokens, hidden.rows);
  if (plan.logits_tokens.empty()) return;
  const auto num_logits = static_cast<int64_t>(plan.logits_tokens.size());
  float* head_in = step.Floats(num_logits * spec_.hidden_size);
  HeadInput(step, final_hidden, plan.logits_tokens, head_in);
  Head(step, head_in, num_logits, logits);
}

}  // namespace tq
