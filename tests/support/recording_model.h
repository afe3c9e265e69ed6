// A Model as the engine sees it, which keeps every row of logits that is sampled from.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/step_model.h"
#include "model/step_context.h"
#include "support/checkpoint.h"
#include "tensor/scratch.h"

namespace tq::test {

class RecordingModel final : public StepModel {
 public:
  // Position and bits.
  using Rows = std::set<std::pair<int64_t, std::string>>;

  // Both must outlive the engine; rows are complete when every answer has ended.
  RecordingModel(const Loaded& loaded, Rows& rows, std::string fingerprint = "test")
      : loaded_(loaded), rows_(rows), fingerprint_(std::move(fingerprint)) {}
  int64_t vocab_size() const override { return loaded_.model->spec().vocab_size; }
  int64_t max_position_embeddings() const override {
    return loaded_.model->spec().max_position_embeddings;
  }
  std::vector<CacheNeeds> Needs(const KvSettings& settings) const override {
    return loaded_.model->Needs(settings);
  }
  std::string Fingerprint(const KvSettings&) const override { return fingerprint_; }
  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override {
    scratch_.Reset();
    StepContext step{.backend = *loaded_.backend, .scratch = scratch_, .plan = plan, .ropes = {}};
    loaded_.model->Forward(step, cache, logits);
    const auto bytes = static_cast<size_t>(vocab_size()) * sizeof(float);
    for (size_t i = 0; i < plan.logits_tokens.size(); ++i) {
      const auto token = static_cast<size_t>(plan.logits_tokens[i]);
      const char* row = reinterpret_cast<const char*>(logits) + i * bytes;
      rows_.emplace(plan.positions[token], std::string(row, bytes));
    }
  }

 private:
  const Loaded& loaded_;
  Rows& rows_;
  std::string fingerprint_;
  Scratch scratch_;
};

}  // namespace tq::test
