#include "eval/task_suite.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include <gtest/gtest.h>

#include "engine/fake_model.h"
#include "sampling/sampler.h"

namespace tq {
namespace {

TEST(TaskSuite, OnlyWhatFollowsAThoughtIsTheAnswer) {
  EXPECT_EQ(AnswerPart("plain"), "plain");
  EXPECT_EQ(AnswerPart("<think>\n1 + 1\n</think>\n\n2"), "2");
  EXPECT_EQ(AnswerPart("</think>a</think>\n b\n"), " b\n");
  EXPECT_EQ(AnswerPart("a</think>\n\n"), "");
}

// Every id is a letter: 0 is "A".
class Letters final : public Tokenizer {
 public:
  std::vector<int32_t> Encode(std::string_view, const EncodeOptions&) const override { return {}; }
  std::string Decode(std::span<const int32_t> ids, bool) const override {
    std::string text;
    for (const int32_t id : ids) text += static_cast<char>('A' + id % 26);
    return text;
  }
  std::unique_ptr<DecodeStream> StartDecode(bool) const override { return nullptr; }
  std::string TokenBytes(int32_t) const override { return ""; }
  int32_t vocab_size() const override { return FakeModel::kVocab; }
  bool IsSpecial(int32_t) const override { return false; }
  std::string_view TokenText(int32_t) const override { return ""; }
  int32_t TokenId(std::string_view) const override { return -1; }
};

TEST(TaskSuite, ScoresExactAnswersByKind) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(), {.max_sequences = 3});
  ASSERT_TRUE(engine.ok());
  const Letters letters;
  std::vector<Task> tasks;
  for (int32_t i = 0; i < 20; ++i) {
    Task& task = tasks.emplace_back();
    task.kind = i % 2 == 0 ? "even" : "odd";
    task.prompt = {1, 2, 3, i};
    // The answer by hand: the best id, four times.
    std::vector<int32_t> ids = task.prompt;
    for (int k = 0; k < 4; ++k) {
      const std::vector<float> logits = FakeModel::LogitsAfter(ids);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      ids.push_back(static_cast<int32_t>(best));
    }
    task.answer = letters.Decode(std::span(ids).subspan(4), false);
    if (i == 5 || i == 7) task.answer += "?";
  }
  TaskOptions options;
  options.max_tokens = 4;
  int64_t last = 0;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 20);
    EXPECT_EQ(done, ++last);
  };
  const auto report = ScoreTasks(**engine, letters, tasks, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->all.right, 18);
  EXPECT_EQ(report->all.count, 20);
  EXPECT_EQ(report->kinds.at("even").right, 10);
  EXPECT_EQ(report->kinds.at("odd").right, 8);
  EXPECT_EQ(report->generated_tokens, 80);
  ASSERT_EQ(report->misses.size(), 2u);
  EXPECT_EQ(report->misses[1].task, 7u);
  EXPECT_EQ(report->misses[1].said + "?", tasks[7].answer);
  const std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  EXPECT_EQ(ScoreTasks(**engine, letters, tasks, options).status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace tq
