// Small hand-written models of the kinds beside BPE: Unigram, WordPiece, tiktoken, SentencePiece.
#include <bit>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tokenizer/base64.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/word_cache.h"

namespace tq {
namespace {

using Ids = std::vector<int32_t>;

Result<std::unique_ptr<Tokenizer>> LoadJson(const Json& json) {
  return Tokenizer::Load(json.dump(), "");
}

Ids EncodeJson(const Json& json, std::string_view text) {
  const auto tokenizer = LoadJson(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? (*tokenizer)->Encode(text, {}) : Ids{};
}

void ExpectRefused(const Result<std::unique_ptr<Tokenizer>>& tokenizer, StatusCode code,
                   std::string_view words) {
  ASSERT_FALSE(tokenizer.ok()) << words;
  const std::string& message = tokenizer.status().message();
  EXPECT_EQ(tokenizer.status().code(), code) << message;
  EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

Json UnigramJson() {
  return Json::parse(
      R"({"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [
      ["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["ab", -2.0], ["abc", -9.0], ["c", -3.0],
      ["<0xC3>", -20.0], ["<0xA9>", -20.0], ["xy", -100.0]]}})");
}

TEST(Unigram, TheBestSumWins) {
  const Json json = UnigramJson();
  EXPECT_EQ(EncodeJson(json, "ab"), (Ids{3}));      // -2 against -2.5
  EXPECT_EQ(EncodeJson(json, "abc"), (Ids{3, 5}));  // -5 against -9
  EXPECT_EQ(EncodeJson(json, "ba"), (Ids{2, 1}));
  EXPECT_EQ(EncodeJson(json, ""), Ids{});
}

TEST(Unigram, UnknownRuns) {
  Json json = UnigramJson();
  EXPECT_EQ(EncodeJson(json, "a\xC3\xA9zb"), (Ids{1, 0, 2}));  // one for the run
  EXPECT_EQ(EncodeJson(json, "xy"), Ids{8});
  json["model"]["byte_fallback"] = true;
  EXPECT_EQ(EncodeJson(json, "a\xC3\xA9"), (Ids{1, 6, 7}));
  EXPECT_EQ(EncodeJson(json, "az"), (Ids{1, 0}));  // no token for the byte
  json["model"]["unk_id"] = nullptr;
  EXPECT_EQ(EncodeJson(json, "az"), Ids{1});
}

TEST(Unigram, BadFiles) {
  const auto refused = [](const char* part, const char* value, StatusCode code,
                          std::string_view words) {
    Json json = UnigramJson();
    json[Json::json_pointer(part)] = Json::parse(value);
    ExpectRefused(LoadJson(json), code, words);
  };
  refused("/model/vocab", "{}", StatusCode::kCorrupt, "expected a list");
  refused("/model/vocab/1", "[\"a\"]", StatusCode::kCorrupt, "vocab[1]");
  refused("/model/vocab/1", "[1, 2.0]", StatusCode::kCorrupt, "vocab[1]");
  refused("/model/vocab/2/0", "\"a\"", StatusCode::kCorrupt, "appears twice");
  refused("/model/unk_id", "9", StatusCode::kCorrupt, "unk_id");
  refused("/model/unk_id", "-1", StatusCode::kCorrupt, "unk_id");
  const std::string word = "\"" + std::string(2000, 'a') + "\"";
  refused("/model/vocab/1/0", word.c_str(), StatusCode::kUnsupported, "2000 bytes");
}

Json WordPieceJson() {
  return Json::parse(R"({"normalizer": {"type": "BertNormalizer"},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece"},
      "model": {"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 10,
        "vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "u": 4, "##n": 5, ",": 6, "do": 7,
                  "not": 8, "\u4e2d": 9, "a": 10, "##a": 11}}})");
}

TEST(WordPiece, LongestFirst) {
  const Json json = WordPieceJson();
  EXPECT_EQ(EncodeJson(json, "unaffable"), (Ids{1, 2, 3}));
  EXPECT_EQ(EncodeJson(json, "unaffablex"), Ids{0});  // the whole word
  EXPECT_EQ(EncodeJson(json, "UN,un"), (Ids{1, 6, 1}));
  EXPECT_EQ(EncodeJson(json, "aaaaaaaaaa"), (Ids{10, 11, 11, 11, 11, 11, 11, 11, 11, 11}));
  EXPECT_EQ(EncodeJson(json, "aaaaaaaaaaa"), Ids{0});  // more than ten characters
}

