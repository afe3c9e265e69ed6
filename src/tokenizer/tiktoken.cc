#include "tokenizer/tiktoken.h"

#include <charconv>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizer/base64.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_chars.h"
#include "tokenizer/component.h"

namespace tq::tok {
namespace {

// Kimi's expression: Chinese apart from all else; words by case; numbers by three; the rest.
// clang-format off
constexpr std::string_view kKimiRegex =
    R"re([\p{Han}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
// clang-format on
constexpr int32_t kNumKimiSpecials = 256;

struct Entry {
  std::string bytes;
  int32_t rank;
};

// "base64 rank". The rank is the id.
Result<Entry> ParseLine(std::string_view line, const std::string& place) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return Corrupt(place + ": expected \"base64 rank\"");
  std::optional<std::string> bytes = DecodeBase64(line.substr(0, space));
  if (!bytes || bytes->empty()) {
    return Corrupt(place + ": expected Base64, found " + Quoted(line.substr(0, space)));
  }
  if (bytes->size() > kMaxTokenBytes) {
    return Unsupported(place + ": token of " + std::to_string(bytes->size()) + " bytes, at most " +
                       std::to_string(kMaxTokenBytes) + " are allowed");
  }
  const std::string_view number = line.substr(space + 1);
  int64_t rank = -1;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || rank < 0 ||
      rank > kMaxTokenId) {
    return Corrupt(place + ": expected a rank in 0.." + std::to_string(kMaxTokenId) + ", found " +
                   Quoted(number));
  }
  return Entry{std::move(*bytes), static_cast<int32_t>(rank)};
}

// Calls on_line(text, number) for each line with text; stops at the first error.
template <typename OnLine>
Status ForEachLine(std::string_view file, OnLine&& on_line) {
  size_t number = 0;
  while (!file.empty()) {
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) TQ_RETURN_IF_ERROR(on_line(line, number));
  }
  return Status::Ok();
}

// A pair may merge when what it spells is a token, at that token's rank.
void AddMerges(const std::vector<Entry>& entries, Bpe* bpe) {
  int32_t max_rank = -1;
  for (const Entry& entry : entries) max_rank = std::max(max_rank, entry.rank);
  bpe->id_of_rank.assign(static_cast<size_t>(max_rank + 1), -1);
  std::string chars;
  for (const Entry& entry : entries) {
    bpe->id_of_rank[static_cast<size_t>(entry.rank)] = entry.rank;
    chars.clear();
    AppendByteChars(entry.bytes, &chars);
    size_t cut = 0;  // byte characters have one or two bytes
    for (size_t i = 0; i + 1 < entry.bytes.size(); ++i) {
      cut += static_cast<unsigned char>(chars[cut]) < 0x80 ? 1 : 2;
      const int32_t left = bpe->vocabulary.Id(std::string_view(chars).substr(0, cut));
      if (left < 0) continue;
      const int32_t right = bpe->vocabulary.Id(std::string_view(chars).substr(cut));
      if (right < 0) continue;
      bpe->rank_of_pair.Set(Bpe::PairKey(left, right), static_cast<uint32_t>(entry.rank));
    }
  }
}

Status ReadEntries(std::string_view file, const std::string& where, Vocabulary* vocabulary,
                   std::vector<Entry>* entries) {
  return ForEachLine(file, [&](std::string_view line, size_t number) -> Status {
    const std::string place = where + ": line " + std::to_string(number);
    TQ_ASSIGN_OR_RETURN(Entry entry, ParseLine(line, place));
    std::string chars;
    AppendByteChars(entry.bytes, &chars);
    TQ_RETURN_IF_ERROR(vocabulary->Add(chars, entry.rank, place));
    entries->push_back(std::move(entry));
    return Status::Ok();
  });
}

Result<Bpe> ReadRanks(std::string_view file, const std::string& where) {
  Bpe bpe;
  bpe.ignore_merges = true;
  std::vector<Entry> entries;
  TQ_RETURN_IF_ERROR(ReadEntries(file, where, &bpe.vocabulary, &entries));
  for (int byte = 0; byte < 256; ++byte) {
    const char raw = static_cast<char>(byte);
    std::string chars;
    AppendByteChars({&raw, 1}, &chars);
    if (bpe.vocabulary.Id(chars) >= 0) continue;
    return Corrupt(where + ": expected a token for every byte, found none for byte " +
                   std::to_string(byte));
  }
  AddMerges(entries, &bpe);
  return bpe;
}

}  // namespace

bool LooksLikeTiktoken(std::string_view file) {
  const std::string_view line = file.substr(0, std::min(file.find('\n'), size_t{256}));
  return ParseLine(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line, "").ok();
}

Result<PipelineParts> LoadTiktokenParts(std::string_view file, const std::string& where,
                                        std::string_view tokenizer_class) {
  if (tokenizer_class != "TikTokenTokenizer") {
    return Unsupported(where + ": the way to split a text is known for tokenizer_class " +
                       "\"TikTokenTokenizer\" (Kimi), found " + Quoted(tokenizer_class) +
                       " in tokenizer_config.json: use a tokenizer.json instead");
  }
  PipelineParts parts;
  TQ_ASSIGN_OR_RETURN(Bpe bpe, ReadRanks(file, where));
  parts.model = MakeBpeModel(std::move(bpe));
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kKimiRegex}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  TQ_ASSIGN_OR_RETURN(
      parts.pre_tokenizer,
      MakePreTokenizer({{"type", "Sequence"}, {"pretokenizers", Json::array({split, bytes})}},
                       where));
  TQ_ASSIGN_OR_RETURN(parts.decoders, MakeDecoderChain({{"type", "ByteLevel"}}, where));
  return parts;
}

Status AddReservedTokens(const std::string& where, PipelineParts* parts) {
  const Vocabulary& model = parts->model->vocabulary();
  const int32_t first = model.max_id() + 1;
  for (int32_t id = first; id < first + kNumKimiSpecials; ++id) {
    if (parts->added_tokens.Find(id) != nullptr) continue;
    AddedToken token;
    token.content = "<|reserved_token_" + std::to_string(id) + "|>";
    token.id = id;
    token.special = true;
    TQ_RETURN_IF_ERROR(parts->added_tokens.Add(std::move(token), model, where));
  }
  return Status::Ok();
}

}  // namespace tq::tok
