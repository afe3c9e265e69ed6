// BPE: starts from the characters of a piece (or bytes, or the unknown token) and joins the pair of
// lowest rank until none is left. Both spellings: byte-level and SentencePiece-like.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/flat_map.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

constexpr size_t kMaxMerges = size_t{1} << 24;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

struct Bpe {
  Vocabulary vocabulary;
  FlatMap id_of_char;  // tokens of one character
  std::array<int32_t, 256> byte_ids;
  FlatMap rank_of_pair;
  std::vector<int32_t> id_of_rank;  // what a pair becomes
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  int32_t unk_id = -1;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;

  int32_t IdOf(char32_t c) const {
    const uint32_t id = id_of_char.Get(c);
    return id == FlatMap::kNone ? -1 : static_cast<int32_t>(id);
  }
};

class BpeSession : public ModelSession {
 public:
  explicit BpeSession(const Bpe& bpe) : bpe_(bpe) {}

  void Encode(std::string_view piece, std::vector<int32_t>* ids) override {
    if (bpe_.ignore_merges) {
      const int32_t whole = bpe_.vocabulary.Id(piece);
      if (whole >= 0) {
        ids->push_back(whole);
        return;
      }
    }
    const bool remember = piece.size() <= kMaxCachedBytes;
    if (remember) {
      const auto it = words_.find(piece);
      if (it != words_.end()) {
        ids->insert(ids->end(), it->second.begin(), it->second.end());
        return;
      }
    }
    const size_t first = ids->size();
    StartSymbols(piece);
    MergeAll();
    if (!symbols_.empty()) {  // the first symbol is never merged away
      for (int64_t at = 0; at >= 0; at = symbols_[static_cast<size_t>(at)].next) {
        ids->push_back(symbols_[static_cast<size_t>(at)].id);
      }
    }
    if (remember && words_.size() < kMaxCachedWords) {
      words_.emplace(
          std::string(piece),
          std::vector<int32_t>(ids->begin() + static_cast<std::ptrdiff_t>(first), ids->end()));
    }
  }

 private:
  static constexpr size_t kMaxCachedBytes = 64;
  static constexpr size_t kMaxCachedWords = 1 << 15;
  static constexpr int kPositionBits = 40;

  struct Symbol {
    int64_t prev;
    int64_t next;  // -1: none
    int32_t id;
    bool alive;
  };
  struct WordHash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };

  void AddSymbol(int32_t id) {
    const auto at = static_cast<int64_t>(symbols_.size());
    if (at > 0) symbols_.back().next = at;
    symbols_.push_back({at - 1, -1, id, true});
  }

  void StartSymbols(std::string_view piece) {
    symbols_.clear();
    bool unk_waits = false;
    for (size_t pos = 0; pos < piece.size();) {
      std::string_view symbol;
      const int32_t id = NextSymbol(piece, &pos, &symbol);
      if (id >= 0) {
        if (std::exchange(unk_waits, false)) AddSymbol(bpe_.unk_id);
        AddSymbol(id);
        continue;
      }
      if (bpe_.byte_fallback && AddBytes(symbol)) continue;
      if (bpe_.unk_id < 0) continue;
      if (unk_waits && !bpe_.fuse_unk) AddSymbol(bpe_.unk_id);
      unk_waits = true;
    }
    if (unk_waits) AddSymbol(bpe_.unk_id);
  }

  // The id of the character at *pos, or -1; *symbol: with the prefix and suffix that apply.
  int32_t NextSymbol(std::string_view piece, size_t* pos, std::string_view* symbol) {
    const size_t begin = *pos;
    const char32_t c = NextChar(piece, pos);
    const bool prefixed = begin > 0 && !bpe_.continuing_subword_prefix.empty();
    const bool suffixed = *pos == piece.size() && !bpe_.end_of_word_suffix.empty();
    *symbol = piece.substr(begin, *pos - begin);
    if (!prefixed && !suffixed) return bpe_.IdOf(c);
    decorated_.clear();
    if (prefixed) decorated_ += bpe_.continuing_subword_prefix;
    decorated_ += *symbol;
    if (suffixed) decorated_ += bpe_.end_of_word_suffix;
    *symbol = decorated_;
    return bpe_.vocabulary.Id(decorated_);
  }

  // False, adding nothing, when one of the bytes has no token.
  bool AddBytes(std::string_view bytes) {
    const auto id_of = [&](char byte) { return bpe_.byte_ids[static_cast<unsigned char>(byte)]; };
    if (std::any_of(bytes.begin(), bytes.end(), [&](char byte) { return id_of(byte) < 0; })) {
      return false;
    }
    for (const char byte : bytes) AddSymbol(id_of(byte));
    return true;
  }

  // The heap entry of the pair that starts at `at`: rank above position. False: no merge there.
  bool Candidate(int64_t at, uint64_t* entry) const {
    const Symbol& symbol = symbols_[static_cast<size_t>(at)];
    if (symbol.next < 0) return false;
    const uint32_t rank =
        bpe_.rank_of_pair.Get(PairKey(symbol.id, symbols_[static_cast<size_t>(symbol.next)].id));
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

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> start_;
  std::vector<uint64_t> heap_;
  std::string decorated_;
  std::unordered_map<std::string, std::vector<int32_t>, WordHash, std::equal_to<>> words_;
};

