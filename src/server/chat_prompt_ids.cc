#include "server/chat_prompt_ids.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tq::server {
namespace {

using Turns = std::vector<std::shared_ptr<const StoredTurn>>;

// Encodes parts of one text.
class PartEncoder {
 public:
  PartEncoder(const Tokenizer& tokenizer, const RenderedPrompt& prompt)
      : tokenizer_(tokenizer), prompt_(prompt) {}

  std::vector<int32_t> Encode(size_t begin, size_t end) const {
    std::vector<TextSpan> plain;
    for (const TextSpan& span : prompt_.plain) {
      if (span.begin >= begin && span.end <= end) {
        plain.push_back({span.begin - begin, span.end - begin});
      }
    }
    const std::string_view part = std::string_view(prompt_.text).substr(begin, end - begin);
    return tokenizer_.Encode(part, {.add_special_tokens = false, .plain = plain});
  }

 private:
  const Tokenizer& tokenizer_;
  const RenderedPrompt& prompt_;
};

std::vector<int32_t> EncodePrompt(const Tokenizer& tokenizer, const RenderedPrompt& prompt,
                                  const Turns& turns) {
  const PartEncoder encoder(tokenizer, prompt);
  std::vector<int32_t> ids;
  size_t at = 0;
  for (const RenderedPrompt::Repeated& repeated : prompt.repeated) {
    if (!repeated.continues_prompt || repeated.begin < at) continue;
    const std::vector<int32_t> before = encoder.Encode(at, repeated.begin);
    // A part is cut like the whole only where a special token begins it.
    if (at > 0 && (before.empty() || !tokenizer.IsSpecial(before.front()))) break;
    ids.insert(ids.end(), before.begin(), before.end());
    const std::vector<int32_t>& generated = turns[static_cast<size_t>(repeated.tag)]->ids;
    ids.insert(ids.end(), generated.begin(), generated.end());
    at = repeated.end;
  }
  const std::vector<int32_t> rest = encoder.Encode(at, prompt.text.size());
  if (at > 0 && (rest.empty() || !tokenizer.IsSpecial(rest.front()))) {
    return encoder.Encode(0, prompt.text.size());
  }
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

Status AsBadRequest(const Status& status) {
  return status.code() == StatusCode::kNotFound ? InvalidArgument(status.message()) : status;
}

}  // namespace

Result<PromptIds> MakePromptIds(const Call& call, ChatInput& input,
                                const ChatPromptOptions& options) {
  const Result<const Tokenizer*> tokenizer = NeedTokenizer(call.model->text());
  if (!tokenizer.ok()) return AsBadRequest(tokenizer.status());
  const Result<const ChatPrompt*> chat = NeedChat(call.model->text());
  if (!chat.ok()) return AsBadRequest(chat.status());
  for (size_t i = 0; i < input.messages.size(); ++i) {
    if (input.messages[i].HasImages()) {
      return InvalidArgument(fmt::format(
          "messages: expected text, found an image in message {}: this model is served without "
          "images",
          i));
    }
  }
  const Turns turns = call.model->turns().Restore(input);
  PromptIds prompt;
  TQ_ASSIGN_OR_RETURN(prompt.rendered, (*chat)->RenderPrompt(input, options));
  prompt.ids = EncodePrompt(**tokenizer, prompt.rendered, turns);
  return prompt;
}

}  // namespace tq::server
