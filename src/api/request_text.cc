#include "api/request_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tokenizer/unicode.h"

namespace tq {
namespace {

void AddOnce(std::vector<int32_t> ids, std::vector<std::vector<int32_t>>& all) {
  if (ids.empty() || std::find(all.begin(), all.end(), ids) != all.end()) return;
  all.push_back(std::move(ids));
}

OrderedJson TokenJson(const Tokenizer* tokenizer, int32_t id, float logprob) {
  OrderedJson json;
  if (tokenizer != nullptr) {
    // A special token stands for no text; its name says what it is.
    const std::string bytes = tokenizer->IsSpecial(id) ? std::string(tokenizer->TokenText(id))
                                                       : tokenizer->TokenBytes(id);
    json["token"] = tok::RepairUtf8(bytes);
    json["id"] = id;
    json["logprob"] = logprob;
    OrderedJson list = OrderedJson::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    json["bytes"] = std::move(list);
    return json;
  }
  json["id"] = id;
  json["logprob"] = logprob;
  return json;
}

}  // namespace

std::vector<std::vector<int32_t>> BadWordIds(const Tokenizer& tokenizer,
                                             const std::vector<std::string>& words) {
  std::vector<std::vector<int32_t>> all;
  for (const std::string& word : words) {
    AddOnce(tokenizer.Encode(word, {.parse_special = true}), all);
    AddOnce(tokenizer.Encode(" " + word, {.parse_special = true}), all);
  }
  return all;
}

std::vector<std::vector<int32_t>> DryBreakerIds(const Tokenizer& tokenizer,
                                                const std::vector<std::string>& texts) {
  std::vector<std::vector<int32_t>> all;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string bytes = tokenizer.TokenBytes(id);
    const bool breaks = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return !text.empty() && bytes.find(text) != std::string::npos;
    });
    if (breaks) all.push_back({id});
  }
  for (const std::string& text : texts) {
    std::vector<int32_t> ids = tokenizer.Encode(text, {.parse_special = true});
    if (ids.size() > 1) AddOnce(std::move(ids), all);
  }
  return all;
}

std::vector<std::string> DefaultDryBreakers() { return {"\n", ":", "\"", "*"}; }

OrderedJson LogprobsJson(const Tokenizer* tokenizer, std::span<const int32_t> ids,
                         std::span<const TokenLogprobs> logprobs) {
  OrderedJson content = OrderedJson::array();
  for (size_t i = 0; i < ids.size(); ++i) {
    OrderedJson entry = TokenJson(tokenizer, ids[i], logprobs[i].logprob);
    OrderedJson& top = entry["top_logprobs"] = OrderedJson::array();
    for (int32_t k = 0; k < logprobs[i].num_top; ++k) {
      const TopLogprob& other = logprobs[i].top[static_cast<size_t>(k)];
      top.push_back(TokenJson(tokenizer, other.id, other.logprob));
    }
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

}  // namespace tq
