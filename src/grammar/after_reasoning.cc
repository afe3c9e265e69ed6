#include "grammar/after_reasoning.h"

#include <algorithm>
#include <utility>

namespace tq {
namespace {

class AfterReasoning final : public Constraint {
 public:
  AfterReasoning(std::unique_ptr<Constraint> inner, ThoughtMarks marks,
                 const Tokenizer& tokenizer)
      : inner_(std::move(inner)), marks_(std::move(marks)), tokenizer_(tokenizer) {
    history_.push_back({marks_.begin_id >= 0 ? Phase::kStart : Phase::kThinking, ""});
  }

  void FillMask(std::span<uint32_t> bits) override {
    switch (now().phase) {
      case Phase::kStart:
        inner_->FillMask(bits);
        Set(bits, marks_.begin_id, true);
        return;
      case Phase::kThinking:
        std::fill(bits.begin(), bits.end(), ~uint32_t{0});
        for (const int32_t id : marks_.end_ids) {
          Set(bits, id, false);
        }
        return;
      case Phase::kAnswer:
        inner_->FillMask(bits);
        return;
    }
  }

  void Accept(int32_t id) override {
    State next = now();
    if (next.phase == Phase::kStart && id == marks_.begin_id) {
      next.phase = Phase::kThinking;
    } else if (next.phase == Phase::kThinking) {
      next.tail += TextOf(id);
      if (next.tail.find(marks_.end) != std::string::npos) {
        next = {Phase::kAnswer, ""};
      } else if (next.tail.size() >= marks_.end.size()) {
        next.tail.erase(0, next.tail.size() - marks_.end.size() + 1);
      }
    } else {
      inner_->Accept(id);
      next.phase = Phase::kAnswer;
      next.of_inner = true;
    }
    history_.push_back(std::move(next));
  }

  bool IsTerminated() const override {
    return now().phase == Phase::kAnswer && inner_->IsTerminated();
  }

  void Rollback(size_t num_tokens) override {
    size_t inner = 0;
    for (; num_tokens > 0; --num_tokens) {
      inner += now().of_inner ? 1 : 0;
      history_.pop_back();
    }
    if (inner > 0) {
      inner_->Rollback(inner);
    }
  }

  std::unique_ptr<Constraint> Fork() const override {
    auto out = std::make_unique<AfterReasoning>(inner_->Fork(), marks_, tokenizer_);
    out->history_ = history_;
    return out;
  }

 private:
  enum class Phase : uint8_t { kStart, kThinking, kAnswer };
  struct State {
    Phase phase;
    std::string tail;       // of the reasoning: what may become the closing mark
    bool of_inner = false;  // the last token went to inner
  };

  const State& now() const { return history_.back(); }
  static void Set(std::span<uint32_t> bits, int32_t id, bool on) {
    const auto word = static_cast<size_t>(id) / 32;
    if (id >= 0 && word < bits.size()) {
      const uint32_t bit = uint32_t{1} << (id % 32);
      bits[word] = on ? bits[word] | bit : bits[word] & ~bit;
    }
  }
  std::string TextOf(int32_t id) const {
    return tokenizer_.IsSpecial(id) ? std::string(tokenizer_.TokenText(id))
                                    : tokenizer_.TokenBytes(id);
  }

  std::unique_ptr<Constraint> inner_;
  ThoughtMarks marks_;
  const Tokenizer& tokenizer_;
  std::vector<State> history_;  // one for each accepted token, and the first
};

}  // namespace

std::unique_ptr<Constraint> MakeAfterReasoning(std::unique_ptr<Constraint> inner,
                                               ThoughtMarks marks, const Tokenizer& tokenizer) {
  return std::make_unique<AfterReasoning>(std::move(inner), std::move(marks), tokenizer);
}

}  // namespace tq
