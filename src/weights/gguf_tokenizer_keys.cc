#include "weights/gguf_tokenizer_keys.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_pretokenizer.h"
#include "weights/gguf_vocab.h"
#include "weights/json_member.h"
#include "weights/quote.h"
#include "weights/spm_scores.h"

namespace tq {
namespace {

// "<0x0A>"
bool IsByteToken(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') &&
         kHex.find(text[3]) != std::string_view::npos &&
         kHex.find(text[4]) != std::string_view::npos;
}

Result<Json> ParseOptional(const std::string& text, const std::string& where) {
  if (text.empty()) return Json::object();
  TQ_ASSIGN_OR_RETURN(Json json, ParseJson(text, where));
  if (!json.is_object()) return Corrupt(where + ": expected an object");
  return json;
}

class Writer {
 public:
  Writer(int64_t num_rows, const std::string& where, GgufMetadata& out,
         std::vector<std::string>& warnings)
      : num_rows_(num_rows), where_(where), out_(out), warnings_(warnings) {}

  Status Run(const TokenizerDocuments& documents) {
    if (documents.tokenizer.empty()) {
      return Unsupported(where_ +
                         ": no tokenizer.json: a GGUF file holds the tokenizer too (copy the "
                         "original checkpoint's beside the weights)");
    }
    TQ_ASSIGN_OR_RETURN(tokenizer_, ParseOptional(documents.tokenizer, where_));
    TQ_ASSIGN_OR_RETURN(tokenizer_config_,
                        ParseOptional(documents.tokenizer_config, "tokenizer_config.json"));
    TQ_ASSIGN_OR_RETURN(generation_,
                        ParseOptional(documents.generation_config, "generation_config.json"));
    TQ_ASSIGN_OR_RETURN(config_, ParseOptional(documents.config, "config.json"));
    const Json& model = Member(tokenizer_, "model");
    if (TextOf(Member(model, "type")) != "BPE") {
      return Unsupported(where_ + ": a tokenizer of type BPE can be written as GGUF, found " +
                         Quoted(TextOf(Member(model, "type"))));
    }
    TQ_RETURN_IF_ERROR(ReadTokens());
    TQ_RETURN_IF_ERROR(ReadMerges());
    TQ_RETURN_IF_ERROR(IsTrue(Member(model, "byte_fallback")) ? AddSentencePiece()
                                                              : AddByteLevel());
    AddTokens();
    TQ_RETURN_IF_ERROR(AddSpecialIds());
    return AddTemplates(documents.chat_template);
  }

 private:
  Status ReadTokens();
  Status ReadAddedTokens();
  Status SetToken(const std::string& text, const Json& id, GgufTokenType type);
  Status ReadMerges();
  Status AddByteLevel();
  Status AddSentencePiece();
  void AddTokens();
  Status AddSpecialIds();
  Status AddTemplates(const std::string& jinja);
  std::optional<int64_t> IdOfConfig(const char* name) const;
  std::vector<int64_t> EndIds() const;

  int64_t num_rows_;
  const std::string& where_;
  GgufMetadata& out_;
  std::vector<std::string>& warnings_;
  Json tokenizer_, tokenizer_config_, generation_, config_;
  std::vector<std::string> tokens_;
  std::vector<bool> present_;
  std::vector<int32_t> types_;  // GgufTokenType
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<TextPair> merges_;
};

Status Writer::SetToken(const std::string& text, const Json& id, GgufTokenType type) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= num_rows_) {
    return Corrupt(where_ + ": token " + Quoted(text) + ": expected an id below " +
                   std::to_string(num_rows_) + ", the rows of the embedding, found " + id.dump());
  }
  const auto index = id.get<int64_t>();
  const auto [it, inserted] = ids_.emplace(text, index);
  const auto at = static_cast<size_t>(index);
  if (it->second != index || (present_[at] && tokens_[at] != text)) {
    return Corrupt(where_ + ": token " + Quoted(text) + " and id " + std::to_string(index) +
                   " do not belong to each other alone");
  }
  tokens_[at] = text;
  present_[at] = true;
  types_[at] = static_cast<int32_t>(type);
  return Status::Ok();
}

Status Writer::ReadTokens() {
  const auto n = static_cast<size_t>(num_rows_);
  tokens_.resize(n);
  present_.assign(n, false);
  types_.assign(n, static_cast<int32_t>(GgufTokenType::kUnused));
  const Json& model = Member(tokenizer_, "model");
  const Json& vocab = Member(model, "vocab");
  if (!vocab.is_object()) return Corrupt(where_ + ": model.vocab: expected an object");
  const bool bytes = IsTrue(Member(model, "byte_fallback"));
  for (const auto& [text, id] : vocab.items()) {
    const bool is_byte = bytes && IsByteToken(text);
    TQ_RETURN_IF_ERROR(SetToken(text, id, is_byte ? GgufTokenType::kByte : GgufTokenType::kNormal));
  }
  TQ_RETURN_IF_ERROR(ReadAddedTokens());
  const auto unknown = ids_.find(TextOf(Member(model, "unk_token")));
  if (unknown != ids_.end()) {
    types_[static_cast<size_t>(unknown->second)] = static_cast<int32_t>(GgufTokenType::kUnknown);
  }
  for (size_t i = 0; i < n; ++i) {
    if (present_[i]) continue;
    tokens_[i] = "[PAD" + std::to_string(i) + "]";
    while (ids_.contains(tokens_[i])) tokens_[i] += '_';
  }
  return Status::Ok();
}

