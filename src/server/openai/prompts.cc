#include "server/openai/prompts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/fields.h"

namespace tq::server {
namespace {

Result<std::vector<int32_t>> ReadIds(const RequestNode& list, int64_t vocab_size) {
  std::vector<int32_t> ids;
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, list.List());
  for (const RequestNode& node : nodes) {
    if (node.IsNull()) return node.Expected("a token id");
    TQ_ASSIGN_OR_RETURN(const auto id, OptionalInt(node, 0, vocab_size - 1));
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

// A text or a list of ids.
Result<std::vector<int32_t>> ReadPrompt(const RequestNode& prompt, const ServedModel& model) {
  if (prompt.IsList() && !prompt.value().empty()) {
    return ReadIds(prompt, model.vocab_size());
  }
  if (!prompt.IsText()) return prompt.Expected("a text or a list of token ids");
  const Result<const Tokenizer*> tokenizer = NeedTokenizer(model.text());
  if (!tokenizer.ok()) return InvalidArgument(tokenizer.status().message());
  return (*tokenizer)->Encode(prompt.text(), {.add_special_tokens = true});
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> ReadPrompts(const RequestNode& prompt,
                                                      const ServedModel& model,
                                                      size_t max_prompts) {
  std::vector<RequestNode> nodes = {prompt};
  if (prompt.IsList()) {
    TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> list, prompt.List());
    const bool is_one = list.empty() || (!list[0].IsText() && !list[0].IsList());
    if (!is_one) nodes = list;
  }
  if (nodes.size() > max_prompts) {
    return InvalidArgument(fmt::format("{}: expected at most {} of them, found {}", prompt.path(),
                                       max_prompts, nodes.size()));
  }
  std::vector<std::vector<int32_t>> prompts;
  for (const RequestNode& node : nodes) {
    TQ_ASSIGN_OR_RETURN(prompts.emplace_back(), ReadPrompt(node, model));
  }
  return prompts;
}

}  // namespace tq::server
