#include "quantize/stage_inputs.h"

#include "base/check.h"

namespace tq {

StageGatherer::StageGatherer(Stage stage, int64_t width, OverrideBackend& backend, ThreadPool& pool)
    : stage_(stage), width_(width), backend_(backend), pool_(pool) {
  for (const StageInput& input : stage) {
    StageSums& sums =
        sums_.try_emplace(input.name, StageSums{InputSums(input.cols), {}, {}}).first->second;
    sums.inputs.resize(static_cast<size_t>(input.cols * input.cols));
  }
}

void StageGatherer::BeginPass(bool original) {
  original_ = original;
  remaining_ = sums_.size();
}

// then(original - rounded), once both were here.
template <typename Then>
void StageGatherer::Keep(const float* x, int64_t count, std::vector<float>& kept, Then&& then) {
  const auto n = static_cast<size_t>(count);
  if (original_) {
    kept.assign(x, x + n);
    return;
  }
  TQ_CHECK(kept.size() == n);
  for (size_t i = 0; i < n; ++i) kept[i] -= x[i];
  then(kept);
}

void StageGatherer::OnInput(std::span<const std::string_view> names, const float* x,
                            int64_t num_tokens, int64_t cols) {
  if (backend_.pass_ended()) return;
  const auto found = sums_.find(names.front());
  if (found == sums_.end()) return;
  Keep(x, num_tokens * cols, kept_[found->first], [&](const std::vector<float>& difference) {
    found->second.squares.Add(x, num_tokens, pool_);
    found->second.squares.AddCross(difference.data(), cols, found->second.inputs, pool_);
  });
  if (--remaining_ != 0) return;
  if (!AddsToResidual(names.size())) {
    backend_.EndPass();
    return;
  }
  backend_.EndPassAt(stage_[0].jobs[0].weight, [this, num_tokens](const float* residual) {
    OnResidual(residual, num_tokens);
  });
}

// Whether the outputs may be what is added to a residual: then one matrix makes all of them.
bool StageGatherer::AddsToResidual(size_t num_readers) const {
  return stage_.size() == 1 && num_readers == 1 && stage_[0].jobs[0].item->rows == width_ &&
         width_ % InputSums::kPanel == 0;
}

void StageGatherer::OnResidual(const float* residual, int64_t num_tokens) {
  StageSums& sums = sums_.begin()->second;
  Keep(residual, num_tokens * width_, kept_residual_, [&](const std::vector<float>& difference) {
    if (!sums.has_residual) {
      sums.has_residual = true;
      sums.residual.resize(static_cast<size_t>(width_ * stage_[0].cols));
    }
    sums.squares.AddCross(difference.data(), width_, sums.residual, pool_);
  });
}

}  // namespace tq
