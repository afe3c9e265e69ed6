#include "grammar/after_reasoning.h"

#include <algorithm>
#include <utility>

#include "grammar/mask_bits.h"

namespace tq {
namespace {

class AfterReasoning final : public Constraint {
 public:
  AfterReasoning(std::unique_ptr<Constraint> inner, ThoughtMarks marks, const Tokenizer& tokenizer)
      : inner_(std::move(inner)), marks_(std::move(marks)), tokenizer_(tokenizer) {
    State first;
    if (marks_.begin_ids.empty()) first.phase = Phase::kThinking;
    history_.push_back(std::move(first));
  }

  void FillMask(std::span<uint32_t> bits) override {
    scratch_.resize(bits.size());
    const State& state = now();
    switch (state.phase) {
      case Phase::kStart:
        if (state.inner == num_tokens()) {
          FillInner(bits);
        } else {
          ClearMask(bits);
        }
        if (state.begun == num_tokens()) SetMaskBit(bits, marks_.begin_ids[state.begun], true);
        return;
      case Phase::kThinking:
        if (MustClose(state)) {
          ClearMask(bits);
          SetMaskBit(bits, marks_.close_ids[state.closing], true);
          return;
        }
        FillMaskWhole(bits);
        for (const int32_t id : marks_.end_ids) SetMaskBit(bits, id, false);
        return;
      case Phase::kAnswer:
        FillInner(bits);
        return;
    }
  }

  void Accept(int32_t id) override {
    State next = now();
    next.id = id;
    if (next.phase == Phase::kStart) {
      Begin(id, next);
    } else if (next.phase == Phase::kThinking) {
      Think(id, next);
    } else {
      AcceptInner(id, next);
    }
    history_.push_back(std::move(next));
  }

  bool IsTerminated() const override {
    if (inner_ == nullptr || now().phase == Phase::kThinking) return false;
    return now().inner > 0 && inner_->IsTerminated();
  }

  bool TakesBest() const override {
    const bool in_line = now().phase == Phase::kAnswer ||
                         (now().phase == Phase::kStart && now().inner == num_tokens());
    return in_line && inner_ != nullptr && inner_->TakesBest();
  }

  void Rollback(size_t num_tokens) override {
    const State before = now();
    history_.resize(history_.size() - num_tokens);
    const State& state = now();
    if (inner_ == nullptr) return;
    // What came before reasoning may have been tried on inner, and was then taken back.
    const bool same = before.has_thought == state.has_thought;
    const size_t kept = same ? std::min(before.inner, state.inner) : 0;
    if (before.inner > kept) inner_->Rollback(before.inner - kept);
    for (size_t i = kept; i < state.inner; ++i) inner_->Accept(history_[i + 1].id);
  }

  std::unique_ptr<Constraint> Fork() const override {
    auto out = std::make_unique<AfterReasoning>(inner_ == nullptr ? nullptr : inner_->Fork(),
                                                marks_, tokenizer_);
    out->history_ = history_;
    return out;
  }

 private:
  enum class Phase : uint8_t { kStart, kThinking, kAnswer };
  struct State {
    Phase phase = Phase::kStart;
    bool has_thought = false;
    size_t begun = 0;     // kStart: how many of begin_ids have come
    size_t inner = 0;     // tokens that inner has
    int64_t thought = 0;  // tokens of reasoning
    size_t closing = 0;   // how many of close_ids have come
    std::string tail;     // of the reasoning: what may become the closing mark
    int32_t id = 0;       // the last token
  };

  const State& now() const { return history_.back(); }
  size_t num_tokens() const { return history_.size() - 1; }
  bool MustClose(const State& state) const {
    return marks_.budget >= 0 && state.thought >= marks_.budget;
  }

  void FillInner(std::span<uint32_t> bits) {
    if (inner_ == nullptr) {
      FillMaskWhole(bits);
    } else {
      inner_->FillMask(bits);
    }
  }

  void AcceptInner(int32_t id, State& next) {
    if (inner_ != nullptr) inner_->Accept(id);
    ++next.inner;
  }

  // Until it is clear, the answer may be both: reasoning, and what inner allows.
  void Begin(int32_t id, State& next) {
    const bool begins = next.begun == num_tokens() && id == marks_.begin_ids[next.begun];
    if (!begins) {
      next.phase = Phase::kAnswer;
      return AcceptInner(id, next);
    }
    if (++next.begun == marks_.begin_ids.size()) {
      if (inner_ != nullptr && next.inner > 0) inner_->Rollback(next.inner);
      next.inner = 0;
      next.has_thought = true;
      next.phase = Phase::kThinking;
      return;
    }
    bool allowed = next.inner == num_tokens();
    if (allowed && inner_ != nullptr) {
      inner_->FillMask(scratch_);
      allowed = MaskHas(scratch_, id);
    }
    if (allowed) AcceptInner(id, next);
  }

  void Think(int32_t id, State& next) {
    if (MustClose(next)) ++next.closing;
    ++next.thought;
    next.tail += TextOf(id);
    const bool closed = next.tail.find(marks_.end) != std::string::npos ||
                        (next.closing > 0 && next.closing == marks_.close_ids.size());
    if (closed) {
      next.phase = Phase::kAnswer;
      next.tail.clear();
    } else if (next.tail.size() >= marks_.end.size()) {
      next.tail.erase(0, next.tail.size() - marks_.end.size() + 1);
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
  std::vector<uint32_t> scratch_;
};

}  // namespace

std::unique_ptr<Constraint> MakeAfterReasoning(std::unique_ptr<Constraint> inner,
                                               ThoughtMarks marks, const Tokenizer& tokenizer) {
  return std::make_unique<AfterReasoning>(std::move(inner), std::move(marks), tokenizer);
}

}  // namespace tq
