// Small hand-written tokenizer files: each construct, and each way to be wrong.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace tq {
namespace {

using Ids = std::vector<int32_t>;

// Letters a..e are 0..4, then what the tests need.
Json Base() {
  return ParseJson(R"({
    "added_tokens": [{"id": 20, "content": "<s>", "special": true},
                     {"id": 21, "content": "</s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": false, "byte_fallback": false,
      "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "ab": 5, "abc": 6, " ": 7, "_": 8, "_a": 9,
                "<unk>": 10, "1": 11, "2": 12, "!": 13, "A": 14, "<0xC3>": 15, "<0xA9>": 16},
      "merges": ["a b", "ab c", "_ a"]}})",
                   "base")
      .value();
}

Result<std::unique_ptr<Tokenizer>> Load(const Json& json, std::string_view config = "") {
  return Tokenizer::Load(json.dump(), config);
}

Ids Encode(const Json& json, std::string_view text) {
  auto tokenizer = Load(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? (*tokenizer)->Encode(text, {}) : Ids{};
}

void ExpectRefused(const Json& json, StatusCode code, std::string_view words,
                   std::string_view config = "") {
  const auto tokenizer = Load(json, config);
  ASSERT_FALSE(tokenizer.ok()) << words;
  EXPECT_EQ(tokenizer.status().code(), code) << tokenizer.status().message();
  EXPECT_NE(tokenizer.status().message().find(words), std::string::npos)
      << tokenizer.status().message();
  EXPECT_EQ(tokenizer.status().message().find('\n'), std::string::npos);
}

TEST(Bpe, MergesByRankInBothSpellings) {
  Json json = Base();
  EXPECT_EQ(Encode(json, "abcab"), (Ids{6, 5}));
  json["model"]["merges"] = Json::parse(R"([["a", "b"], ["ab", "c"], ["_", "a"]])");
  EXPECT_EQ(Encode(json, "abcab"), (Ids{6, 5}));
  json["model"]["merges"] = Json::array({"#version: 0.2"});
  EXPECT_EQ(Encode(json, "ab"), (Ids{0, 1}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(Encode(json, "ab"), (Ids{5}));
  EXPECT_EQ(Encode(json, "abcd"), (Ids{0, 1, 2, 3}));
}

TEST(Bpe, UnknownCharacters) {
  Json json = Base();
  EXPECT_EQ(Encode(json, "axyb"), (Ids{0, 10, 10, 1}));
  json["model"]["fuse_unk"] = true;
  EXPECT_EQ(Encode(json, "axyb"), (Ids{0, 10, 1}));
  json["model"]["byte_fallback"] = true;
  EXPECT_EQ(Encode(json, "a\xC3\xA9x"), (Ids{0, 15, 16, 10}));
  json["model"]["unk_token"] = nullptr;
  EXPECT_EQ(Encode(json, "axyb"), (Ids{5}));
}

TEST(Normalizers, Each) {
  Json json = Base();
  json["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_EQ(Encode(json, "ABC"), (Ids{6}));
  json["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  EXPECT_EQ(Encode(json,
                   " \xE3\x80\x80"
                   "c "),
            (Ids{2, 7}));
  json["normalizer"] = {{"type", "NFKC"}};
  EXPECT_EQ(Encode(json, "\xEF\xBD\x81\xC2\xB2"), (Ids{0, 12}));  // full-width a, superscript 2
  json["normalizer"] = Json::parse(
      R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"},
          {"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"},
          {"type": "Prepend", "prepend": "_"}]})");
  EXPECT_EQ(Encode(json, "\xC3\xA1   a"), (Ids{9, 9}));
  EXPECT_EQ(Encode(json, ""), Ids{});
}

TEST(PreTokenizers, SplitBehaviors) {
  const auto ids = [](const char* behavior, bool invert) {
    Json json = Base();
    json["pre_tokenizer"] = {{"type", "Split"},
                             {"pattern", {{"String", "b"}}},
                             {"behavior", behavior},
                             {"invert", invert}};
    return Encode(json, "abcabb");
  };
  EXPECT_EQ(ids("Removed", false), (Ids{0, 2, 0}));
  EXPECT_EQ(ids("Removed", true), (Ids{1, 1, 1}));
  EXPECT_EQ(ids("Isolated", false), (Ids{0, 1, 2, 0, 1, 1}));
  EXPECT_EQ(ids("MergedWithPrevious", false), (Ids{5, 2, 5, 1}));
  EXPECT_EQ(ids("MergedWithNext", false), (Ids{0, 1, 2, 0, 1, 1}));
  EXPECT_EQ(ids("Contiguous", false), (Ids{0, 1, 2, 0, 1, 1}));
}

TEST(PreTokenizers, CharacterClasses) {
  Json json = Base();
  json["model"]["merges"] = Json::array();
  json["model"]["vocab"]["11"] = 17;
  json["model"]["merges"] = Json::array({"1 1"});
  json["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(Encode(json, "a11"), (Ids{0, 11, 11}));
  json["pre_tokenizer"]["individual_digits"] = false;
  EXPECT_EQ(Encode(json, "a11"), (Ids{0, 17}));
  json["pre_tokenizer"] = {{"type", "Whitespace"}};
  EXPECT_EQ(Encode(json, " 11 !a"), (Ids{17, 13, 0}));
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  EXPECT_EQ(Encode(json, " 11 !a "), (Ids{17, 13, 0}));
  json["pre_tokenizer"] = {{"type", "Punctuation"}};
  EXPECT_EQ(Encode(json, "1!1"), (Ids{11, 13, 11}));
}

TEST(PreTokenizers, MetaspaceSchemes) {
  Json json = Base();
  const auto ids = [&](const char* scheme, std::string_view text) {
    json["pre_tokenizer"] = {
        {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", scheme}};
    return Encode(json, text);
  };
  EXPECT_EQ(ids("always", "a<s>a"), (Ids{9, 20, 9}));
  EXPECT_EQ(ids("first", "a<s>a"), (Ids{9, 20, 0}));
  EXPECT_EQ(ids("first", "a<s> a"), (Ids{9, 20, 9}));
  EXPECT_EQ(ids("never", "a<s>a a"), (Ids{0, 20, 0, 9}));
}

TEST(AddedTokens, Flags) {
  Json json = Base();
  const auto add = [&](const char* flag) {
    json["added_tokens"][2] = {{"id", 22}, {"content", "!!"}, {"special", false}};
    json["added_tokens"][2][flag] = true;
  };
  add("lstrip");
  EXPECT_EQ(Encode(json, "a  !! a"), (Ids{0, 22, 7, 0}));
  add("rstrip");
  EXPECT_EQ(Encode(json, "a !! \n a"), (Ids{0, 7, 22, 0}));
  json["added_tokens"][2] = {{"id", 22}, {"content", "de"}, {"single_word", true}};
  EXPECT_EQ(Encode(json, "de ade"), (Ids{22, 7, 0, 3, 4}));
  // Looked for in the normalized text, by its own normal form.
  json["normalizer"] = {{"type", "Lowercase"}};
  json["added_tokens"][2] = {{"id", 22}, {"content", "DE"}, {"normalized", true}};
  EXPECT_EQ(Encode(json, "dE"), (Ids{22}));
  json["added_tokens"][2]["normalized"] = false;
  EXPECT_EQ(Encode(json, "de"), (Ids{3, 4}));
  // The longest one wins.
  json["added_tokens"][3] = {{"id", 23}, {"content", "DEDE"}, {"normalized", false}};
  EXPECT_EQ(Encode(json, "DEDEDE"), (Ids{23, 22}));
}

TEST(PostProcessor, TemplatesAndConfigFlags) {
  Json json = Base();
  json["post_processor"] = Json::parse(
      R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                     {"Sequence": {"id": "A", "type_id": 0}}],
          "special_tokens": {"<s>": {"id": "<s>", "ids": [20], "tokens": ["<s>"]}}}]})");
  const auto ids = [&](std::string_view config) {
    const auto tokenizer = Load(json, config);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    return (*tokenizer)->Encode("ab", {.add_special_tokens = true});
  };
  EXPECT_EQ(ids(""), (Ids{20, 5}));
  EXPECT_EQ(ids("{}"), (Ids{20, 5}));
  EXPECT_EQ(ids(R"({"add_bos_token": false, "bos_token": "<s>"})"), (Ids{5}));
  EXPECT_EQ(ids(R"({"add_eos_token": true, "eos_token": {"content": "</s>"}})"), (Ids{20, 5, 21}));
  ExpectRefused(json, StatusCode::kCorrupt, "not in the vocabulary",
                R"({"add_eos_token": true, "eos_token": "<none>"})");
}

