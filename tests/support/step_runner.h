// Steps of one or more sequences straight through Model::Forward, all logits kept.
#pragma once

#include <optional>
#include <vector>

#include "support/checkpoint.h"

namespace tq::test {

class StepRunner {
 public:
  // loaded must outlive the runner.
  StepRunner(const Loaded& loaded, int num_sequences, int64_t max_tokens,
             const std::optional<KvSettings>& kv = {});

  // New tokens of a sequence, behind its first `start`.
  struct Piece {
    int sequence;
    int64_t start;
    std::vector<int32_t> ids;
  };
  StepPlan Plan(const std::vector<Piece>& pieces) const;
  // Logits of every token. embedded, when not null: what the first block gets, [T, hidden].
  std::vector<float> Run(const StepPlan& plan, std::vector<float>* embedded = nullptr);

 private:
  const Loaded& loaded_;
  std::unique_ptr<KvCache> cache_;
  std::vector<std::vector<int32_t>> pages_;  // of each sequence
};

}  // namespace tq::test