TEST(WordPiece, NormalizerAndDecoder) {
  const Json json = WordPieceJson();
  EXPECT_EQ(EncodeJson(json, "\xC3\xBCn"), Ids{1});  // accent off
  EXPECT_EQ(EncodeJson(json,
                       "a\xE4\xB8\xAD"
                       "a"),
            (Ids{10, 9, 10}));  // Chinese apart
  EXPECT_EQ(EncodeJson(json,
                       "u\x01n\xEF\xBF\xBD\t\xC2\xA0"
                       "a"),
            (Ids{1, 10}));  // controls out
  const auto tokenizer = std::move(LoadJson(json)).value();
  EXPECT_EQ(tokenizer->Decode(Ids{1, 2, 3, 6, 7, 8}, false), "unaffable, do not");
  EXPECT_EQ(tokenizer->TokenBytes(2), "aff");
}

TEST(WordPiece, BadFiles) {
  Json json = WordPieceJson();
  json["model"]["unk_token"] = "none";
  ExpectRefused(LoadJson(json), StatusCode::kCorrupt, "unk_token");
  json = WordPieceJson();
  json["model"]["max_input_chars_per_word"] = -1;
  ExpectRefused(LoadJson(json), StatusCode::kCorrupt, "max_input_chars_per_word");
}

TEST(Base64, StrictlyOrNotAtAll) {
  EXPECT_EQ(tok::DecodeBase64(""), "");
  EXPECT_EQ(tok::DecodeBase64("AA=="), std::string(1, '\0'));
  EXPECT_EQ(tok::DecodeBase64("/+8="), "\xFF\xEF");
  EXPECT_EQ(tok::DecodeBase64("aGVs"), "hel");
  for (const char* bad : {"A", "AA", "AAA", "A===", "AB==", "A A=", "AA==AA==", "====",
                          "\xFF"
                          "AAA"}) {
    EXPECT_FALSE(tok::DecodeBase64(bad)) << bad;
  }
}

constexpr std::string_view kKimiConfig =
    R"({"tokenizer_class": "TikTokenTokenizer", "bos_token": "[BOS]",
        "added_tokens_decoder": {"257": {"content": "[BOS]", "special": true}}})";

// All bytes, then "ab".
std::string Ranks() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string file;
  for (size_t byte = 0; byte < 256; ++byte) {
    file += kAlphabet[byte >> 2];
    file += kAlphabet[(byte & 3) << 4];
    file += "== " + std::to_string(byte) + "\n";
  }
  return file + "YWI= 256\n";
}

Result<std::unique_ptr<Tokenizer>> LoadRanks(std::string_view file, std::string_view config) {
  return Tokenizer::Load(TokenizerFiles{.tiktoken_model = file, .tokenizer_config_json = config});
}

TEST(Tiktoken, RanksAndReservedTokens) {
  const auto tokenizer = std::move(LoadRanks(Ranks(), kKimiConfig)).value();
  EXPECT_EQ(tokenizer->Encode("ab[BOS]a", {}), (Ids{256, 257, 'a'}));
  EXPECT_EQ(tokenizer->Encode("<|reserved_token_258|>", {}), Ids{258});
  EXPECT_EQ(tokenizer->vocab_size(), 257 + 256);
  const Ids plain = tokenizer->Encode("[BOS]", {.parse_special = false});
  EXPECT_EQ(plain, (Ids{'[', 'B', 'O', 'S', ']'}));
  EXPECT_EQ(tokenizer->Decode(plain, true), "[BOS]");
  // Line ends of Windows; the last line without one.
  std::string file = Ranks();
  file.pop_back();
  for (size_t at = file.find('\n'); at != std::string::npos; at = file.find('\n', at + 2)) {
    file.replace(at, 1, "\r\n");
  }
  EXPECT_EQ((*LoadRanks(file, kKimiConfig))->Encode("ab", {}), Ids{256});
}

TEST(Tiktoken, BadFiles) {
  const std::string good = Ranks();
  const auto refused = [&](const std::string& more, std::string_view words) {
    ExpectRefused(LoadRanks(good + more, kKimiConfig), StatusCode::kCorrupt, words);
  };
  refused("YWI=\n", "line 258: expected \"base64 rank\"");
  refused("Y! 257\n", "line 258");
  refused(" 257\n", "line 258");
  refused("YWM= x\n", "rank");
  refused("YWM= -1\n", "rank");
  refused("YWM= 99999999999999999999\n", "rank");
  refused("YWM= 257 x\n", "rank");
  refused("YWM= 256\n", "id 256 belongs to both");
  refused("YWI= 257\n", "appears twice");
  ExpectRefused(LoadRanks("YWI= 0\n", kKimiConfig), StatusCode::kCorrupt, "byte 0");
  ExpectRefused(LoadRanks(good, ""), StatusCode::kUnsupported, "TikTokenTokenizer");
  ExpectRefused(LoadRanks(good, R"({"tokenizer_class": "Other"})"), StatusCode::kUnsupported,
                "\"Other\"");
  // The same format under the other name.
  ExpectRefused(Tokenizer::Load(TokenizerFiles{.tokenizer_model = good}), StatusCode::kUnsupported,
                "tokenizer.model: the way to split");
}