TEST(Config, AddedTokensDecoder) {
  const auto tokenizer = Load(Base(), R"({"pad_token": "e", "mask_token": "[absent]",
      "added_tokens_decoder": {"30": {"content": "<x>", "special": true, "normalized": false}}})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ((*tokenizer)->Encode("a<x>e", {}), (Ids{0, 30, 4}));
  EXPECT_TRUE((*tokenizer)->IsSpecial(30));
  EXPECT_TRUE((*tokenizer)->IsSpecial(4));
  EXPECT_EQ((*tokenizer)->vocab_size(), 31);
  ExpectRefused(Base(), StatusCode::kCorrupt, "id 3",
                R"({"added_tokens_decoder": {"3": {"content": "<x>"}}})");
}

TEST(Decoders, Chain) {
  Json json = Base();
  json["decoder"] = Json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  auto tokenizer = std::move(Load(json)).value();
  EXPECT_EQ(tokenizer->Decode(Ids{9, 9, 15, 16, 15, 0}, false),
            "a a\xC3\xA9\xEF\xBF\xBD"
            "a");
  json["decoder"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "always"}};
  tokenizer = std::move(Load(json)).value();
  EXPECT_EQ(tokenizer->Decode(Ids{9, 9}, false), "a a");
  json["decoder"] = {{"type", "Strip"}, {"content", "c"}, {"start", 0}, {"stop", 1}};
  tokenizer = std::move(Load(json)).value();
  EXPECT_EQ(tokenizer->Decode(Ids{6, 2, 0}, false), "aba");
  json["decoder"] = nullptr;
  tokenizer = std::move(Load(json)).value();
  EXPECT_EQ(tokenizer->Decode(Ids{0, 20, 6}, false), "a <s> abc");
}

