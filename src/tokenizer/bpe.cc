#include "tokenizer/bpe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "tokenizer/unicode.h"
#include "tokenizer/word_cache.h"

namespace tq::tok {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// A vocabulary and the tables that follow from it.
class IndexedBpe {
 public:
  explicit IndexedBpe(Bpe bpe) : bpe_(std::move(bpe)) {
    low_ids_.fill(-1);
    for (const std::string& content : bpe_.vocabulary.contents()) {
      size_t pos = 0;
      const char32_t c = content.empty() ? 0 : NextChar(content, &pos);
      if (pos == 0 || pos != content.size()) continue;
      const int32_t id = bpe_.vocabulary.Id(content);
      id_of_char_.Set(c, static_cast<uint32_t>(id));
      if (c < low_ids_.size()) low_ids_[c] = id;
    }
    FindByteTokens(bpe_.vocabulary, &byte_ids_);
    cuts_at_marks_ = CanCutAtMarks();
  }

  const Bpe& bpe() const { return bpe_; }
  int32_t IdOf(char32_t c) const {
    if (c < low_ids_.size()) return low_ids_[c];
    const uint32_t id = id_of_char_.Get(c);
    return id == FlatMap::kNone ? -1 : static_cast<int32_t>(id);
  }
  int32_t ByteId(char byte) const { return byte_ids_[static_cast<unsigned char>(byte)]; }
  uint32_t Rank(int32_t left, int32_t right) const {
    return bpe_.rank_of_pair.Get(Bpe::PairKey(left, right));
  }
  bool cuts_at_marks() const { return cuts_at_marks_; }

 private:
  // Whether no merge joins something with a space mark behind it: then a text without pre-tokenizer
  // falls into words that know nothing of each other.
  bool CanCutAtMarks() const {
    if (bpe_.ignore_merges || !bpe_.continuing_subword_prefix.empty() ||
        !bpe_.end_of_word_suffix.empty() || bpe_.vocabulary.Id(kSpaceMark) < 0) {
      return false;
    }
    for (const int32_t id : bpe_.id_of_rank) {
      const std::string_view content = bpe_.vocabulary.Content(id);
      for (size_t at = content.find(kSpaceMark, 1); at != std::string_view::npos;
           at = content.find(kSpaceMark, at + 1)) {
        if (!content.substr(0, at).ends_with(kSpaceMark)) return false;
      }
    }
    return true;
  }

  Bpe bpe_;
  FlatMap id_of_char_;                  // tokens of one character
  std::array<int32_t, 0x200> low_ids_;  // the same for the byte characters
  std::array<int32_t, 256> byte_ids_{};
  bool cuts_at_marks_ = false;
};

class BpeSession : public ModelSession {
 public:
  explicit BpeSession(const IndexedBpe& model) : model_(model), bpe_(model.bpe()) {}

  void Encode(std::string_view piece, std::vector<int32_t>* ids) override {
    if (!model_.cuts_at_marks()) return EncodeWord(piece, ids);
    size_t begin = 0;
    for (size_t at = piece.find(kSpaceMark, 1); at != std::string_view::npos;
         at = piece.find(kSpaceMark, at + 1)) {
      if (piece.substr(0, at).ends_with(kSpaceMark)) continue;
      EncodeWord(piece.substr(begin, at - begin), ids);
      begin = at;
    }
    EncodeWord(piece.substr(begin), ids);
  }

 private:
  static constexpr size_t kMaxScannedSymbols = 24;
  static constexpr int kPositionBits = 40;

  struct Symbol {
    int64_t prev;
    int64_t next;  // -1: none
    int32_t id;
    bool alive;
  };

  void EncodeWord(std::string_view word, std::vector<int32_t>* ids) {
    if (cache_.Find(word, ids)) return;
    const size_t first = ids->size();
    const int32_t whole = bpe_.ignore_merges ? bpe_.vocabulary.Id(word) : -1;
    if (whole >= 0) {
      ids->push_back(whole);
    } else {
      start_ids_.clear();
      StartSymbols(word);
      if (start_ids_.size() <= kMaxScannedSymbols) {
        MergeByScan();
      } else {
        MergeByHeap();
      }
      ids->insert(ids->end(), start_ids_.begin(), start_ids_.end());
    }
    cache_.Add(word, std::span(*ids).subspan(first));
  }

  void StartSymbols(std::string_view piece) {
    bool unk_waits = false;
    for (size_t pos = 0; pos < piece.size();) {
      std::string_view symbol;
      const int32_t id = NextSymbol(piece, &pos, &symbol);
      if (id >= 0) {
        if (std::exchange(unk_waits, false)) start_ids_.push_back(bpe_.unk_id);
        start_ids_.push_back(id);
        continue;
      }
      if (bpe_.byte_fallback && AddBytes(symbol)) continue;
      if (bpe_.unk_id < 0) continue;
      if (unk_waits && !bpe_.fuse_unk) start_ids_.push_back(bpe_.unk_id);
      unk_waits = true;
    }
    if (unk_waits) start_ids_.push_back(bpe_.unk_id);
  }