// Protobuf, as far as a model file needs it.
std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string Bytes(uint32_t field, std::string_view bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}
std::string Number(uint32_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string SpPiece(std::string_view text, float score, uint64_t type) {
  const auto bits = std::bit_cast<uint32_t>(score);
  std::string fixed = Varint(2 << 3 | 5);
  for (int i = 0; i < 4; ++i) fixed += static_cast<char>(bits >> 8 * i & 0xFF);
  return Bytes(1, Bytes(1, text) + fixed + Number(3, type));
}

// <unk> <s> </s> _ a b _a ab U; U is user-defined.
std::string SpModel(uint64_t model_type, bool extra_spaces_go = false) {
  std::string file = SpPiece("<unk>", 0, 2) + SpPiece("<s>", 0, 3) + SpPiece("</s>", 0, 3);
  const std::pair<const char*, float> pieces[] = {{"\xE2\x96\x81", -5},
                                                  {"a", -4},
                                                  {"b", -4},
                                                  {"\xE2\x96\x81"
                                                   "a",
                                                   -3},
                                                  {"ab", -2}};
  for (const auto& [text, score] : pieces) file += SpPiece(text, score, 1);
  file += SpPiece("bU", 0, 4);
  file += Bytes(2, Number(3, model_type));
  return file + Bytes(3, Number(4, extra_spaces_go ? 1 : 0));
}

Result<std::unique_ptr<Tokenizer>> LoadSp(std::string_view model, std::string_view config = "") {
  return Tokenizer::Load(TokenizerFiles{.tokenizer_model = model, .tokenizer_config_json = config});
}

TEST(SentencePiece, BothKinds) {
  const auto bpe = std::move(LoadSp(SpModel(2))).value();
  EXPECT_EQ(bpe->Encode("ab", {}), (Ids{3, 7}));  // the better score first
  EXPECT_EQ(bpe->Encode("a", {.add_special_tokens = true}), (Ids{1, 6}));
  EXPECT_EQ(bpe->Encode("xyz", {}), (Ids{3, 0}));
  EXPECT_EQ(bpe->Encode("abU", {}), (Ids{6, 8}));  // the user's piece first of all
  EXPECT_EQ(bpe->Decode(Ids{3, 7, 0, 6}, false), "ab \xE2\x81\x87  a");
  EXPECT_EQ(bpe->Decode(Ids{1, 6, 2}, true), "a");
  const auto unigram = std::move(LoadSp(SpModel(1))).value();
  EXPECT_EQ(unigram->Encode("ab", {}), (Ids{3, 7}));  // -7, as the other way, which comes later
  EXPECT_EQ(unigram->Encode("abU", {}), (Ids{6, 8}));
  EXPECT_EQ(unigram->Encode("xyz", {}), (Ids{3, 0}));
}

TEST(SentencePiece, SpacesAndSpecials) {
  const auto keeps = std::move(LoadSp(SpModel(2))).value();
  EXPECT_EQ(keeps->Encode("  a ", {}), (Ids{3, 3, 6, 3}));
  const auto drops = std::move(LoadSp(SpModel(2, true))).value();
  EXPECT_EQ(drops->Encode("  a  a ", {}), (Ids{6, 6}));
  EXPECT_EQ(drops->Encode("   ", {}), Ids{});
  EXPECT_EQ(keeps->Encode("a</s>a", {}), (Ids{6, 2, 6}));
  EXPECT_GT(keeps->Encode("</s>", {.parse_special = false}).size(), 1u);
  // Without "legacy" only the start of the text gets the dummy prefix.
  const auto modern = std::move(LoadSp(SpModel(2), R"({"legacy": false})")).value();
  EXPECT_EQ(modern->Encode("a</s>a a", {}), (Ids{6, 2, 4, 6}));
}

TEST(SentencePiece, ConfigAndAddedTokens) {
  const std::string model = SpModel(2);
  const auto tokenizer = Tokenizer::Load(
      TokenizerFiles{.tokenizer_model = model,
                     .tokenizer_config_json = R"({"add_bos_token": false, "pad_token": "<pad>",
          "added_tokens_decoder": {"10": {"content": "<x>", "special": true}}})",
                     .added_tokens_json = R"({"<pad>": 9, "<y>": 11})"});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ((*tokenizer)->Encode("a<x><y><pad>", {.add_special_tokens = true}),
            (Ids{6, 10, 11, 9}));
  EXPECT_TRUE((*tokenizer)->IsSpecial(9));
  EXPECT_TRUE((*tokenizer)->IsSpecial(10));
  EXPECT_FALSE((*tokenizer)->IsSpecial(11));
  ExpectRefused(LoadSp(SpModel(2), R"({"tokenizer_class": "XLMRobertaTokenizerFast"})"),
                StatusCode::kUnsupported, "renumbers");
  const auto t5 = std::move(LoadSp(SpModel(1), R"({"tokenizer_class": "T5Tokenizer"})")).value();
  EXPECT_EQ(t5->Encode("a", {.add_special_tokens = true}), (Ids{6, 2}));
}

