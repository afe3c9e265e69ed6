// The "model" object of tokenizer.json -> BPE.
#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/bpe.h"
#include "tokenizer/component.h"

namespace tq::tok {
namespace {

constexpr size_t kMaxMerges = size_t{1} << 24;

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
    bpe->rank_of_pair.Set(Bpe::PairKey(parts[0].second, parts[1].second),
                          static_cast<uint32_t>(bpe->id_of_rank.size()));
    bpe->id_of_rank.push_back(parts[2].second);
  }
  return Status::Ok();
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
  if (!unk_token.empty()) bpe.unk_id = bpe.vocabulary.Id(unk_token);
  return MakeBpeModel(std::move(bpe));
}

}  // namespace tq::tok
