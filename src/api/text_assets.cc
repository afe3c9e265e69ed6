#include "api/text_assets.h"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/chat_check.h"
#include "base/json.h"

namespace tq {
namespace {

// The document, "" when it is missing.
Result<std::string> ReadOptional(const WeightSource& source, const std::string& name) {
  Result<std::string> text = source.ReadDocument(name);
  if (!text.ok() && text.status().code() == StatusCode::kNotFound) return std::string();
  return text;
}

Result<Json> ReadObject(const WeightSource& source, const std::string& name) {
  TQ_ASSIGN_OR_RETURN(const std::string text, ReadOptional(source, name));
  if (text.empty()) return Json(Json::object());
  TQ_ASSIGN_OR_RETURN(Json document, ParseJson(text, name));
  if (!document.is_object()) {
    return Corrupt(fmt::format("{}: expected an object, found {}", name, document.type_name()));
  }
  return document;
}

Result<int32_t> ReadId(const Json& value, std::string_view where) {
  const bool fits = value.is_number_integer() && value.get<double>() >= 0 &&
                    value.get<double>() <= std::numeric_limits<int32_t>::max();
  if (fits) return value.get<int32_t>();
  return Corrupt(fmt::format("{}: eos_token_id: expected an id or a list of ids, found {}", where,
                             value.is_number() ? value.dump() : std::string(value.type_name())));
}

// eos_token_id of one document: an id, a list, or nothing.
Result<std::vector<int32_t>> ReadEndIds(const Json& document, std::string_view where) {
  std::vector<int32_t> ids;
  const auto found = document.find("eos_token_id");
  if (found == document.end() || found->is_null()) return ids;
  if (!found->is_array()) {
    TQ_ASSIGN_OR_RETURN(const int32_t id, ReadId(*found, where));
    ids.push_back(id);
    return ids;
  }
  for (const Json& value : *found) {
    TQ_ASSIGN_OR_RETURN(const int32_t id, ReadId(value, where));
    ids.push_back(id);
  }
  return ids;
}

Status ReadSampling(const Json& generation, SamplingParams& sampling) {
  ConfigReader reader(generation, "generation_config.json");
  // Without do_sample the other values are remarks of the publisher, not a wish to sample.
  if (reader.Bool("do_sample", false)) {
    sampling.temperature = static_cast<float>(reader.Number("temperature", 1.0));
    sampling.top_p = static_cast<float>(reader.Number("top_p", 1.0));
    sampling.min_p = static_cast<float>(reader.Number("min_p", 0.0));
    sampling.typical_p = static_cast<float>(reader.Number("typical_p", 1.0));
    const int64_t top_k = reader.Int("top_k", 0);
    if (top_k < 0 || top_k > std::numeric_limits<int>::max()) {
      return Corrupt(
          fmt::format("generation_config.json: top_k: expected a number >= 0, found {}", top_k));
    }
    sampling.top_k = static_cast<int>(top_k);
  }
  sampling.repetition_penalty = static_cast<float>(reader.Number("repetition_penalty", 1.0));
  return reader.status();
}

Result<std::vector<int32_t>> FindEndIds(const Json& generation, const Json& config,
                                        const OrderedJson& tokenizer_config,
                                        const Tokenizer* tokenizer) {
  TQ_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadEndIds(generation, "generation_config.json"));
  if (ids.empty()) {
    TQ_ASSIGN_OR_RETURN(ids, ReadEndIds(config, "config.json"));
  }
  const auto text_config = config.find("text_config");
  if (ids.empty() && text_config != config.end() && text_config->is_object()) {
    TQ_ASSIGN_OR_RETURN(ids, ReadEndIds(*text_config, "config.json: text_config"));
  }
  if (ids.empty() && tokenizer != nullptr) {
    const std::string text = SpecialTokenText(tokenizer_config, "eos_token");
    const int32_t id = text.empty() ? -1 : tokenizer->TokenId(text);
    if (id >= 0) ids.push_back(id);
  }
  return ids;
}

// Only a document that cannot be read is an error; what is wrong with a tokenizer goes to its
// status.
Status LoadTokenizer(const WeightSource& source, const std::string& config, TextAssets& assets) {
  TQ_ASSIGN_OR_RETURN(const std::string json, ReadOptional(source, "tokenizer.json"));
  std::string tiktoken;
  std::string model;
  std::string added;
  if (json.empty()) {
    TQ_ASSIGN_OR_RETURN(tiktoken, ReadOptional(source, "tiktoken.model"));
    TQ_ASSIGN_OR_RETURN(model, ReadOptional(source, "tokenizer.model"));
    TQ_ASSIGN_OR_RETURN(added, ReadOptional(source, "added_tokens.json"));
  }
  auto loaded = Tokenizer::Load(TokenizerFiles{.tokenizer_json = json,
                                               .tiktoken_model = tiktoken,
                                               .tokenizer_model = model,
                                               .tokenizer_config_json = config,
                                               .added_tokens_json = added});
  assets.tokenizer_status = loaded.status();
  if (loaded.ok()) {
    assets.tokenizer = std::move(loaded).value();
  } else if (loaded.status().code() == StatusCode::kNotFound) {
    assets.tokenizer_status = loaded.status().WithContext(source.path());
  }
  return Status::Ok();
}

std::vector<std::string> ListSpecialTexts(const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.IsSpecial(id)) texts.emplace_back(tokenizer.TokenText(id));
  }
  return texts;
}

