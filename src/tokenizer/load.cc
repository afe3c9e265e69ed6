// The files of a tokenizer -> PipelineParts.
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/tiktoken.h"

namespace tq::tok {
namespace {

constexpr std::string_view kFile = "tokenizer.json";
constexpr std::string_view kConfigFile = "tokenizer_config.json";
constexpr std::string_view kAddedFile = "added_tokens.json";
constexpr std::string_view kTiktokenFile = "tiktoken.model";
constexpr std::string_view kModelFile = "tokenizer.model";

Status ReadAddedTokens(const Json& list, PipelineParts* parts) {
  const std::string where = std::string(kFile) + ": added_tokens";
  if (!list.is_array()) return Corrupt(where + ": expected a list, found " + list.type_name());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = where + "[" + std::to_string(i) + "]";
    TQ_ASSIGN_OR_RETURN(AddedToken token, ParseAddedToken(list[i], place));
    token.from_document = true;
    const auto id = list[i].find("id");
    TQ_ASSIGN_OR_RETURN(token.id, ParseTokenId(id == list[i].end() ? Json() : *id, place + ": id"));
    TQ_RETURN_IF_ERROR(
        parts->added_tokens.Add(std::move(token), parts->model->vocabulary(), place));
  }
  return Status::Ok();
}

// A token that the config names by content alone, or with flags. Null: no such key.
Result<AddedToken> ParseNamedToken(const Json& json, const std::string& where) {
  if (!json.is_string()) return ParseAddedToken(json, where);
  AddedToken token;
  token.content = json.get<std::string>();
  token.special = true;
  token.normalized = false;
  return token;
}

// "added_tokens_decoder": id -> token. Contents that the vocabulary knows keep the id they have
// there.
Status ReadConfigAddedTokens(const Json& table, PipelineParts* parts) {
  const std::string where = std::string(kConfigFile) + ": added_tokens_decoder";
  if (!table.is_object()) return Corrupt(where + ": expected an object");
  const Vocabulary& model = parts->model->vocabulary();
  for (const auto& [key, value] : table.items()) {
    const std::string place = where + ": " + Quoted(key);
    TQ_ASSIGN_OR_RETURN(AddedToken token, ParseAddedToken(value, place));
    const AddedToken* known = parts->added_tokens.Find(token.content);
    token.id = known != nullptr ? known->id : model.Id(token.content);
    if (token.id < 0) {
      int64_t id = -1;
      const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
      if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size()) {
        return Corrupt(place + ": expected an id");
      }
      TQ_ASSIGN_OR_RETURN(token.id, ParseTokenId(Json(id), place));
    }
    TQ_RETURN_IF_ERROR(parts->added_tokens.Add(std::move(token), model, place));
  }
  return Status::Ok();
}

// A named token (bos_token ...) is special even when tokenizer.json does not list it. One that has
// no id anywhere is left alone: no model has a row for it.
Status AddNamedToken(const Json& json, const std::string& where, PipelineParts* parts) {
  TQ_ASSIGN_OR_RETURN(AddedToken token, ParseNamedToken(json, where));
  if (const AddedToken* known = parts->added_tokens.Find(token.content); known != nullptr) {
    // tokenizer.json says itself what is special.
    if (known->special || known->from_document) return Status::Ok();
    token = *known;
  } else {
    token.id = parts->model->vocabulary().Id(token.content);
  }
  if (token.id < 0) return Status::Ok();
  token.special = true;
  return parts->added_tokens.Add(std::move(token), parts->model->vocabulary(), where);
}

Status ReadNamedTokens(ConfigReader* config, PipelineParts* parts) {
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    const Json* value = config->Raw(key);
    const std::string where = std::string(kConfigFile) + ": " + key;
    if (value != nullptr) TQ_RETURN_IF_ERROR(AddNamedToken(*value, where, parts));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* list = config->Raw(key);
    if (list == nullptr) continue;
    const std::string where = std::string(kConfigFile) + ": " + key;
    if (!list->is_array() && !list->is_object()) return Corrupt(where + ": expected a list");
    for (const Json& value : *list) TQ_RETURN_IF_ERROR(AddNamedToken(value, where, parts));
  }
  return Status::Ok();
}

