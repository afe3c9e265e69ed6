#include "engine/request.h"

#include <algorithm>

#include <fmt/format.h>

#include "sampling/random.h"

namespace tq {
namespace {

// Whether end and stop ids leave nothing to say before min_tokens.
bool EndsCoverVocabulary(const GenerateRequest& request, int64_t vocab_size) {
  // With min_tokens all are forbidden at first, else the end ids that are ignored.
  if (request.min_tokens == 0 && !request.ignore_end) return false;
  const size_t num_ends = request.end_ids.size() + request.stop_ids.size();
  if (static_cast<int64_t>(num_ends) < vocab_size) return false;
  std::vector<int32_t> ends = request.end_ids;
  if (request.min_tokens > 0) {
    ends.insert(ends.end(), request.stop_ids.begin(), request.stop_ids.end());
  }
  std::erase_if(ends, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  std::sort(ends.begin(), ends.end());
  return std::unique(ends.begin(), ends.end()) - ends.begin() == vocab_size;
}

Status CheckExtras(const std::vector<TokenExtra>& extras, int64_t prompt_tokens) {
  int64_t free = 0;
  for (size_t i = 0; i < extras.size(); ++i) {
    const TokenExtra& extra = extras[i];
    if (extra.begin < free || extra.end <= extra.begin || extra.end > prompt_tokens) {
      return InvalidArgument(
          fmt::format("extras[{}]: expected a span of prompt ids inside [{}, {}), found [{}, {})",
                      i, free, prompt_tokens, extra.begin, extra.end));
    }
    free = extra.end;
  }
  return Status::Ok();
}

}  // namespace

Status GenerateRequest::Validate(int64_t vocab_size, int64_t max_context) const {
  if (prompt.empty()) {
    return InvalidArgument("prompt: expected at least one id, found none; start with the BOS id");
  }
  const auto length = static_cast<int64_t>(prompt.size());
  if (pooling && length > max_context) {
    return InvalidArgument(
        fmt::format("prompt: expected at most {} ids (the context), found {}; shorten it or raise "
                    "the context",
                    max_context, length));
  }
  if (!pooling && length >= max_context) {
    return InvalidArgument(
        fmt::format("prompt: expected at most {} ids (a context of {} tokens less one for the "
                    "answer), found {}; shorten it or raise the context",
                    max_context - 1, max_context, length));
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] < 0 || prompt[i] >= vocab_size) {
      return InvalidArgument(fmt::format(
          "prompt[{}]: expected an id in [0, {}), found {}; use the tokenizer of this model", i,
          vocab_size, prompt[i]));
    }
  }
  if (max_tokens != -1 && max_tokens < 1) {
    return InvalidArgument(fmt::format(
        "max_tokens: expected a number >= 1, or -1 for the whole context, found {}", max_tokens));
  }
  if (min_tokens < 0) {
    return InvalidArgument(fmt::format("min_tokens: expected a number >= 0, found {}", min_tokens));
  }
  if (EndsCoverVocabulary(*this, vocab_size)) {
    return InvalidArgument(
        fmt::format("{}: expected an id that is neither an end nor a stop id, found all {} "
                    "of the vocabulary among them; remove some",
                    min_tokens > 0 ? "min_tokens" : "ignore_end", vocab_size));
  }
  if (num_logprobs < -1 || num_logprobs > TokenLogprobs::kMaxTop) {
    return InvalidArgument(fmt::format("logprobs: expected 0 to {} alternatives, found {}",
                                       TokenLogprobs::kMaxTop, num_logprobs));
  }
  if (loop_limit != 0 && loop_limit < 2) {
    return InvalidArgument(
        fmt::format("loop_limit: expected a number >= 2, or 0 for off, found {}", loop_limit));
  }
  TQ_RETURN_IF_ERROR(CheckExtras(extras, length));
  return sampling.Validate(vocab_size);
}

GenerateRequest RequestOfAnswer(const GenerateRequest& request, int64_t index) {
  GenerateRequest copy = request;
  copy.sampling.seed = SeedOfAnswer(request.sampling.seed, index);
  if (request.constraint != nullptr) copy.constraint = request.constraint->Fork();
  return copy;
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kLoop:
      return "loop";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace tq