  // The id of the character at *pos, or -1; *symbol: with the prefix and suffix that apply.
  int32_t NextSymbol(std::string_view piece, size_t* pos, std::string_view* symbol) {
    const size_t begin = *pos;
    const char32_t c = NextChar(piece, pos);
    const bool prefixed = begin > 0 && !bpe_.continuing_subword_prefix.empty();
    const bool suffixed = *pos == piece.size() && !bpe_.end_of_word_suffix.empty();
    *symbol = piece.substr(begin, *pos - begin);
    if (!prefixed && !suffixed) return model_.IdOf(c);
    decorated_.clear();
    if (prefixed) decorated_ += bpe_.continuing_subword_prefix;
    decorated_ += *symbol;
    if (suffixed) decorated_ += bpe_.end_of_word_suffix;
    *symbol = decorated_;
    return bpe_.vocabulary.Id(decorated_);
  }

  // False, adding nothing, when one of the bytes has no token.
  bool AddBytes(std::string_view bytes) {
    if (std::any_of(bytes.begin(), bytes.end(), [&](char b) { return model_.ByteId(b) < 0; })) {
      return false;
    }
    for (const char byte : bytes) start_ids_.push_back(model_.ByteId(byte));
    return true;
  }

  // Short words: look for the best pair each time. start_ids_ in and out.
  void MergeByScan() {
    std::array<uint32_t, kMaxScannedSymbols> ranks;
    std::vector<int32_t>& symbols = start_ids_;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      ranks[i] = model_.Rank(symbols[i], symbols[i + 1]);
    }
    while (symbols.size() > 1) {
      const auto ranks_end = ranks.begin() + static_cast<std::ptrdiff_t>(symbols.size() - 1);
      const auto best = std::min_element(ranks.begin(), ranks_end);
      if (*best == FlatMap::kNone) return;
      const auto at = static_cast<size_t>(best - ranks.begin());
      symbols[at] = bpe_.id_of_rank[*best];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      std::copy(best + 1, ranks_end, best);
      if (at + 1 < symbols.size()) ranks[at] = model_.Rank(symbols[at], symbols[at + 1]);
      if (at > 0) ranks[at - 1] = model_.Rank(symbols[at - 1], symbols[at]);
    }
  }

  // Long ones: O(n log n). start_ids_ in and out.
  void MergeByHeap() {
    symbols_.clear();
    for (size_t i = 0; i < start_ids_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      symbols_.push_back({at - 1, i + 1 < start_ids_.size() ? at + 1 : -1, start_ids_[i], true});
    }
    MergeAll();
    start_ids_.clear();
    for (int64_t at = 0; at >= 0; at = symbols_[static_cast<size_t>(at)].next) {
      start_ids_.push_back(symbols_[static_cast<size_t>(at)].id);  // the first one always lives
    }
  }

  // *entry: the heap entry of the pair that starts at `at`: rank above position. False: no merge
  // there.
  bool Candidate(int64_t at, uint64_t* entry) const {
    const Symbol& symbol = symbols_[static_cast<size_t>(at)];
    if (symbol.next < 0) return false;
    const uint32_t rank = model_.Rank(symbol.id, symbols_[static_cast<size_t>(symbol.next)].id);
    if (rank == FlatMap::kNone) return false;
    *entry = static_cast<uint64_t>(rank) << kPositionBits | static_cast<uint64_t>(at);
    return true;
  }

  void Push(int64_t at) {
    uint64_t entry = 0;
    if (at < 0 || !Candidate(at, &entry)) return;
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // The pairs of the start are sorted once; only pairs that merges make go through the heap.
  void MergeAll() {
    start_.clear();
    heap_.clear();
    uint64_t entry = 0;
    for (size_t at = 0; at + 1 < symbols_.size(); ++at) {
      if (Candidate(static_cast<int64_t>(at), &entry)) start_.push_back(entry);
    }
    std::sort(start_.begin(), start_.end());
    size_t num_taken = 0;
    while (num_taken < start_.size() || !heap_.empty()) {
      if (heap_.empty() || (num_taken < start_.size() && start_[num_taken] < heap_.front())) {
        entry = start_[num_taken++];
      } else {
        entry = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
        heap_.pop_back();
      }
      Merge(entry);
    }
  }

  void Merge(uint64_t entry) {
    const auto at = static_cast<int64_t>(entry & ((uint64_t{1} << kPositionBits) - 1));
    Symbol& left = symbols_[static_cast<size_t>(at)];
    uint64_t now = 0;
    // The entry may be out of date: the pair must still give the same token.
    if (!left.alive || !Candidate(at, &now)) return;
    const int32_t id = bpe_.id_of_rank[entry >> kPositionBits];
    if (bpe_.id_of_rank[now >> kPositionBits] != id) return;
    Symbol& right = symbols_[static_cast<size_t>(left.next)];
    right.alive = false;
    left.id = id;
    left.next = right.next;
    if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].prev = at;
    Push(left.prev);
    Push(at);
  }

  const IndexedBpe& model_;
  const Bpe& bpe_;
  std::vector<int32_t> start_ids_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> start_;
  std::vector<uint64_t> heap_;
  std::string decorated_;
  WordCache cache_;
};

class BpeModel : public TokenModel {
 public:
  explicit BpeModel(Bpe bpe) : model_(std::move(bpe)) {}
  std::unique_ptr<ModelSession> StartSession() const override {
    return std::make_unique<BpeSession>(model_);
  }
  const Vocabulary& vocabulary() const override { return model_.bpe().vocabulary; }

 private:
  IndexedBpe model_;
};

}  // namespace

std::unique_ptr<TokenModel> MakeBpeModel(Bpe bpe) {
  return std::make_unique<BpeModel>(std::move(bpe));
}

}  // namespace tq::tok