class BpeModel : public TokenModel {
 public:
  explicit BpeModel(Bpe bpe) : bpe_(std::move(bpe)) {}
  std::unique_ptr<ModelSession> StartSession() const override {
    return std::make_unique<BpeSession>(bpe_);
  }
  const Vocabulary& vocabulary() const override { return bpe_.vocabulary; }

 private:
  Bpe bpe_;
};

// One merge: "a b" or ["a", "b"].
Result<std::pair<std::string_view, std::string_view>> ParseMerge(const Json& json,
                                                                 const std::string& where) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return std::pair<std::string_view, std::string_view>(json[0].get_ref<const std::string&>(),
                                                         json[1].get_ref<const std::string&>());
  }
  if (json.is_string()) {
    const std::string_view text = json.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return Corrupt(where + ": expected \"left right\" or [\"left\", \"right\"]");
}

Status ReadMerges(const Json& merges, const std::string& where, Bpe* bpe) {
  if (!merges.is_array()) {
    return Corrupt(where + ": expected a list, found " + merges.type_name());
  }
  if (merges.size() > kMaxMerges) {
    return Corrupt(where + ": " + std::to_string(merges.size()) + " entries, at most " +
                   std::to_string(kMaxMerges) + " are allowed");
  }
  bpe->rank_of_pair.Reserve(merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    if (merges[i].is_string() && merges[i].get_ref<const std::string&>().starts_with("#version")) {
      continue;
    }
    const auto place = [&] { return where + "[" + std::to_string(i) + "]"; };
    const auto merge = ParseMerge(merges[i], std::string());
    if (!merge.ok()) return Corrupt(place() + merge.status().message());
    const auto [left, right] = *merge;
    joined.assign(left);
    joined += right.substr(std::min(right.size(), bpe->continuing_subword_prefix.size()));
    const std::pair<std::string_view, int32_t> parts[] = {{left, bpe->vocabulary.Id(left)},
                                                          {right, bpe->vocabulary.Id(right)},
                                                          {joined, bpe->vocabulary.Id(joined)}};
    for (const auto& [content, id] : parts) {
      if (id < 0) return Corrupt(place() + ": the vocabulary has no token " + Quoted(content));
    }
    bpe->rank_of_pair.Set(PairKey(parts[0].second, parts[1].second),
                          static_cast<uint32_t>(bpe->id_of_rank.size()));
    bpe->id_of_rank.push_back(parts[2].second);
  }
  return Status::Ok();
}

// Tables that follow from the vocabulary.
void IndexVocabulary(Bpe* bpe) {
  for (const std::string& content : bpe->vocabulary.contents()) {
    size_t pos = 0;
    const char32_t c = content.empty() ? 0 : NextChar(content, &pos);
    if (pos > 0 && pos == content.size()) {
      bpe->id_of_char.Set(c, static_cast<uint32_t>(bpe->vocabulary.Id(content)));
    }
  }
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string content = std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + '>';
    bpe->byte_ids[byte] = bpe->vocabulary.Id(content);
  }
}

}  // namespace

Result<std::unique_ptr<TokenModel>> MakeBpe(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  Bpe bpe;
  const double dropout = reader.Number("dropout", 0.0);
  const std::string unk_token = reader.String("unk_token", "");
  bpe.continuing_subword_prefix = reader.String("continuing_subword_prefix", "");
  bpe.end_of_word_suffix = reader.String("end_of_word_suffix", "");
  bpe.fuse_unk = reader.Bool("fuse_unk", false);
  bpe.byte_fallback = reader.Bool("byte_fallback", false);
  bpe.ignore_merges = reader.Bool("ignore_merges", false);
  const Json* vocab = reader.Raw("vocab");
  const Json* merges = reader.Raw("merges");
  TQ_RETURN_IF_ERROR(reader.status());
  if (vocab == nullptr || merges == nullptr) {
    return Corrupt(where + ": vocab or merges is missing");
  }
  if (dropout != 0.0) return Unsupported(where + ": dropout gives random ids; set it to null");
  TQ_ASSIGN_OR_RETURN(bpe.vocabulary, Vocabulary::FromJson(*vocab, where + ": vocab"));
  TQ_RETURN_IF_ERROR(ReadMerges(*merges, where + ": merges", &bpe));
  IndexVocabulary(&bpe);
  if (!unk_token.empty()) bpe.unk_id = bpe.vocabulary.Id(unk_token);
  return std::unique_ptr<TokenModel>(std::make_unique<BpeModel>(std::move(bpe)));
}

}  // namespace tq::tok
