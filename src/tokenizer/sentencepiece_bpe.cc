#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/unicode.h"
#include "tokenizer/word_cache.h"

namespace tq::tok {
namespace {

using Type = SentencePieceFile::Type;

struct ScoredBpe {
  Vocabulary vocabulary;
  std::vector<float> scores;  // by id
  std::vector<Type> types;
  std::array<int32_t, 256> byte_ids{};
  ByteTrie frozen;  // user-defined pieces: whole from the start, never merged
  int32_t unk_id = -1;
  bool byte_fallback = false;
  // No piece holds a mark behind something else: a text falls into words.
  bool cuts_at_marks = false;

  // The id of a piece that merges may make, or -1.
  int32_t TextId(std::string_view text) const {
    const int32_t id = vocabulary.Id(text);
    if (id < 0) return -1;
    const Type type = types[static_cast<size_t>(id)];
    return type == Type::kNormal || type == Type::kUserDefined || type == Type::kUnused ? id : -1;
  }
};

class ScoredBpeSession : public ModelSession {
 public:
  explicit ScoredBpeSession(const ScoredBpe& model) : model_(model) {}

  void Encode(std::string_view piece, std::vector<int32_t>* ids) override {
    const size_t first = ids->size();
    size_t begin = 0;
    if (model_.cuts_at_marks) {
      for (size_t at = piece.find(kSpaceMark, 1); at != std::string_view::npos;
           at = piece.find(kSpaceMark, at + 1)) {
        if (piece.substr(0, at).ends_with(kSpaceMark)) continue;
        EncodeWord(piece.substr(begin, at - begin), first, ids);
        begin = at;
      }
    }
    EncodeWord(piece.substr(begin), first, ids);
  }

 private:
  struct Symbol {
    size_t begin;
    size_t size;  // 0: merged into another
    int64_t prev;
    int64_t next;  // -1: none
    bool frozen;
  };
  struct Pair {
    float score;
    int64_t left;
    int64_t right;
    size_t size;
  };
  // The better score is on top of the heap, of equal ones the one further left.
  static bool IsWorse(const Pair& a, const Pair& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  }

  // Unknown characters side by side are one unknown token, over the borders of words.
  void EncodeWord(std::string_view word, size_t first, std::vector<int32_t>* ids) {
    word_ids_.clear();
    if (!cache_.Find(word, &word_ids_)) {
      Merge(word);
      for (int64_t at = 0; at >= 0; at = symbols_[static_cast<size_t>(at)].next) {
        const Symbol& symbol = symbols_[static_cast<size_t>(at)];
        Emit(word.substr(symbol.begin, symbol.size));
      }
      cache_.Add(word, word_ids_);
    }
    const bool joins = !word_ids_.empty() && word_ids_[0] == model_.unk_id && ids->size() > first &&
                       ids->back() == model_.unk_id;
    ids->insert(ids->end(), word_ids_.begin() + (joins ? 1 : 0), word_ids_.end());
  }

  void Merge(std::string_view word) {
    word_ = word;
    symbols_.clear();
    agenda_.clear();
    cuts_.clear();
    for (size_t at = 0; at < word.size();) {
      size_t length = 0;
      const bool frozen = model_.frozen.Longest(word.substr(at), &length) != ByteTrie::kNone;
      if (!frozen) {
        size_t pos = at;
        NextChar(word, &pos);
        length = pos - at;
      }
      const auto index = static_cast<int64_t>(symbols_.size());
      const bool is_last = at + length == word.size();
      symbols_.push_back({at, length, index - 1, is_last ? -1 : index + 1, frozen});
      at += length;
    }
    for (size_t i = 1; i < symbols_.size(); ++i) {
      Offer(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i));
    }
    while (!agenda_.empty()) {
      std::pop_heap(agenda_.begin(), agenda_.end(), &IsWorse);
      const Pair pair = agenda_.back();
      agenda_.pop_back();
      Symbol& left = symbols_[static_cast<size_t>(pair.left)];
      Symbol& right = symbols_[static_cast<size_t>(pair.right)];
      // The pair may be out of date: a side is gone or has grown.
      if (left.size == 0 || right.size == 0 || left.size + right.size != pair.size) continue;
      left.size += right.size;
      left.next = right.next;
      if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].prev = pair.left;
      right.size = 0;
      Offer(left.prev, pair.left);
      Offer(pair.left, left.next);
    }
  }

