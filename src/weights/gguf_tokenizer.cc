#include "weights/gguf_tokenizer.h"

#include <unordered_map>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_pretokenizer.h"
#include "weights/quote.h"
#include "weights/spm_merges.h"

namespace tq {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

class Builder {
 public:
  Builder(GgufKeys& keys, const GgufVocab& vocab) : keys_(keys), vocab_(vocab) {}

  Result<Json> Build() {
    TQ_RETURN_IF_ERROR(CheckTexts());
    json_ = {{"version", "1.0"},
             {"truncation", nullptr},
             {"padding", nullptr},
             {"normalizer", nullptr},
             {"pre_tokenizer", nullptr}};
    if (vocab_.model == "gpt2") {
      BuildByteLevel();
    } else if (vocab_.model == "llama") {
      BuildSentencePiece();
    } else {
      keys_.Refuse("tokenizer.ggml.model",
                   "expected \"gpt2\" or \"llama\", found " + Quoted(vocab_.model));
    }
    TQ_RETURN_IF_ERROR(keys_.status());
    AddTokens();
    AddPostProcessor();
    TQ_RETURN_IF_ERROR(keys_.status());
    return std::move(json_);
  }

 private:
  Status CheckTexts();
  void BuildByteLevel();
  void BuildSentencePiece();
  Json BpeModel() const;
  Json ByteLevelMerges();
  Json SentencePieceMerges();
  void AddTokens();
  void AddPostProcessor();
  bool IsSpecial(int64_t id) const;

  GgufKeys& keys_;
  const GgufVocab& vocab_;
  std::vector<std::string> texts_;  // of the tokens, as tokenizer.json spells them
  Json json_;
};

// The texts of all tokens: UTF-8, each once.
Status Builder::CheckTexts() {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < vocab_.tokens.size(); ++i) {
    if (!IsUtf8(vocab_.tokens[i])) {
      keys_.Bad(kTokens, "token " + std::to_string(i) + " is not UTF-8");
    }
    const auto [it, inserted] = ids.emplace(vocab_.tokens[i], i);
    if (!inserted) {
      keys_.Bad(kTokens, "tokens " + std::to_string(it->second) + " and " + std::to_string(i) +
                             " are both " + Quoted(vocab_.tokens[i]));
    }
    TQ_RETURN_IF_ERROR(keys_.status());
  }
  texts_.assign(vocab_.tokens.begin(), vocab_.tokens.end());
  if (vocab_.model != "llama") return Status::Ok();
  // Writers of SentencePiece vocabularies store user-defined tokens with plain spaces.
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (vocab_.types[i] != GgufTokenType::kUserDefined) continue;
    std::string text = texts_[i];
    for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at)) {
      text.replace(at, 1, kSpaceMark);
    }
    if (!ids.contains(text)) texts_[i] = text;
  }
  return Status::Ok();
}

bool Builder::IsSpecial(int64_t id) const {
  if (vocab_.Type(id) == GgufTokenType::kControl || vocab_.Type(id) == GgufTokenType::kUnknown) {
    return true;
  }
  return id == vocab_.bos || id == vocab_.eos || id == vocab_.eot || id == vocab_.eom;
}

Json Builder::BpeModel() const {
  Json vocab = Json::object();
  for (size_t i = 0; i < texts_.size(); ++i) vocab.emplace(texts_[i], i);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)}};
}

Json Builder::ByteLevelMerges() {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  Json out = Json::array();
  const GgufValue* merges = keys_.Array(kKey);
  if (merges == nullptr) return out;
  if (merges->type != GgufType::kString && merges->count > 0) {
    keys_.Bad(kKey, "expected strings, found " + merges->TypeName());
  }
  for (size_t i = 0; i < merges->strings.size(); ++i) {
    const std::string_view text = merges->strings[i];
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size() || !IsUtf8(text)) {
      keys_.Bad(kKey,
                "merge " + std::to_string(i) + ": expected two UTF-8 texts, found " + Quoted(text));
      return out;
    }
    out.push_back({std::string(text.substr(0, space)), std::string(text.substr(space + 1))});
  }
  return out;
}

void Builder::BuildByteLevel() {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  const std::string pre = keys_.String(kKey, "");
  const std::optional<GgufPreTokenizer> found = FindGgufPreTokenizer(pre);
  if (!found) {
    keys_.Refuse(kKey, "unknown pre-tokenizer " + Quoted(pre) +
                           " (known: " + KnownGgufPreTokenizers() + ")");
    return;
  }
  json_["normalizer"] = found->normalizer;
  json_["pre_tokenizer"] = found->pre_tokenizer;
  json_["decoder"] = {{"type", "ByteLevel"},
                      {"add_prefix_space", true},
                      {"trim_offsets", true},
                      {"use_regex", true}};
  json_["model"] = BpeModel();
  json_["model"]["ignore_merges"] = found->ignore_merges;
  json_["model"]["merges"] = ByteLevelMerges();
}

