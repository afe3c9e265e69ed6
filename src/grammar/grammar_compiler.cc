#include "grammar/grammar_compiler.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include "base/check.h"
#include "grammar/special_marks.h"
#include "grammar/structural_tag.h"
#include "grammar/xgrammar_log.h"

namespace tq {
namespace {

// A model that closed a string too early may prefer blanks for ever.
constexpr int kMaxWhitespace = 32;
constexpr int64_t kCacheBytes = int64_t{256} << 20;  // compiled grammars

class XGrammarConstraint final : public Constraint {
 public:
  XGrammarConstraint(xgrammar::GrammarMatcher matcher, int64_t vocab_size)
      : matcher_(std::move(matcher)), vocab_size_(vocab_size) {}

  void FillMask(std::span<uint32_t> bits) override {
    int64_t shape[1] = {(vocab_size_ + 31) / 32};
    TQ_CHECK(static_cast<int64_t>(bits.size()) >= shape[0]);
    DLTensor tensor{.data = bits.data(),
                    .device = {kDLCPU, 0},
                    .ndim = 1,
                    .dtype = {kDLInt, 32, 1},
                    .shape = shape,
                    .strides = nullptr,
                    .byte_offset = 0};
    if (!matcher_.FillNextTokenBitmask(&tensor)) {  // everything may come: nothing was written
      std::fill(bits.begin(), bits.end(), ~uint32_t{0});
    }
    if (vocab_size_ % 32 != 0) {
      bits[static_cast<size_t>(shape[0] - 1)] &= (uint32_t{1} << (vocab_size_ % 32)) - 1;
    }
    std::fill(bits.begin() + shape[0], bits.end(), uint32_t{0});
  }
  void Accept(int32_t id) override { TQ_CHECK(matcher_.AcceptToken(id)); }
  bool IsTerminated() const override { return matcher_.IsTerminated(); }
  void Rollback(size_t num_tokens) override { matcher_.Rollback(static_cast<int>(num_tokens)); }
  std::unique_ptr<Constraint> Fork() const override {
    return std::make_unique<XGrammarConstraint>(matcher_.Fork(), vocab_size_);
  }

 private:
  xgrammar::GrammarMatcher matcher_;
  int64_t vocab_size_;
};

// What goes wrong inside XGrammar is an exception; no other code of ours sees one.
// what: "regex", "grammar", as the errors call it.
template <typename Fn>
auto Guarded(const char* what, Fn&& fn) -> Result<decltype(fn())> {
  XGrammarWarnings warnings;
  try {
    auto value = fn();
    if (!warnings.text().empty()) {
      return InvalidArgument(fmt::format("{} cannot be enforced: {}", what, warnings.text()));
    }
    return value;
  } catch (const std::exception& error) {
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return InvalidArgument(fmt::format("{} cannot be used: {}", what, reason));
  }
}

class XGrammarCompiler final : public GrammarCompiler {
 public:
  XGrammarCompiler(xgrammar::TokenizerInfo info, int64_t vocab_size, SpecialMarks marks)
      // One thread: its warnings are collected by thread, and the machine is busy with the model.
      : compiler_(info, 1, true, kCacheBytes), vocab_size_(vocab_size), marks_(std::move(marks)) {}

  Result<std::unique_ptr<Constraint>> Compile(const GrammarSpec& spec,
                                              std::span<const int32_t> end_ids,
                                              std::vector<std::string>* relaxed) override {
    const std::lock_guard lock(mutex_);
    std::vector<int> stops;
    for (const int32_t id : end_ids) {
      if (id >= 0 && id < vocab_size_) {
        stops.push_back(id);
      }
    }
    TQ_ASSIGN_OR_RETURN(xgrammar::CompiledGrammar compiled, CompileText(spec, relaxed));
    return Guarded("grammar", [&]() -> std::unique_ptr<Constraint> {
      xgrammar::GrammarMatcher matcher =
          stops.empty() ? xgrammar::GrammarMatcher(compiled, std::nullopt, true)
                        : xgrammar::GrammarMatcher(compiled, stops);
      return std::make_unique<XGrammarConstraint>(std::move(matcher), vocab_size_);
    });
  }

 private:
  Result<xgrammar::CompiledGrammar> CompileText(const GrammarSpec& spec,
                                                std::vector<std::string>* relaxed) {
    switch (spec.kind) {
      case GrammarSpec::Kind::kJsonObject:
        return Schema(R"({"type":"object","additionalProperties":true})");
      case GrammarSpec::Kind::kJsonSchema: {
        TQ_ASSIGN_OR_RETURN(PreparedSchema prepared,
                            PrepareSchema(spec.text, spec.mode, CheckRegex));
        if (relaxed != nullptr) {
          *relaxed = std::move(prepared.relaxed);
        }
        return Schema(prepared.text);
      }
      case GrammarSpec::Kind::kRegex:
        return Guarded("regex", [&] { return compiler_.CompileRegex(spec.text); });
      case GrammarSpec::Kind::kEbnf:
        return Guarded("grammar", [&] { return compiler_.CompileGrammar(spec.text); });
      case GrammarSpec::Kind::kStructuralTag: {
        TQ_ASSIGN_OR_RETURN(PreparedSchema prepared,
                            PrepareStructuralTag(spec.text, spec.mode, CheckRegex, marks_));
        if (relaxed != nullptr) {
          *relaxed = std::move(prepared.relaxed);
        }
        return Guarded("structural tag",
                       [&] { return compiler_.CompileStructuralTag(prepared.text); });
      }
    }
    return Internal("unknown kind of grammar");
  }

  Result<xgrammar::CompiledGrammar> Schema(const std::string& text) {
    return Guarded("schema", [&] {
      return compiler_.CompileJSONSchema(text, /*any_whitespace=*/true, std::nullopt, std::nullopt,
                                         /*strict_mode=*/true, kMaxWhitespace);
    });
  }

  static Status CheckRegex(const std::string& regex) {
    return Guarded("regex", [&] { return xgrammar::Grammar::FromRegex(regex); }).status();
  }

  std::mutex mutex_;
  xgrammar::GrammarCompiler compiler_;
  int64_t vocab_size_;
  SpecialMarks marks_;
};

}  // namespace

bool GrammarCompiler::Available() { return true; }

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::Create(
    const Tokenizer& tokenizer, int64_t vocab_size, std::span<const std::string_view> marks) {
  SpecialMarks special(tokenizer, marks);
  // An empty text marks a token that no grammar produces: special ones, and padding of the logits.
  std::vector<std::string> texts(static_cast<size_t>(vocab_size));
  const int64_t known = std::min<int64_t>(vocab_size, tokenizer.vocab_size());
  for (int64_t id = 0; id < known; ++id) {
    const auto token = static_cast<int32_t>(id);
    texts[static_cast<size_t>(id)] = tokenizer.IsSpecial(token)
                                         ? special.TextOf(token)
                                         : special.WithoutStandIns(tokenizer.TokenBytes(token));
  }
  return Guarded("vocabulary", [&]() -> std::unique_ptr<GrammarCompiler> {
    const xgrammar::TokenizerInfo info(texts, xgrammar::VocabType::RAW,
                                       static_cast<int>(vocab_size), std::vector<int32_t>{});
    return std::make_unique<XGrammarCompiler>(info, vocab_size, std::move(special));
  });
}

}  // namespace tq