TEST(Load, UnknownConstructsAreNamed) {
  const auto refused = [](const char* part, const char* value, std::string_view words) {
    Json json = Base();
    json[Json::json_pointer(part)] = Json::parse(value);
    ExpectRefused(json, StatusCode::kUnsupported, words);
  };
  refused("/model", R"({"type": "Quantum"})", "\"Quantum\"");
  refused("/model/dropout", "0.1", "dropout");
  refused("/normalizer", R"({"type": "Nmt"})", "\"Nmt\"");
  refused("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "New"}]})", "[0]");
  refused("/pre_tokenizer",
          R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Sideways"})", "Sideways");
  refused("/post_processor", R"({"type": "Mystery"})", "\"Mystery\"");
  refused("/decoder", R"({"type": "CTC"})", "\"CTC\"");
}

TEST(Load, CorruptFilesAreRefusedWithThePlace) {
  const auto refused = [](const char* part, const char* value, std::string_view words) {
    Json json = Base();
    json[Json::json_pointer(part)] = Json::parse(value);
    ExpectRefused(json, StatusCode::kCorrupt, words);
  };
  refused("/model/vocab/zz", "-1", "found -1 for \"zz\"");
  refused("/model/vocab/zz", "16777217", "16777217");
  refused("/model/vocab/zz", "99999999999999999999", "expected an id");
  refused("/model/vocab/zz", "1.5", "expected an id");
  refused("/model/vocab/zz", "\"7\"", "found string");
  refused("/model/vocab/zz", "3", "id 3 belongs to both");
  refused("/model/vocab", "[]", "vocab");
  refused("/model/merges/0", "\"a z\"", "merges[0]: the vocabulary has no token \"z\"");
  refused("/model/merges/1", "\"c d\"", "merges[1]: the vocabulary has no token \"cd\"");
  refused("/model/merges/1", "\"a b c\"", "merges[1]");
  refused("/model/merges/1", "[\"a\"]", "merges[1]");
  refused("/model/merges/1", "7", "merges[1]");
  refused("/model/fuse_unk", "3", "fuse_unk");
  refused("/model", "null", "model is missing");
  refused("/model", "[]", "model");
  refused("/added_tokens/0/id", "2", "id 2 belongs to both");
  refused("/added_tokens/0/id", "-5", "added_tokens[0]");
  refused("/added_tokens/1/id", "20", "id 20");
  refused("/added_tokens/0", "5", "added_tokens[0]");
  refused("/added_tokens", "{}", "added_tokens");
  refused("/pre_tokenizer",
          R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})",
          "regular expression");
  refused("/normalizer", R"({"type": "Replace", "pattern": {"String": ""}, "content": "x"})",
          "empty");
  refused("/normalizer", R"({"kind": "NFC"})", "type is missing");
  refused("/pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})", "one character");
  for (const char* text : {"", "{", "[]", "nul", "{\"model\": {\"type\": \"BPE\"}}"}) {
    const auto tokenizer = Tokenizer::Load(text, "");
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.status().code(), StatusCode::kCorrupt);
  }
  ExpectRefused(Base(), StatusCode::kCorrupt, "tokenizer_config.json", "{");
}

TEST(Load, TextThatGrowsWithoutBoundIsRefused) {
  Json json = Base();
  const Json twice = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 40; ++i) json["normalizer"]["normalizers"].push_back(twice);
  ExpectRefused(json, StatusCode::kUnsupported, "too long");
}

TEST(Regex, EndlessBacktrackingStops) {
  Json json = Base();
  json["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a+)+z"}}}, {"behavior", "Isolated"}};
  EXPECT_EQ(Encode(json, std::string(2000, 'a')).size(), 2000u);
}

}  // namespace
}  // namespace tq
