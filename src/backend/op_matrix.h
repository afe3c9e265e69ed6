// The op matrix: an op gives the same bits on every backend, instruction set and thread count. For
// tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/test_matrix.h"

namespace tq {

using Op = std::function<std::vector<float>(Backend&)>;

inline std::unique_ptr<Backend> MakeTestBackend(const std::string& name, const std::string& isa,
                                                int threads) {
  BackendOptions options;
  options.num_threads = threads;
  options.isa = isa;
  return std::move(MakeBackend(name, options)).value();
}

inline std::unique_ptr<Backend> MakeRef() { return MakeTestBackend("ref", "scalar", 2); }

// Index of the first element with other bits, -1 when there is none.
inline int64_t FirstDifferentBits(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], 4) != 0) return static_cast<int64_t>(i);
  }
  return a.size() == b.size() ? -1 : static_cast<int64_t>(std::min(a.size(), b.size()));
}

// Runs `op` on every backend choice with 1, 2 and 3 threads; returns what all of them gave.
inline std::vector<float> ExpectSameBits(const std::string& what, const Op& op) {
  std::vector<BackendChoice> choices = AvailableBackends();
  std::reverse(choices.begin(), choices.end());  // ref first
  std::vector<float> expected;
  for (const BackendChoice& choice : choices) {
    for (const int threads : {1, 2, 3}) {
      const std::vector<float> found = op(*MakeTestBackend(choice.backend, choice.isa, threads));
      if (expected.empty()) expected = found;
      const int64_t i = FirstDifferentBits(expected, found);
      EXPECT_EQ(i, -1) << what << " " << choice.backend << "/" << choice.isa << " threads "
                       << threads << ": expected " << expected[i < 0 ? 0 : i] << ", found "
                       << found[i < 0 ? 0 : i];
      if (i != -1) return expected;
    }
  }
  return expected;
}

// A step of sequences with these new tokens each, behind `starts` older ones; slots fall.
inline StepPlan MakePlan(const std::vector<int64_t>& num_tokens,
                         const std::vector<int64_t>& starts = {}) {
  StepPlan plan;
  for (size_t s = 0; s < num_tokens.size(); ++s) {
    SequencePlan sequence;
    sequence.first_token = plan.num_tokens();
    sequence.num_tokens = num_tokens[s];
    sequence.start_position = starts.empty() ? 0 : starts[s];
    sequence.state_slot = static_cast<int32_t>(num_tokens.size() - 1 - s);
    plan.ids.resize(plan.ids.size() + static_cast<size_t>(num_tokens[s]));
    plan.sequences.push_back(sequence);
  }
  return plan;
}

// Sequences with a cache: `fill` writes all their positions, `step` is about the last num_tokens of
// each. Pages are dealt out in falling order, so that none lies where its number says.
struct PagedPlans {
  StepPlan fill;
  StepPlan step;
  int32_t num_pages = 0;
};
inline PagedPlans MakePagedPlans(const std::vector<int64_t>& contexts,
                                 const std::vector<int64_t>& num_tokens) {
  PagedPlans plans;
  plans.fill = MakePlan(contexts);
  std::vector<int64_t> starts;
  for (size_t s = 0; s < contexts.size(); ++s) starts.push_back(contexts[s] - num_tokens[s]);
  plans.step = MakePlan(num_tokens, starts);
  for (size_t s = 0; s < contexts.size(); ++s) {
    std::vector<int32_t>& pages = plans.fill.sequences[s].pages;
    for (int64_t page = 0; page * kPageTokens < contexts[s]; ++page)
      pages.push_back(plans.num_pages++);
    std::reverse(pages.begin(), pages.end());
    plans.step.sequences[s].pages = pages;
  }
  return plans;
}

inline std::vector<float> Concat(const std::vector<std::vector<float>>& parts) {
  std::vector<float> all;
  for (const std::vector<float>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace tq
