#include "grammar/after_reasoning.h"

#include <gtest/gtest.h>

#include "grammar/tokenizer_for_test.h"

namespace tq {
namespace {

// Allows the letters of `text` in order, then the end.
class Exactly final : public Constraint {
 public:
  explicit Exactly(std::string text) : text_(std::move(text)) {}
  void FillMask(std::span<uint32_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0u);
    const int32_t id = at_ < text_.size() ? static_cast<uint8_t>(text_[at_]) : ByteTokenizer::kEnd;
    bits[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
  }
  void Accept(int32_t) override { ++at_; }
  bool IsTerminated() const override { return at_ > text_.size(); }
  void Rollback(size_t n) override { at_ -= n; }
  std::unique_ptr<Constraint> Fork() const override { return std::make_unique<Exactly>(*this); }

 private:
  std::string text_;
  size_t at_ = 0;
};

std::vector<int32_t> Allowed(Constraint& constraint) {
  std::vector<uint32_t> bits(9);
  constraint.FillMask(bits);
  std::vector<int32_t> out;
  for (int32_t id = 0; id < 259; ++id) {
    if ((bits[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) {
      out.push_back(id);
    }
  }
  return out;
}

class AfterReasoningTest : public testing::Test {
 protected:
  std::unique_ptr<Constraint> Make(std::vector<int32_t> begin_ids, std::string end = "</think>") {
    return MakeAfterReasoning(std::make_unique<Exactly>("{}"),
                              {std::move(begin_ids), std::move(end), {ByteTokenizer::kEnd}},
                              tokenizer_);
  }
  ByteTokenizer tokenizer_;
};

TEST_F(AfterReasoningTest, ThoughtsAreFreeAndCannotEndTheAnswer) {
  auto constraint = Make({});
  EXPECT_EQ(Allowed(*constraint).size(), 258u);  // all but the end
  constraint->Accept('[');
  constraint->Accept(ByteTokenizer::kAnswer);
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
  constraint->Accept('{');
  constraint->Accept('}');
  EXPECT_FALSE(constraint->IsTerminated());
  constraint->Accept(ByteTokenizer::kEnd);
  EXPECT_TRUE(constraint->IsTerminated());
}

TEST_F(AfterReasoningTest, ThinkingMayBeLeftOut) {
  auto constraint = Make({ByteTokenizer::kThink});
  EXPECT_EQ(Allowed(*constraint), (std::vector<int32_t>{'{', ByteTokenizer::kThink}));
  auto other = constraint->Fork();
  constraint->Accept('{');
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'}'});
  other->Accept(ByteTokenizer::kThink);
  EXPECT_EQ(Allowed(*other).size(), 258u);
}

TEST_F(AfterReasoningTest, TheMarkMayComeInPieces) {
  auto constraint = Make({}, "DONE");
  for (const char c : std::string("DODDON")) {
    constraint->Accept(c);
    EXPECT_EQ(Allowed(*constraint).size(), 258u);
  }
  constraint->Accept('E');
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
}

TEST_F(AfterReasoningTest, RollbackCrossesTheMark) {
  auto constraint = Make({});
  constraint->Accept('x');
  constraint->Accept(ByteTokenizer::kAnswer);
  constraint->Accept('{');
  constraint->Rollback(2);
  EXPECT_EQ(Allowed(*constraint).size(), 258u);
  constraint->Accept(ByteTokenizer::kAnswer);
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
}

// As a channel is opened: "{x" begins reasoning, "{}" is the answer.
TEST_F(AfterReasoningTest, TheAnswerMayBeginAsReasoningDoes) {
  auto constraint = Make({'{', 'x'});
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
  constraint->Accept('{');
  EXPECT_EQ(Allowed(*constraint), (std::vector<int32_t>{'x', '}'}));
  auto other = constraint->Fork();
  other->Accept('}');
  EXPECT_EQ(Allowed(*other), std::vector<int32_t>{ByteTokenizer::kEnd});
  other->Rollback(1);
  EXPECT_EQ(Allowed(*other), (std::vector<int32_t>{'x', '}'}));
  constraint->Accept('x');
  EXPECT_EQ(Allowed(*constraint).size(), 258u);
  constraint->Accept(ByteTokenizer::kAnswer);
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
  constraint->Accept('{');
  constraint->Rollback(3);
  EXPECT_EQ(Allowed(*constraint), (std::vector<int32_t>{'x', '}'}));
  constraint->Accept('}');
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{ByteTokenizer::kEnd});
}

TEST_F(AfterReasoningTest, ABudgetClosesReasoning) {
  const auto make = [&](int64_t budget, bool with_inner) {
    ThoughtMarks marks{.begin_ids = {ByteTokenizer::kThink}, .end = "DONE"};
    marks.budget = budget;
    marks.close_ids = {'D', 'O', 'N', 'E'};
    return MakeAfterReasoning(with_inner ? std::make_unique<Exactly>("{}") : nullptr,
                              std::move(marks), tokenizer_);
  };
  for (const bool with_inner : {false, true}) {
    auto constraint = make(2, with_inner);
    constraint->Accept(ByteTokenizer::kThink);
    constraint->Accept('a');
    EXPECT_EQ(Allowed(*constraint).size(), 259u);
    constraint->Accept('b');
    for (const char c : std::string("DONE")) {
      EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{c});
      constraint->Accept(c);
    }
    EXPECT_EQ(Allowed(*constraint).size(), with_inner ? 1u : 259u);
    EXPECT_FALSE(constraint->IsTerminated());
  }
  auto none = make(0, false);
  none->Accept(ByteTokenizer::kThink);
  EXPECT_EQ(Allowed(*none), std::vector<int32_t>{'D'});
  none->Rollback(1);
  none->Accept('x');
  EXPECT_EQ(Allowed(*none).size(), 259u) << "an answer without reasoning";
}

}  // namespace
}  // namespace tq