Status Writer::ReadAddedTokens() {
  const Json& added = Member(tokenizer_, "added_tokens");
  if (added.is_null()) return Status::Ok();
  if (!added.is_array()) return Corrupt(where_ + ": added_tokens: expected a list");
  for (const Json& token : added) {
    const std::string text = TextOf(Member(token, "content"));
    const Json& id = Member(token, "id");
    // Tokens of images and the like, for which the text model has no row.
    if (id.is_number_integer() && id.get<int64_t>() >= num_rows_) {
      warnings_.push_back("token " + Quoted(text) + " has no row in the embedding: left out");
      continue;
    }
    TQ_RETURN_IF_ERROR(SetToken(
        text, id,
        IsTrue(Member(token, "special")) ? GgufTokenType::kControl : GgufTokenType::kUserDefined));
  }
  return Status::Ok();
}

// "a b", or [a, b].
Status Writer::ReadMerges() {
  const Json& merges = Member(Member(tokenizer_, "model"), "merges");
  if (!merges.is_array()) return Corrupt(where_ + ": model.merges: expected a list");
  merges_.reserve(merges.size());
  for (const Json& merge : merges) {
    std::string left, right;
    if (merge.is_array() && merge.size() == 2) {
      left = TextOf(merge[0]);
      right = TextOf(merge[1]);
    } else if (merge.is_string()) {
      const std::string text = merge.get<std::string>();
      const size_t space = text.find(' ', 1);
      left = text.substr(0, space);
      if (space != std::string::npos) right = text.substr(space + 1);
    }
    if (left.empty() || right.empty()) {
      return Corrupt(where_ + ": merge " + std::to_string(merges_.size()) +
                     ": expected two texts, found " + merge.dump());
    }
    merges_.emplace_back(std::move(left), std::move(right));
  }
  return Status::Ok();
}

Status Writer::AddByteLevel() {
  const Json& pre_tokenizer = Member(tokenizer_, "pre_tokenizer");
  const std::string name =
      FindGgufPreTokenizerName(pre_tokenizer, Member(tokenizer_, "normalizer"),
                               IsTrue(Member(Member(tokenizer_, "model"), "ignore_merges")));
  if (name.empty()) {
    return Unsupported(where_ +
                       ": its splitting of text has no name in GGUF (tokenizer.ggml.pre; known: " +
                       KnownGgufPreTokenizers() + ")");
  }
  out_.Text("tokenizer.ggml.model", "gpt2");
  out_.Text("tokenizer.ggml.pre", name);
  std::vector<std::string> merges;
  merges.reserve(merges_.size());
  for (const auto& [left, right] : merges_) {
    if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos) {
      return Unsupported(where_ + ": merge of " + Quoted(left) + " and " + Quoted(right) +
                         ": GGUF has no form for a merge with a space");
    }
    merges.push_back(left + ' ' + right);
  }
  out_.Texts("tokenizer.ggml.merges", merges);
  return Status::Ok();
}

Status Writer::AddSentencePiece() {
  TQ_ASSIGN_OR_RETURN(const bool prefix, SpmSpacePrefix(tokenizer_, where_));
  TQ_ASSIGN_OR_RETURN(const SpmScoreList list, SpmScores({tokens_, types_, merges_}, where_));
  if (list.extra_merges > 0) {
    warnings_.push_back(where_ + ": GGUF's tokenizer would also merge " +
                        std::to_string(list.extra_merges) +
                        " pairs that no merge here does: ids may differ on rare texts");
  }
  out_.Text("tokenizer.ggml.model", "llama");
  out_.Text("tokenizer.ggml.pre", "default");
  out_.Floats("tokenizer.ggml.scores", list.scores);
  out_.Bool("tokenizer.ggml.add_space_prefix", prefix);
  return Status::Ok();
}

void Writer::AddTokens() {
  out_.Texts("tokenizer.ggml.tokens", tokens_);
  out_.Ints("tokenizer.ggml.token_type", types_);
}

// "bos" -> the id of tokenizer_config's bos_token, else config.json's bos_token_id.
std::optional<int64_t> Writer::IdOfConfig(const char* name) const {
  const std::string key = std::string(name) + "_token";
  const Json& token = Member(tokenizer_config_, key.c_str());
  const std::string text = TextOf(token.is_object() ? Member(token, "content") : token);
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const Json& id = Member(config_, (key + "_id").c_str());
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= num_rows_) {
    return std::nullopt;
  }
  return id.get<int64_t>();
}