  void Offer(int64_t left, int64_t right) {
    if (left < 0 || right < 0) return;
    const Symbol& a = symbols_[static_cast<size_t>(left)];
    const Symbol& b = symbols_[static_cast<size_t>(right)];
    if (a.frozen || b.frozen) return;
    const std::string_view text = word_.substr(a.begin, a.size + b.size);
    const int32_t id = model_.TextId(text);
    if (id < 0) return;
    agenda_.push_back({model_.scores[static_cast<size_t>(id)], left, right, text.size()});
    std::push_heap(agenda_.begin(), agenda_.end(), &IsWorse);
    if (model_.types[static_cast<size_t>(id)] == Type::kUnused) cuts_[text] = a.size;
  }

  // The ids of a symbol. An unused piece only led to longer ones: it falls apart again.
  void Emit(std::string_view symbol) {
    std::vector<std::string_view> todo = {symbol};
    while (!todo.empty()) {
      const std::string_view text = todo.back();
      todo.pop_back();
      const int32_t id = model_.vocabulary.Id(text);
      const bool is_known = id >= 0 && model_.types[static_cast<size_t>(id)] != Type::kUnknown;
      const auto cut = cuts_.find(text);
      if (is_known && model_.types[static_cast<size_t>(id)] == Type::kUnused &&
          cut != cuts_.end()) {
        todo.push_back(text.substr(cut->second));
        todo.push_back(text.substr(0, cut->second));
      } else if (is_known) {
        word_ids_.push_back(id);
      } else if (model_.byte_fallback) {
        for (const char byte : text) {
          word_ids_.push_back(model_.byte_ids[static_cast<unsigned char>(byte)]);
        }
      } else if (word_ids_.empty() || word_ids_.back() != model_.unk_id) {
        word_ids_.push_back(model_.unk_id);
      }
    }
  }

  const ScoredBpe& model_;
  std::string_view word_;
  std::vector<Symbol> symbols_;
  std::vector<Pair> agenda_;
  std::map<std::string_view, size_t> cuts_;  // unused pieces: where their last merge joined them
  std::vector<int32_t> word_ids_;
  WordCache cache_;
};

class ScoredBpeModel : public TokenModel {
 public:
  explicit ScoredBpeModel(ScoredBpe model) : model_(std::move(model)) {}
  std::unique_ptr<ModelSession> StartSession() const override {
    return std::make_unique<ScoredBpeSession>(model_);
  }
  const Vocabulary& vocabulary() const override { return model_.vocabulary; }

 private:
  ScoredBpe model_;
};

bool HasInnerMark(std::string_view text) {
  for (size_t at = text.find(kSpaceMark, 1); at != std::string_view::npos;
       at = text.find(kSpaceMark, at + 1)) {
    if (!text.substr(0, at).ends_with(kSpaceMark)) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<TokenModel> MakeSentencePieceBpe(const SentencePieceFile& file,
                                                 Vocabulary vocabulary) {
  ScoredBpe model;
  model.byte_fallback = file.byte_fallback;
  model.cuts_at_marks = true;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    model.scores.push_back(piece.score);
    model.types.push_back(piece.type);
    if (piece.type == Type::kUnknown) model.unk_id = static_cast<int32_t>(i);
    if (piece.type == Type::kUserDefined) model.frozen.Insert(piece.text, 0);
    if (piece.type == Type::kUnused) model.cuts_at_marks = false;
    if (piece.IsText() && HasInnerMark(piece.text)) model.cuts_at_marks = false;
  }
  FindByteTokens(vocabulary, &model.byte_ids);
  model.vocabulary = std::move(vocabulary);
  return std::make_unique<ScoredBpeModel>(std::move(model));
}

}  // namespace tq::tok
