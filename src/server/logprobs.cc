#include "server/logprobs.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/request_text.h"
#include "server/fields.h"

namespace tq::server {
namespace {

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

OrderedJson Empty() {
  return {{"tokens", OrderedJson::array()},
          {"token_logprobs", OrderedJson::array()},
          {"top_logprobs", OrderedJson::array()},
          {"text_offset", OrderedJson::array()}};
}

}  // namespace

Result<int> ReadChatLogprobs(const RequestNode& body) {
  TQ_ASSIGN_OR_RETURN(const auto wanted, OptionalBool(body["logprobs"]));
  TQ_ASSIGN_OR_RETURN(const auto top, OptionalInt(body["top_logprobs"], 0, TokenLogprobs::kMaxTop));
  if (wanted.value_or(false)) return static_cast<int>(top.value_or(0));
  if (top.value_or(0) > 0) {
    return InvalidArgument("top_logprobs: expected \"logprobs\": true beside it, found none");
  }
  return -1;
}

OrderedJson TokenList(const Tokenizer& tokenizer, std::span<const ShownToken> tokens) {
  std::vector<int32_t> ids;
  std::vector<TokenLogprobs> logprobs;
  for (const ShownToken& token : tokens) {
    ids.push_back(token.id);
    logprobs.push_back(token.logprobs);
  }
  return std::move(LogprobsJson(&tokenizer, ids, logprobs)["content"]);
}

void CompletionLogprobs::Add(const Tokenizer& tokenizer, const std::string& text,
                             std::span<const ShownToken> tokens) {
  if (json_.is_null()) json_ = Empty();
  const OrderedJson list = TokenList(tokenizer, tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const OrderedJson& entry = list[i];
    json_["tokens"].push_back(entry["token"]);
    json_["token_logprobs"].push_back(entry["logprob"]);
    OrderedJson top = OrderedJson::object();
    for (const OrderedJson& other : entry["top_logprobs"]) {
      top[other["token"].get<std::string>()] = other["logprob"];
    }
    // The token itself too, also when it is not among the best.
    top[entry["token"].get<std::string>()] = entry["logprob"];
    json_["top_logprobs"].push_back(std::move(top));
    const std::string_view before = std::string_view(text).substr(0, tokens[i].offset);
    json_["text_offset"].push_back(characters_ + CountCharacters(before));
  }
  Skip(text);
}

void CompletionLogprobs::Skip(const std::string& text) { characters_ += CountCharacters(text); }

OrderedJson CompletionLogprobs::Take() {
  if (json_.is_null()) return Empty();
  return std::exchange(json_, OrderedJson());
}

}  // namespace tq::server