Result<ChatDocuments> ReadChatDocuments(const WeightSource& source) {
  ChatDocuments documents;
  TQ_ASSIGN_OR_RETURN(documents.tokenizer_config, ReadOptional(source, "tokenizer_config.json"));
  TQ_ASSIGN_OR_RETURN(documents.special_tokens_map,
                      ReadOptional(source, "special_tokens_map.json"));
  TQ_ASSIGN_OR_RETURN(documents.chat_template_jinja, ReadOptional(source, "chat_template.jinja"));
  TQ_ASSIGN_OR_RETURN(documents.chat_template_json, ReadOptional(source, "chat_template.json"));
  return documents;
}

}  // namespace

Status CheckChatTemplate(const WeightSource& source) {
  TQ_ASSIGN_OR_RETURN(const ChatDocuments documents, ReadChatDocuments(source));
  return ChatPrompt::Load(documents).status();
}

Result<TextAssets> LoadTextAssets(const WeightSource& source) {
  TextAssets assets;
  TQ_ASSIGN_OR_RETURN(ChatDocuments documents, ReadChatDocuments(source));
  TQ_RETURN_IF_ERROR(LoadTokenizer(source, documents.tokenizer_config, assets));
  if (assets.tokenizer != nullptr) documents.special_texts = ListSpecialTexts(*assets.tokenizer);
  auto chat = ChatPrompt::Load(documents);
  assets.chat_status = chat.status();
  if (chat.ok()) assets.chat = std::move(chat).value();

  TQ_ASSIGN_OR_RETURN(const Json generation, ReadObject(source, "generation_config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ReadObject(source, "config.json"));
  TQ_RETURN_IF_ERROR(ReadSampling(generation, assets.sampling));
  OrderedJson tokenizer_config;
  if (!documents.tokenizer_config.empty()) {
    TQ_ASSIGN_OR_RETURN(tokenizer_config,
                        ParseOrderedJson(documents.tokenizer_config, "tokenizer_config.json"));
  }
  TQ_ASSIGN_OR_RETURN(assets.end_ids,
                      FindEndIds(generation, config, tokenizer_config, assets.tokenizer.get()));
  const Result<EmbeddingSettings> embedding = ReadEmbeddingSettings(source);
  assets.embedding_status = embedding.status();
  if (embedding.ok()) assets.embedding = *embedding;
  return assets;
}

Result<const Tokenizer*> NeedTokenizer(const TextAssets& assets) {
  TQ_RETURN_IF_ERROR(assets.tokenizer_status);
  return static_cast<const Tokenizer*>(assets.tokenizer.get());
}

Result<const ChatPrompt*> NeedChat(const TextAssets& assets) {
  TQ_RETURN_IF_ERROR(assets.chat_status);
  if (!assets.chat) {
    return NotFound(
        "expected a chat template (tokenizer_config.json or chat_template.jinja), found "
        "none: use plain prompts with this checkpoint");
  }
  return &*assets.chat;
}

Result<std::vector<int32_t>> EncodePrompt(const TextAssets& assets, const std::string& text,
                                          const PromptOptions& options) {
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(assets));
  if (options.use_chat_template) TQ_RETURN_IF_ERROR(assets.chat_status);
  if (!options.use_chat_template || !assets.chat) {
    if (!options.system.empty()) {
      return InvalidArgument(
          "a system message needs a chat template, found none in use: put it "
          "into the prompt");
    }
    return tokenizer->Encode(text, {.add_special_tokens = true, .parse_special = true});
  }
  ChatInput input;
  if (!options.system.empty()) input.messages.push_back(MakeMessage("system", options.system));
  input.messages.push_back(MakeMessage("user", text));
  return EncodeChat(assets, input, {.enable_thinking = options.enable_thinking});
}

Result<std::vector<int32_t>> EncodeChat(const TextAssets& assets, const ChatInput& input,
                                        const ChatPromptOptions& options) {
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(assets));
  TQ_ASSIGN_OR_RETURN(const ChatPrompt* chat, NeedChat(assets));
  TQ_ASSIGN_OR_RETURN(const RenderedPrompt prompt, chat->RenderPrompt(input, options));
  // The template writes BOS and all other special tokens itself.
  return tokenizer->Encode(prompt.text, {.add_special_tokens = false, .plain = prompt.plain});
}

}  // namespace tq
