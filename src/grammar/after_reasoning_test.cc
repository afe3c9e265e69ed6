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
  std::unique_ptr<Constraint> Make(int32_t begin_id, std::string end = "</think>") {
    return MakeAfterReasoning(std::make_unique<Exactly>("{}"),
                              {begin_id, std::move(end), {ByteTokenizer::kEnd}}, tokenizer_);
  }
  ByteTokenizer tokenizer_;
};

TEST_F(AfterReasoningTest, ThoughtsAreFreeAndCannotEndTheAnswer) {
  auto constraint = Make(-1);
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
  auto constraint = Make(ByteTokenizer::kThink);
  EXPECT_EQ(Allowed(*constraint), (std::vector<int32_t>{'{', ByteTokenizer::kThink}));
  auto other = constraint->Fork();
  constraint->Accept('{');
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'}'});
  other->Accept(ByteTokenizer::kThink);
  EXPECT_EQ(Allowed(*other).size(), 258u);
}

TEST_F(AfterReasoningTest, TheMarkMayComeInPieces) {
  auto constraint = Make(-1, "DONE");
  for (const char c : std::string("DODDON")) {
    constraint->Accept(c);
    EXPECT_EQ(Allowed(*constraint).size(), 258u);
  }
  constraint->Accept('E');
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
}

TEST_F(AfterReasoningTest, RollbackCrossesTheMark) {
  auto constraint = Make(-1);
  constraint->Accept('x');
  constraint->Accept(ByteTokenizer::kAnswer);
  constraint->Accept('{');
  constraint->Rollback(2);
  EXPECT_EQ(Allowed(*constraint).size(), 258u);
  constraint->Accept(ByteTokenizer::kAnswer);
  EXPECT_EQ(Allowed(*constraint), std::vector<int32_t>{'{'});
}

}  // namespace
}  // namespace tq
