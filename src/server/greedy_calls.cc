#include "server/greedy_calls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tq::server {
namespace {

class GreedyCalls final : public Constraint {
 public:
  GreedyCalls(std::unique_ptr<Constraint> inner, ToolSyntaxTracker tracker,
              const Tokenizer& tokenizer)
      : inner_(std::move(inner)), tracker_(std::move(tracker)), tokenizer_(tokenizer) {}

  void FillMask(std::span<uint32_t> bits) override {
    if (inner_ != nullptr) return inner_->FillMask(bits);
    std::fill(bits.begin(), bits.end(), ~uint32_t{0});
  }
  void Accept(int32_t id) override {
    if (inner_ != nullptr) inner_->Accept(id);
    ids_.push_back(id);
    Read(id);
  }
  bool IsTerminated() const override { return inner_ != nullptr && inner_->IsTerminated(); }
  bool TakesBest() const override { return tracker_.next_is_syntax(); }
  void Rollback(size_t num_tokens) override {
    if (inner_ != nullptr) inner_->Rollback(num_tokens);
    ids_.resize(ids_.size() - num_tokens);
    tracker_.Reset();
    for (const int32_t id : ids_) Read(id);
  }
  std::unique_ptr<Constraint> Fork() const override {
    auto out = std::make_unique<GreedyCalls>(inner_ == nullptr ? nullptr : inner_->Fork(), tracker_,
                                             tokenizer_);
    out->ids_ = ids_;
    return out;
  }

 private:
  void Read(int32_t id) {
    tracker_.Feed(tokenizer_.IsSpecial(id) ? std::string(tokenizer_.TokenText(id))
                                           : tokenizer_.TokenBytes(id));
  }

  std::unique_ptr<Constraint> inner_;
  ToolSyntaxTracker tracker_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
};

}  // namespace

std::unique_ptr<Constraint> MakeGreedyCalls(std::unique_ptr<Constraint> inner,
                                            ToolSyntaxTracker tracker, const Tokenizer& tokenizer) {
  return std::make_unique<GreedyCalls>(std::move(inner), std::move(tracker), tokenizer);
}

}  // namespace tq::server