// add_bos_token and add_eos_token, where given, overrule that side of the post-processor.
Status ReadBosEosFlags(ConfigReader* config, PipelineParts* parts) {
  const std::pair<const char*, std::vector<int32_t>*> sides[] = {
      {"bos", &parts->post_processor.prefix}, {"eos", &parts->post_processor.suffix}};
  for (const auto& [name, ids] : sides) {
    const std::string flag = std::string("add_") + name + "_token";
    if (!config->Has(flag)) continue;
    const bool wanted = config->Bool(flag, false);
    const Json* value = config->Raw(std::string(name) + "_token");
    if (!wanted) {
      ids->clear();
      continue;
    }
    if (value == nullptr) continue;
    const std::string where = std::string(kConfigFile) + ": " + name + "_token";
    TQ_ASSIGN_OR_RETURN(const AddedToken token, ParseNamedToken(*value, where));
    const AddedToken* known = parts->added_tokens.Find(token.content);
    if (known == nullptr) {
      return Corrupt(where + ": " + Quoted(token.content) + " is not in the vocabulary");
    }
    *ids = {known->id};
  }
  return config->status();
}

Status ReadConfig(const Json& json, PipelineParts* parts) {
  ConfigReader config(json, std::string(kConfigFile));
  TQ_RETURN_IF_ERROR(config.status());
  if (const Json* table = config.Raw("added_tokens_decoder"); table != nullptr) {
    TQ_RETURN_IF_ERROR(ReadConfigAddedTokens(*table, parts));
  }
  TQ_RETURN_IF_ERROR(ReadNamedTokens(&config, parts));
  return ReadBosEosFlags(&config, parts);
}

Status CheckGrowth(const PipelineParts& parts) {
  double growth = 1.0;
  if (parts.normalizer != nullptr) growth *= parts.normalizer->Growth();
  if (parts.pre_tokenizer != nullptr) growth *= parts.pre_tokenizer->Growth();
  if (growth <= kMaxGrowth) return Status::Ok();
  return Unsupported(std::string(kFile) +
                     ": normalizer and pre_tokenizer could make a text too long");
}

// added_tokens.json: content -> id, beside files that cannot hold them.
Status ReadAddedFile(std::string_view text, PipelineParts* parts) {
  TQ_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kAddedFile));
  const std::string where(kAddedFile);
  if (!json.is_object()) return Corrupt(where + ": expected an object, found " + json.type_name());
  for (const auto& [content, id] : json.items()) {
    if (parts->added_tokens.Find(content) != nullptr) continue;
    AddedToken token;
    token.content = content;
    TQ_ASSIGN_OR_RETURN(token.id, ParseTokenId(id, where + ": " + Quoted(content)));
    TQ_RETURN_IF_ERROR(
        parts->added_tokens.Add(std::move(token), parts->model->vocabulary(), where));
  }
  return Status::Ok();
}

Result<PipelineParts> LoadDocument(std::string_view tokenizer_json) {
  TQ_ASSIGN_OR_RETURN(const Json json, ParseJson(tokenizer_json, kFile));
  ConfigReader reader(json, std::string(kFile));
  const Json* model = reader.Raw("model");
  TQ_RETURN_IF_ERROR(reader.status());
  const auto place = [](std::string_view key) {
    return std::string(kFile) + ": " + std::string(key);
  };
  if (model == nullptr) return Corrupt(place("model is missing"));

  PipelineParts parts;
  TQ_ASSIGN_OR_RETURN(parts.model, MakeTokenModel(*model, place("model")));
  if (const Json* part = reader.Raw("normalizer"); part != nullptr) {
    TQ_ASSIGN_OR_RETURN(parts.normalizer, MakeNormalizer(*part, place("normalizer")));
  }
  if (const Json* part = reader.Raw("pre_tokenizer"); part != nullptr) {
    TQ_ASSIGN_OR_RETURN(parts.pre_tokenizer, MakePreTokenizer(*part, place("pre_tokenizer")));
  }
  if (const Json* part = reader.Raw("post_processor"); part != nullptr) {
    TQ_ASSIGN_OR_RETURN(parts.post_processor, MakePostProcessor(*part, place("post_processor")));
  }
  const Json* decoder = reader.Raw("decoder");
  TQ_ASSIGN_OR_RETURN(parts.decoders,
                      MakeDecoderChain(decoder == nullptr ? Json() : *decoder, place("decoder")));
  if (const Json* list = reader.Raw("added_tokens"); list != nullptr) {
    TQ_RETURN_IF_ERROR(ReadAddedTokens(*list, &parts));
  }
  return parts;
}