TEST(SentencePiece, BadFiles) {
  const std::string good = SpModel(1);
  const auto refused = [&](const std::string& file, StatusCode code, std::string_view words) {
    ExpectRefused(LoadSp(file), code, words);
  };
  using enum StatusCode;
  refused(good.substr(0, good.size() - 1), kCorrupt, "where 1 are left");
  refused(Varint(1 << 3 | 2) + Varint(uint64_t{1} << 40), kCorrupt, "bytes where 0 are left");
  refused(std::string(1, '\x0F'), kCorrupt, "wire type 7");
  refused(std::string(12, '\xFF'), kCorrupt, "64 bits");
  refused(Bytes(2, ""), kCorrupt, "with pieces, found none");
  refused(good + SpPiece("a", 0, 1), kCorrupt, "appears twice");
  refused(good + SpPiece("", 0, 1), kCorrupt, "empty");
  refused(good + SpPiece("\xFF", 0, 1), kCorrupt, "not UTF-8");
  refused(good + SpPiece("z", 0, 7), kUnsupported, "piece type");
  refused(good + SpPiece("z", 0, 2), kCorrupt, "type unknown, found 2");
  refused(good + SpPiece("z", std::bit_cast<float>(0x7FC00000), 1), kCorrupt, "finite");
  refused(good + SpPiece(std::string(1025, 'a'), 0, 1), kUnsupported, "1025 bytes");
  refused(good + Bytes(2, Number(3, 4)), kUnsupported, "model_type");
  refused(good + Bytes(2, Number(35, 1)), kCorrupt, "256 byte pieces");
  refused(good + Bytes(2, Bytes(35, "x")), kCorrupt, "wire type");
  refused(good + Bytes(3, Bytes(2, "abc")), kCorrupt, "charsmap");
  refused(good + Bytes(3, Bytes(2, std::string("\x08\0\0\0abcd", 8))), kCorrupt, "at most 4");
  refused(good + Bytes(5, Bytes(2, "x")), kUnsupported, "denormalizer");
  refused("no protobuf", kCorrupt, "SentencePiece model");
  ExpectRefused(Tokenizer::Load(TokenizerFiles{}), kNotFound, "tokenizer.model, found none");
}

// Whatever the bytes of a table are, a text comes out of it.
TEST(Charsmap, LyingTables) {
  std::string blob("\x10\0\0\0", 4);
  blob += std::string("\x00\xFF\xFF\xFF\x61\x05\x00\x00\xFF\xFF\xFF\x7F\x00\x00\x00\x80", 16);
  blob += "x";
  const auto map = tok::Charsmap::Parse(blob, "test");
  ASSERT_TRUE(map.ok()) << map.status().message();
  for (const char* text : {"a", "ab", "\x7F", "\xC3\xA9"}) {
    const auto match = map->Longest(text);
    EXPECT_TRUE(!match || match->length <= std::string_view(text).size());
  }
}

TEST(WordCache, KeepsWhatItIsToldAndNoMore) {
  tok::WordCache cache;
  Ids found;
  EXPECT_FALSE(cache.Find("a", &found));
  size_t hits = 0;
  for (int32_t i = 0; i < 200'000; ++i) {
    const std::string word = "w" + std::to_string(i);
    const Ids ids = {i, -i};
    cache.Add(word, ids);
    found = {7};
    if (!cache.Find(word, &found)) continue;  // its place may be taken
    ++hits;
    ASSERT_EQ(found, (Ids{7, i, -i}));
  }
  EXPECT_GT(hits, 150'000u);
  cache.Add(std::string(100, 'x'), Ids{1});
  EXPECT_FALSE(cache.Find(std::string(100, 'x'), &found));
}

TEST(Unicode, IsUtf8) {
  for (const char* good :
       {"", "a", "\xC3\xA9", "\xE2\x96\x81", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(tok::IsUtf8(good));
    EXPECT_EQ(tok::RepairUtf8(good), good);
  }
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xE2\x96", "\xE2\x96x"}) {
    EXPECT_FALSE(tok::IsUtf8(bad));
    EXPECT_TRUE(tok::IsUtf8(tok::RepairUtf8(bad)));
  }
}

}  // namespace
}  // namespace tq
