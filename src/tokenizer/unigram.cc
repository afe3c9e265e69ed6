#include "tokenizer/unigram.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

class UnigramSession : public ModelSession {
 public:
  explicit UnigramSession(const Unigram& unigram) : unigram_(unigram) {}

  void Encode(std::string_view piece, std::vector<int32_t>* ids) override {
    FindBestPath(piece);
    path_.clear();
    for (size_t end = piece.size(); end > 0; end = nodes_[end].begin) path_.push_back(end);
    std::reverse(path_.begin(), path_.end());
    for (size_t i = 0; i < path_.size(); ++i) {
      const Node& node = nodes_[path_[i]];
      if (!node.is_unknown) {
        ids->push_back(node.id);
        continue;
      }
      while (i + 1 < path_.size() && nodes_[path_[i + 1]].is_unknown) ++i;
      AddUnknownRun(piece.substr(node.begin, path_[i] - node.begin), ids);
    }
  }

 private:
  static constexpr size_t kUnreached = ~size_t{0};
  // The best path that ends at a byte.
  struct Node {
    double score = 0.0;
    size_t begin = kUnreached;  // of its last token
    int32_t id = -1;
    bool is_unknown = false;
  };

  void FindBestPath(std::string_view piece) {
    nodes_.assign(piece.size() + 1, Node());
    for (size_t begin = 0; begin < piece.size();) {
      const double before = nodes_[begin].score;
      size_t char_end = begin;
      NextChar(piece, &char_end);
      bool has_char = false;
      unigram_.trie.ForEachPrefix(piece.substr(begin), [&](size_t length, uint32_t value) {
        const auto id = static_cast<int32_t>(value);
        Offer(begin, begin + length, before + unigram_.scores[value], id, id == unigram_.unk_id);
        if (begin + length == char_end) has_char = true;
      });
      if (!has_char) {
        Offer(begin, char_end, before + unigram_.unk_score, unigram_.unk_id, true);
      }
      begin = char_end;
    }
  }

  double Rounded(double score) const {
    return unigram_.single_precision ? static_cast<double>(static_cast<float>(score)) : score;
  }

  void Offer(size_t begin, size_t end, double score, int32_t id, bool is_unknown) {
    Node& node = nodes_[end];
    score = Rounded(score);
    if (node.begin != kUnreached && score <= node.score) return;
    node = {score, begin, id, is_unknown};
  }

  void AddUnknownRun(std::string_view run, std::vector<int32_t>* ids) {
    if (unigram_.looks_up_unknown_runs) {
      const int32_t id = unigram_.vocabulary.Id(run);
      if (id >= 0) {
        ids->push_back(id);
        return;
      }
    }
    const auto id_of = [&](char c) { return unigram_.byte_ids[static_cast<unsigned char>(c)]; };
    if (unigram_.byte_fallback &&
        std::all_of(run.begin(), run.end(), [&](char c) { return id_of(c) >= 0; })) {
      for (const char c : run) ids->push_back(id_of(c));
    } else if (unigram_.unk_id >= 0) {
      ids->push_back(unigram_.unk_id);
    }
  }

  const Unigram& unigram_;
  std::vector<Node> nodes_;
  std::vector<size_t> path_;
};

class UnigramModel : public TokenModel {
 public:
  explicit UnigramModel(Unigram unigram) : unigram_(std::move(unigram)) {}
  std::unique_ptr<ModelSession> StartSession() const override {
    return std::make_unique<UnigramSession>(unigram_);
  }
  const Vocabulary& vocabulary() const override { return unigram_.vocabulary; }

 private:
  Unigram unigram_;
};