std::vector<int64_t> Writer::EndIds() const {
  std::vector<int64_t> out;
  const auto add = [&](const Json& id) {
    if (!id.is_number_integer()) return;
    const auto value = id.get<int64_t>();
    if (value < 0 || value >= num_rows_) return;
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  };
  if (const auto eos = IdOfConfig("eos")) add(*eos);
  for (const Json* document : {&generation_, &config_}) {
    const Json& ids = Member(*document, "eos_token_id");
    if (ids.is_array()) {
      for (const Json& id : ids) add(id);
    } else {
      add(ids);
    }
  }
  return out;
}

Status Writer::AddSpecialIds() {
  std::optional<int64_t> bos = IdOfConfig("bos");
  std::vector<int64_t> ends = EndIds();
  // What the post-processor puts around a text.
  bool add_bos = false;
  bool add_eos = false;
  const Json& post = Member(tokenizer_, "post_processor");
  const Json& steps = Member(post, "processors");
  Json list = steps.is_array() ? steps : Json::array({post});
  for (const Json& step : list) {
    if (TextOf(Member(step, "type")) != "TemplateProcessing") continue;
    bool before = true;
    for (const Json& part : Member(step, "single")) {
      if (part.contains("Sequence")) {
        before = false;
        continue;
      }
      const std::string text = TextOf(Member(Member(part, "SpecialToken"), "id"));
      const auto id = ids_.find(text);
      if (id == ids_.end()) return Corrupt(where_ + ": post_processor: no token " + Quoted(text));
      if (before ? add_bos : add_eos) {
        return Unsupported(where_ +
                           ": post_processor: GGUF can put one token before a text and "
                           "one behind it, found more");
      }
      (before ? add_bos : add_eos) = true;
      if (before) bos = id->second;
      if (!before) {
        std::erase(ends, id->second);
        ends.insert(ends.begin(), id->second);
      }
    }
  }
  for (const auto& [key, adds] :
       {std::pair("add_bos_token", &add_bos), std::pair("add_eos_token", &add_eos)}) {
    const Json& overruled = Member(tokenizer_config_, key);
    if (overruled.is_boolean()) *adds = overruled.get<bool>();
  }
  add_bos = add_bos && bos;
  add_eos = add_eos && !ends.empty();
  const auto add = [&](const char* name, std::optional<int64_t> id) {
    if (id) out_.Int("tokenizer.ggml." + std::string(name), static_cast<uint32_t>(*id));
  };
  add("bos_token_id", bos);
  constexpr const char* kEnds[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  for (size_t i = 0; i < std::min(ends.size(), std::size(kEnds)); ++i) add(kEnds[i], ends[i]);
  for (size_t i = std::size(kEnds); i < ends.size(); ++i) {
    warnings_.push_back("token " + Quoted(tokens_[static_cast<size_t>(ends[i])]) +
                        " ends a text too, but GGUF has room for three: left out");
  }
  const auto unknown = ids_.find(TextOf(Member(Member(tokenizer_, "model"), "unk_token")));
  if (unknown != ids_.end()) add("unknown_token_id", unknown->second);
  add("padding_token_id", IdOfConfig("pad"));
  out_.Bool("tokenizer.ggml.add_bos_token", add_bos);
  out_.Bool("tokenizer.ggml.add_eos_token", add_eos);
  return Status::Ok();
}

Status Writer::AddTemplates(const std::string& jinja) {
  constexpr const char* kKey = "tokenizer.chat_template";
  const Json& templates = Member(tokenizer_config_, "chat_template");
  std::string main = jinja;
  if (main.empty()) main = TextOf(templates);
  if (templates.is_array()) {
    for (const Json& entry : templates) {
      const std::string name = TextOf(Member(entry, "name"));
      const std::string text = TextOf(Member(entry, "template"));
      if (name == "default") {
        if (main.empty()) main = text;
      } else if (!name.empty()) {
        out_.Text(kKey + ('.' + name), text);
      }
    }
  }
  if (!main.empty()) out_.Text(kKey, main);
  return Status::Ok();
}

}  // namespace

Result<TokenizerDocuments> ReadTokenizerDocuments(const WeightSource& source) {
  const std::vector<std::string> names = source.DocumentNames();
  const auto read = [&](const std::string& name) -> Result<std::string> {
    if (std::find(names.begin(), names.end(), name) == names.end()) return std::string();
    return source.ReadDocument(name);
  };
  TokenizerDocuments out;
  TQ_ASSIGN_OR_RETURN(out.tokenizer, read("tokenizer.json"));
  TQ_ASSIGN_OR_RETURN(out.tokenizer_config, read("tokenizer_config.json"));
  TQ_ASSIGN_OR_RETURN(out.generation_config, read("generation_config.json"));
  TQ_ASSIGN_OR_RETURN(out.config, read("config.json"));
  TQ_ASSIGN_OR_RETURN(out.chat_template, read("chat_template.jinja"));
  return out;
}

Status AddGgufTokenizer(const TokenizerDocuments& documents, int64_t num_rows,
                        const std::string& where, GgufMetadata& out,
                        std::vector<std::string>& warnings) {
  return Writer(num_rows, where, out, warnings).Run(documents);
}

}  // namespace tq