Result<Json> ParseConfig(std::string_view text) {
  if (text.empty()) return Json(Json::object());
  return ParseJson(text, kConfigFile);
}

Result<PipelineParts> FinishParts(PipelineParts parts, const Json& config) {
  TQ_RETURN_IF_ERROR(CheckGrowth(parts));
  TQ_RETURN_IF_ERROR(ReadConfig(config, &parts));
  return parts;
}

Result<PipelineParts> LoadTiktoken(std::string_view file, std::string_view name,
                                   const TokenizerFiles& files) {
  const std::string where(name);
  TQ_ASSIGN_OR_RETURN(const Json config, ParseConfig(files.tokenizer_config_json));
  ConfigReader reader(config, std::string(kConfigFile));
  const std::string tokenizer_class = reader.String("tokenizer_class", "");
  TQ_RETURN_IF_ERROR(reader.status());
  TQ_ASSIGN_OR_RETURN(PipelineParts parts, LoadTiktokenParts(file, where, tokenizer_class));
  if (!files.added_tokens_json.empty()) {
    TQ_RETURN_IF_ERROR(ReadAddedFile(files.added_tokens_json, &parts));
  }
  TQ_ASSIGN_OR_RETURN(parts, FinishParts(std::move(parts), config));
  TQ_RETURN_IF_ERROR(AddReservedTokens(where, &parts));
  parts.added_tokens.Index(nullptr);
  return parts;
}

Result<PipelineParts> LoadSentencePiece(const TokenizerFiles& files) {
  TQ_ASSIGN_OR_RETURN(const Json config, ParseConfig(files.tokenizer_config_json));
  ConfigReader reader(config, std::string(kConfigFile));
  SentencePieceOptions options;
  options.tokenizer_class = reader.String("tokenizer_class", "");
  options.legacy = reader.Bool("legacy", true);
  options.add_prefix_space = reader.Bool("add_prefix_space", true);
  TQ_RETURN_IF_ERROR(reader.status());
  TQ_ASSIGN_OR_RETURN(
      PipelineParts parts,
      LoadSentencePieceParts(files.tokenizer_model, std::string(kModelFile), options));
  if (!files.added_tokens_json.empty()) {
    TQ_RETURN_IF_ERROR(ReadAddedFile(files.added_tokens_json, &parts));
  }
  TQ_ASSIGN_OR_RETURN(parts, FinishParts(std::move(parts), config));
  // The normalizer would put the dummy prefix before every one of them.
  parts.added_tokens.LookInRawText();
  parts.added_tokens.Index(parts.normalizer.get());
  return parts;
}

}  // namespace

Result<PipelineParts> LoadPipelineParts(std::string_view tokenizer_json,
                                        std::string_view tokenizer_config_json) {
  TQ_ASSIGN_OR_RETURN(PipelineParts parts, LoadDocument(tokenizer_json));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseConfig(tokenizer_config_json));
  TQ_ASSIGN_OR_RETURN(parts, FinishParts(std::move(parts), config));
  parts.added_tokens.Index(parts.normalizer.get());
  return parts;
}

Result<PipelineParts> LoadPipelineParts(const TokenizerFiles& files) {
  if (!files.tokenizer_json.empty()) {
    return LoadPipelineParts(files.tokenizer_json, files.tokenizer_config_json);
  }
  if (!files.tiktoken_model.empty()) {
    return LoadTiktoken(files.tiktoken_model, kTiktokenFile, files);
  }
  if (LooksLikeTiktoken(files.tokenizer_model)) {
    return LoadTiktoken(files.tokenizer_model, kModelFile, files);
  }
  if (!files.tokenizer_model.empty()) return LoadSentencePiece(files);
  return NotFound(
      "expected tokenizer.json, tiktoken.model or tokenizer.model, found none: put one beside the "
      "weights, or use token ids instead of text");
}

}  // namespace tq::tok
