// Every golden model, in both modes: a sequence's logits are the same bits alone and in company,
// for steps that mix prefill chunks and single tokens of several sequences.
#include <algorithm>

#include <gtest/gtest.h>

#include "support/checkpoint.h"
#include "support/step_runner.h"

namespace tq::test {
namespace {

using Ids = std::vector<int32_t>;

struct Case {
  std::string model;
  ActivationMode mode;
  std::string kv = {};  // "" = the mode's own
  int64_t kv_min_tokens = 0;
};

std::vector<Case> AllCases() {
  std::vector<Case> out;
  for (const std::string& model : FolderNames(TQ_TEST_DATA "/models")) {
    out.push_back({model, ActivationMode::kF32});
    out.push_back({model, ActivationMode::kInt8});
    out.push_back({model, ActivationMode::kInt8, "4/3", 1});
    out.push_back({model, ActivationMode::kInt8, "8/8"});
  }
  return out;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  std::string kv = info.param.kv.empty() ? "" : "_kv_" + info.param.kv;
  std::replace(kv.begin(), kv.end(), '/', '_');
  return info.param.model + (info.param.mode == ActivationMode::kF32 ? "_f32" : "_int8") + kv;
}

class Company : public testing::TestWithParam<Case> {};

// Cut of a sequence: tokens [begin, end) of it go into one step.
struct Cut {
  int sequence;
  size_t begin;
  size_t end;
};

Ids Prompt(int sequence, int length) {
  Ids out;
  for (int i = 0; i < length; ++i) out.push_back((i * 37 + sequence * 101) % 313 + 3);
  return out;
}

TEST_P(Company, DoesNotChangeABit) {
  const auto loaded = LoadOn(std::string(TQ_TEST_DATA "/models/") + GetParam().model, "",
                             {.num_threads = 1, .activations = GetParam().mode, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<Ids> prompts = {Prompt(0, 70), Prompt(1, 6), Prompt(2, 33)};
  // The first sequence crosses a page; the second decodes while the others are in prefill.
  const std::vector<std::vector<Cut>> steps = {{{0, 0, 30}, {1, 0, 4}},
                                               {{1, 4, 5}, {2, 0, 20}, {0, 30, 67}},
                                               {{2, 20, 33}, {0, 67, 68}, {1, 5, 6}},
                                               {{0, 68, 70}}};
  const KvSettings kv = KvSettingsFor(*loaded->backend, GetParam().kv, GetParam().kv_min_tokens);
  StepRunner together(*loaded, 3, 128, kv);
  const auto vocab = static_cast<size_t>(loaded->model->spec().vocab_size);
  std::vector<std::vector<float>> found(prompts.size());
  for (const std::vector<Cut>& step : steps) {
    std::vector<StepRunner::Piece> pieces;
    for (const Cut& cut : step) {
      const Ids& all = prompts[static_cast<size_t>(cut.sequence)];
      pieces.push_back({cut.sequence, static_cast<int64_t>(cut.begin),
                        Ids(all.begin() + static_cast<int64_t>(cut.begin),
                            all.begin() + static_cast<int64_t>(cut.end))});
    }
    const std::vector<float> logits = together.Run(together.Plan(pieces));
    auto from = logits.begin();
    for (const Cut& cut : step) {
      const auto to = from + static_cast<int64_t>((cut.end - cut.begin) * vocab);
      std::vector<float>& own = found[static_cast<size_t>(cut.sequence)];
      own.insert(own.end(), from, to);
      from = to;
    }
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    StepRunner alone(*loaded, 1, 128, kv);
    EXPECT_EQ(alone.Run(alone.Plan({{0, 0, prompts[i]}})), found[i]) << "sequence " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Company, testing::ValuesIn(AllCases()), CaseName);

}  // namespace
}  // namespace tq::test