// The f64 nearest to 10^exponent, for 0 <= exponent <= 300.
double PowerOfTen(int exponent) {
  const std::string text = "1e" + std::to_string(exponent);
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The score as the reference reads it: its digits as an integer, divided by a power of ten. That is
// not always the nearest f64, and paths of equal worth differ by less.
double AsTheReferenceReads(double score) {
  constexpr double kLimit = 1e18;
  const double size = std::fabs(score);
  if (size < 1e-280 || size >= kLimit) return score;
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size,
                                 std::chars_format::scientific);
  uint64_t significand = 0;
  int exponent = 0;
  const char* at = digits.data();
  for (bool behind_point = false; at != end.ptr && *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    significand = 10 * significand + static_cast<uint64_t>(*at - '0');
    if (behind_point) --exponent;
  }
  int written = 0;
  const bool is_negative = at + 1 < end.ptr && at[1] == '-';
  std::from_chars(at + 2, end.ptr, written);
  exponent += is_negative ? -written : written;
  const auto integer = static_cast<double>(significand);
  const double value =
      exponent >= 0 ? integer * PowerOfTen(exponent) : integer / PowerOfTen(-exponent);
  return score < 0 ? -value : value;
}

// The "vocab" of tokenizer.json: [[content, score], ...], ids in order.
Status ReadScoredVocab(const Json& vocab, const std::string& where, Unigram* unigram) {
  if (!vocab.is_array()) return Corrupt(where + ": expected a list, found " + vocab.type_name());
  if (vocab.size() > static_cast<size_t>(kMaxTokenId)) {
    return Corrupt(where + ": " + std::to_string(vocab.size()) + " entries, at most " +
                   std::to_string(kMaxTokenId) + " are allowed");
  }
  double min_score = 0.0;
  for (size_t i = 0; i < vocab.size(); ++i) {
    const Json& entry = vocab[i];
    const auto place = [&] { return where + "[" + std::to_string(i) + "]"; };
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return Corrupt(place() + ": expected [content, score]");
    }
    const auto& content = entry[0].get_ref<const std::string&>();
    const double score = AsTheReferenceReads(entry[1].get<double>());
    if (!std::isfinite(score)) return Corrupt(place() + ": score: expected a finite number");
    if (content.size() > kMaxTokenBytes) {
      return Unsupported(place() + ": token of " + std::to_string(content.size()) +
                         " bytes, at most " + std::to_string(kMaxTokenBytes) + " are allowed");
    }
    TQ_RETURN_IF_ERROR(unigram->vocabulary.Add(content, static_cast<int32_t>(i), where));
    unigram->trie.Insert(content, static_cast<uint32_t>(i));
    unigram->scores.push_back(score);
    min_score = i == 0 ? score : std::min(min_score, score);
  }
  unigram->unk_score = min_score - kUnknownPenalty;
  return Status::Ok();
}

}  // namespace

std::unique_ptr<TokenModel> MakeUnigramModel(Unigram unigram) {
  return std::make_unique<UnigramModel>(std::move(unigram));
}

Result<std::unique_ptr<TokenModel>> MakeUnigram(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  Unigram unigram;
  unigram.looks_up_unknown_runs = true;
  unigram.byte_fallback = reader.Bool("byte_fallback", false);
  const Json* vocab = reader.Raw("vocab");
  const Json* unk_id = reader.Raw("unk_id");
  TQ_RETURN_IF_ERROR(reader.status());
  if (vocab == nullptr) return Corrupt(where + ": vocab is missing");
  TQ_RETURN_IF_ERROR(ReadScoredVocab(*vocab, where + ": vocab", &unigram));
  if (unk_id != nullptr) {
    TQ_ASSIGN_OR_RETURN(unigram.unk_id, ParseTokenId(*unk_id, where + ": unk_id"));
    if (!unigram.vocabulary.Contains(unigram.unk_id)) {
      return Corrupt(where + ": unk_id: expected an id of the vocabulary, found " +
                     std::to_string(unigram.unk_id));
    }
  }
  FindByteTokens(unigram.vocabulary, &unigram.byte_ids);
  return MakeUnigramModel(std::move(unigram));
}

}  // namespace tq::tok