Json Builder::SentencePieceMerges() {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  Json out = Json::array();
  const GgufValue* scores = keys_.Array(kKey);
  if (scores == nullptr) return out;
  if (scores->type != GgufType::kF32 || scores->count != texts_.size()) {
    keys_.Bad(kKey, "expected " + std::to_string(texts_.size()) + " f32, found " +
                        std::to_string(scores->count) + " items, " + scores->TypeName());
    return out;
  }
  std::vector<float> values(texts_.size());
  std::vector<bool> usable(texts_.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(scores->FloatAt(i).value_or(0.0));
    if (values[i] != values[i]) {
      keys_.Bad(kKey, "score " + std::to_string(i) + " is not a number");
      return out;
    }
    usable[i] = vocab_.types[i] == GgufTokenType::kNormal ||
                vocab_.types[i] == GgufTokenType::kUserDefined ||
                vocab_.types[i] == GgufTokenType::kUnused;
  }
  const std::vector<std::string_view> pieces(texts_.begin(), texts_.end());
  for (const Merge& merge : DeriveSpmMerges(pieces, values, usable)) {
    out.push_back({std::string(merge.first), std::string(merge.second)});
  }
  return out;
}

void Builder::BuildSentencePiece() {
  const bool prefix = keys_.Bool("tokenizer.ggml.add_space_prefix", true);
  const std::string mark(kSpaceMark);
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}};
  Json decoders =
      Json::array({{{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}}});
  json_["normalizer"] = replace;
  if (prefix) {
    json_["normalizer"] = {
        {"type", "Sequence"},
        {"normalizers", Json::array({{{"type", "Prepend"}, {"prepend", mark}}, replace})}};
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  json_["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  json_["model"] = BpeModel();
  json_["model"]["byte_fallback"] = true;
  json_["model"]["fuse_unk"] = true;
  if (vocab_.unknown) {
    json_["model"]["unk_token"] = texts_[static_cast<size_t>(*vocab_.unknown)];
  }
  json_["model"]["merges"] = SentencePieceMerges();
}

void Builder::AddTokens() {
  Json added = Json::array();
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    const bool special = IsSpecial(id);
    if (texts_[i].empty() || (!special && vocab_.Type(id) != GgufTokenType::kUserDefined)) continue;
    added.push_back({{"id", id},
                     {"content", texts_[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  }
  json_["added_tokens"] = std::move(added);
}

void Builder::AddPostProcessor() {
  Json single = Json::array();
  Json pair = Json::array();
  Json specials = Json::object();
  const auto add = [&](std::string_view key, const std::optional<int64_t>& id) {
    if (!id) {
      keys_.Bad(key, "is true, but the file names no such token");
      return;
    }
    const std::string& text = texts_[static_cast<size_t>(*id)];
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    pair.push_back(single.back());
    specials[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
  };
  json_["post_processor"] = nullptr;
  const bool add_bos = GgufAddsBos(keys_, vocab_);
  const bool add_eos = keys_.Bool("tokenizer.ggml.add_eos_token", false);
  if (!add_bos && !add_eos) return;
  if (add_bos) add("tokenizer.ggml.add_bos_token", vocab_.bos);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back(single.back());
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  if (add_eos) add("tokenizer.ggml.add_eos_token", vocab_.eos);
  json_["post_processor"] = {{"type", "TemplateProcessing"},
                             {"single", single},
                             {"pair", pair},
                             {"special_tokens", specials}};
}

}  // namespace

bool GgufAddsBos(GgufKeys& keys, const GgufVocab& vocab) {
  bool add = vocab.model == "llama";
  if (const auto pre = FindGgufPreTokenizer(keys.String("tokenizer.ggml.pre", ""));
      pre && vocab.model == "gpt2") {
    add = pre->add_bos;
  }
  return keys.Bool("tokenizer.ggml.add_bos_token", add);
}

Result<Json> BuildGgufTokenizer(GgufKeys& keys) {
  TQ_ASSIGN_OR_RETURN(const GgufVocab vocab, ReadGgufVocab(keys));
  return Builder(keys, vocab).Build();
}

}  // namespace tq
