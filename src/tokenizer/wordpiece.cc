// WordPiece: of every word the longest token that it starts with, then of the rest, marked as a
// continuation. A word with a part that is no token is the unknown token as a whole.
#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/byte_trie.h"
#include "tokenizer/component.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

struct WordPiece {
  Vocabulary vocabulary;
  ByteTrie starts;         // tokens; values are ids
  ByteTrie continuations;  // tokens with the prefix, without it
  int32_t unk_id = -1;
  int64_t max_chars = 100;
};

class WordPieceSession : public ModelSession {
 public:
  explicit WordPieceSession(const WordPiece& model) : model_(model) {}

  void Encode(std::string_view word, std::vector<int32_t>* ids) override {
    const size_t first = ids->size();
    if (IsTooLong(word) || !EncodeWhole(word, ids)) {
      ids->resize(first);
      if (model_.unk_id >= 0) ids->push_back(model_.unk_id);
    }
  }

 private:
  bool IsTooLong(std::string_view word) const {
    int64_t num_chars = 0;
    for (size_t pos = 0; pos < word.size(); ++num_chars) NextChar(word, &pos);
    return num_chars > model_.max_chars;
  }

  bool EncodeWhole(std::string_view word, std::vector<int32_t>* ids) const {
    for (size_t begin = 0; begin < word.size();) {
      const ByteTrie& tokens = begin == 0 ? model_.starts : model_.continuations;
      size_t length = 0;
      const uint32_t id = tokens.Longest(word.substr(begin), &length);
      if (id == ByteTrie::kNone) return false;
      ids->push_back(static_cast<int32_t>(id));
      begin += length;
    }
    return true;
  }

  const WordPiece& model_;
};

class WordPieceModel : public TokenModel {
 public:
  explicit WordPieceModel(WordPiece model) : model_(std::move(model)) {}
  std::unique_ptr<ModelSession> StartSession() const override {
    return std::make_unique<WordPieceSession>(model_);
  }
  const Vocabulary& vocabulary() const override { return model_.vocabulary; }

 private:
  WordPiece model_;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> MakeWordPiece(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  WordPiece model;
  const std::string unk_token = reader.String("unk_token", "[UNK]");
  const std::string prefix = reader.String("continuing_subword_prefix", "##");
  model.max_chars = reader.Int("max_input_chars_per_word", 100);
  const Json* vocab = reader.Raw("vocab");
  TQ_RETURN_IF_ERROR(reader.status());
  if (vocab == nullptr) return Corrupt(where + ": vocab is missing");
  if (model.max_chars < 0) {
    return Corrupt(where + ": max_input_chars_per_word: expected a number >= 0, found " +
                   std::to_string(model.max_chars));
  }
  TQ_ASSIGN_OR_RETURN(model.vocabulary, Vocabulary::FromJson(*vocab, where + ": vocab"));
  for (const std::string& content : model.vocabulary.contents()) {
    if (content.size() > kMaxTokenBytes) {
      return Unsupported(where + ": vocab: token of " + std::to_string(content.size()) +
                         " bytes, at most " + std::to_string(kMaxTokenBytes) + " are allowed");
    }
    const auto id = static_cast<uint32_t>(model.vocabulary.Id(content));
    model.starts.Insert(content, id);
    if (content.starts_with(prefix)) model.continuations.Insert(content.substr(prefix.size()), id);
  }
  model.unk_id = model.vocabulary.Id(unk_token);
  if (model.unk_id < 0) {
    return Corrupt(where + ": unk_token: the vocabulary has no token " + Quoted(unk_token));
  }
  return std::unique_ptr<TokenModel>(std::make_unique<WordPieceModel>(std::move(model)));
}

}  // namespace tq::tok
