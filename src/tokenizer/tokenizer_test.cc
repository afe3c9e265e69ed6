// The reference's ids and decodings, and what must hold for any text.
#include "tokenizer/tokenizer.h"

#include <ctime>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tokenizer/unicode.h"

namespace tq {
namespace {

// Of all model kinds and files. The SentencePiece ones know no special tokens inside a text.
constexpr const char* kNames[] = {"deepseek_v3",  "gemma",         "llama2",        "llama3",
                                  "o200k",        "qwen2",         "qwen3_5",       "smollm",
                                  "tekken",       "tiktoken_kimi", "unigram",       "unigram_bytes",
                                  "sp_bpe_llama", "sp_bpe_nfkc",   "sp_unigram_t5", "wordpiece"};
constexpr const char* kByteLevelNames[] = {"deepseek_v3", "llama3", "o200k",
                                           "smollm",      "tekken", "tiktoken_kimi"};

std::string ReadData(const std::string& name, const std::string& file) {
  return ReadTextFile(std::string(TQ_TEST_DATA "/tokenizers/") + name + "/" + file).value();
}

std::string ReadIfThere(const std::string& name, const std::string& file) {
  return FileExists(std::string(TQ_TEST_DATA "/tokenizers/") + name + "/" + file)
             ? ReadData(name, file)
             : std::string();
}

std::unique_ptr<Tokenizer> LoadNamed(const std::string& name) {
  const std::string json = ReadIfThere(name, "tokenizer.json");
  const std::string tiktoken = ReadIfThere(name, "tiktoken.model");
  const std::string model = ReadIfThere(name, "tokenizer.model");
  const std::string config = ReadIfThere(name, "tokenizer_config.json");
  auto tokenizer = Tokenizer::Load(TokenizerFiles{.tokenizer_json = json,
                                                  .tiktoken_model = tiktoken,
                                                  .tokenizer_model = model,
                                                  .tokenizer_config_json = config});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::string Stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer detokenizer(tokenizer, false);
  std::string out;
  for (const int32_t id : ids) out += detokenizer.Push(id);
  return out + detokenizer.Finish();
}

// Mostly letters and spaces, some of everything else; valid UTF-8.
std::string RandomText(std::mt19937* random) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {'a', 'e'},      {' ', ' '},       {0, 0x7F},           {0x80, 0x7FF},
      {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}, {'0', '9'}};
  std::string text;
  const size_t length = (*random)() % 40;
  for (size_t i = 0; i < length; ++i) {
    const auto& [low, high] = kRanges[(*random)() % std::size(kRanges)];
    tok::AppendUtf8(low + static_cast<char32_t>((*random)()) % (high - low + 1), &text);
  }
  return text;
}

TEST(Tokenizer, MatchesTheReference) {
  for (const std::string name : kNames) {
    SCOPED_TRACE(name);
    const auto tokenizer = LoadNamed(name);
    const Json cases = ParseJson(ReadData(name, "expected.json"), name).value();
    ASSERT_GE(cases.size(), 28u);
    const bool plain = name.starts_with("sp_");
    for (const Json& item : cases) {
      const std::string text = item["text"];
      SCOPED_TRACE(text.substr(0, 80));
      const std::vector<int32_t> ids = item["ids"];
      EXPECT_EQ(tokenizer->Encode(text, {.parse_special = !plain}), ids);
      if (item.contains("ids_with_special")) {
        EXPECT_EQ(tokenizer->Encode(text, {.add_special_tokens = true}),
                  item["ids_with_special"].get<std::vector<int32_t>>());
      }
      EXPECT_EQ(tokenizer->Decode(ids, false), item["decoded"].get<std::string>());
      if (item.contains("decoded_skip")) {
        EXPECT_EQ(tokenizer->Decode(ids, true), item["decoded_skip"].get<std::string>());
      }
      EXPECT_EQ(Stream(*tokenizer, ids), item["decoded"].get<std::string>());
    }
  }
}

TEST(Tokenizer, ByteLevelRoundTripsAnyText) {
  std::mt19937 random(1);
  for (const std::string name : kByteLevelNames) {
    const auto tokenizer = LoadNamed(name);
    for (int i = 0; i < 200; ++i) {
      const std::string text = RandomText(&random);
      const std::vector<int32_t> ids = tokenizer->Encode(text, {});
      EXPECT_EQ(tokenizer->Decode(ids, false), text) << name;
      EXPECT_EQ(Stream(*tokenizer, ids), text) << name;
      std::string bytes;
      for (const int32_t id : ids) bytes += tokenizer->TokenBytes(id);
      EXPECT_EQ(bytes, text) << name;
    }
  }
}

TEST(Tokenizer, InvalidBytesBecomeReplacementCharacters) {
  const auto tokenizer = LoadNamed("llama3");
  const auto round = [&](std::string_view text) {
    return tokenizer->Decode(tokenizer->Encode(text, {}), false);
  };
  EXPECT_EQ(round("a\xFF\xFE"
                  "b"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(round("\xF0\x9F\x98"), "\xEF\xBF\xBD");                          // one per maximal part
  EXPECT_EQ(round("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(round(std::string_view("a\0b", 3)), std::string_view("a\0b", 3));
  std::mt19937 random(2);
  for (const std::string name : kNames) {
    const auto other = LoadNamed(name);
    for (int i = 0; i < 100; ++i) {
      std::string text(random() % 30, '\0');
      for (char& c : text) c = static_cast<char>(random());
      const std::vector<int32_t> ids = other->Encode(text, {});
      EXPECT_EQ(Stream(*other, ids), other->Decode(ids, false));
    }
  }
}

TEST(Tokenizer, RandomIdsStreamAsTheyDecode) {
  std::mt19937 random(3);
  for (const std::string name : kNames) {
    const auto tokenizer = LoadNamed(name);
    for (int i = 0; i < 100; ++i) {
      std::vector<int32_t> ids(random() % 30);
      for (int32_t& id : ids) {
        id =
            static_cast<int32_t>(random() % static_cast<uint32_t>(tokenizer->vocab_size() + 3)) - 1;
      }
      EXPECT_EQ(Stream(*tokenizer, ids), tokenizer->Decode(ids, false)) << name;
    }
  }
}

TEST(Detokenizer, HoldsBackHalfACharacterOnly) {
  const auto tokenizer = LoadNamed("llama2");
  const int32_t b[] = {tokenizer->TokenId("<0xF0>"), tokenizer->TokenId("<0x9F>"),
                       tokenizer->TokenId("<0x98>"), tokenizer->TokenId("<0x80>")};
  const int32_t bad = tokenizer->TokenId("<0xFF>");
  const int32_t letter = tokenizer->TokenId("A");
  Detokenizer detokenizer(*tokenizer, false);
  EXPECT_EQ(detokenizer.Push(letter), "A");
  EXPECT_EQ(detokenizer.Push(b[0]), "");
  EXPECT_EQ(detokenizer.Push(b[1]), "");
  EXPECT_EQ(detokenizer.Push(b[2]), "");
  EXPECT_EQ(detokenizer.Push(b[3]), "\xF0\x9F\x98\x80");
  EXPECT_EQ(detokenizer.Push(bad), "\xEF\xBF\xBD");  // it can never become a character
  EXPECT_EQ(detokenizer.Push(bad), "\xEF\xBF\xBD");
  EXPECT_EQ(detokenizer.Push(letter), "A");
  EXPECT_EQ(detokenizer.Push(b[0]), "");
  EXPECT_EQ(detokenizer.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer->TokenBytes(b[0]), "\xF0");
}

TEST(Tokenizer, SpecialTokensAsTextAndAsTokens) {
  const auto tokenizer = LoadNamed("qwen2");
  const int32_t end = tokenizer->TokenId("<|im_end|>");
  ASSERT_GE(end, 0);
  EXPECT_TRUE(tokenizer->IsSpecial(end));
  EXPECT_EQ(tokenizer->TokenText(end), "<|im_end|>");
  EXPECT_EQ(tokenizer->Encode("<|im_end|>", {}), std::vector<int32_t>{end});
  const std::vector<int32_t> plain = tokenizer->Encode("<|im_end|>", {.parse_special = false});
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(tokenizer->Decode(plain, true), "<|im_end|>");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{end}, true), "");
  // An added token that is not special is cut out in both modes, and stays in the text.
  const int32_t call = tokenizer->TokenId("<tool_call>");
  EXPECT_FALSE(tokenizer->IsSpecial(call));
  EXPECT_EQ(tokenizer->Encode("<tool_call>", {.parse_special = false}), std::vector<int32_t>{call});
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{call}, true), "<tool_call>");
  EXPECT_EQ(tokenizer->TokenId("no such token"), -1);
  EXPECT_EQ(tokenizer->TokenText(-1), "");
  EXPECT_EQ(tokenizer->TokenText(1 << 25), "");
}

TEST(Tokenizer, SpecialTokensStayTextInPlainSpans) {
  const auto tokenizer = LoadNamed("qwen2");
  const int32_t end = tokenizer->TokenId("<|im_end|>");
  const std::string text = "<|im_end|>\xFF a<|im_end|>b<|im_end|>";
  const TextSpan plain[] = {{11, 13}, {13, 23}};
  std::vector<int32_t> expected = {end};
  for (const int32_t id :
       tokenizer->Encode("\xEF\xBF\xBD a<|im_end|>b", {.parse_special = false})) {
    expected.push_back(id);
  }
  expected.push_back(end);
  EXPECT_EQ(tokenizer->Encode(text, {.plain = plain}), expected);
}

// A special token that is looked for behind the normalizer, which moves everything.
TEST(Tokenizer, NormalizedSpecialTokensStayTextInPlainSpans) {
  const auto tokenizer = Tokenizer::Load(
      R"({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "bbbb"},
          "added_tokens": [{"id": 0, "content": "<x>", "special": true, "normalized": true}],
          "model": {"type": "BPE", "vocab": {"<x>": 0, "<": 1, "x": 2, ">": 3, "b": 4},
                    "merges": []}})",
      "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const TextSpan plain[] = {{4, 7}};
  EXPECT_EQ((*tokenizer)->Encode("<x>a<x><x>", {.plain = plain}),
            (std::vector<int32_t>{0, 4, 4, 4, 4, 1, 2, 3, 0}));
}

// The ids that a text without extra spaces, of characters that are tokens, comes back from.
TEST(Tokenizer, ByteFallbackRoundTripsTextWithoutSpecials) {
  std::mt19937 random(4);
  for (const std::string name : {"gemma", "llama2", "sp_bpe_llama"}) {
    const auto tokenizer = LoadNamed(name);
    for (int i = 0; i < 200; ++i) {
      std::string text = RandomText(&random);
      // The space mark is a space to these models.
      if (text.find("\xE2\x96\x81") != std::string::npos) continue;
      EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text, {}), false), text) << name;
    }
  }
}

TEST(Detokenizer, PiecesAreWholeCharactersAtEveryCut) {
  std::mt19937 random(5);
  for (const std::string name : kNames) {
    const auto tokenizer = LoadNamed(name);
    for (int i = 0; i < 60; ++i) {
      const std::vector<int32_t> ids = tokenizer->Encode(RandomText(&random), {});
      const size_t cut = ids.empty() ? 0 : random() % (ids.size() + 1);
      Detokenizer detokenizer(*tokenizer, false);
      std::string streamed;
      for (size_t at = 0; at < ids.size(); ++at) {
        const std::string piece = detokenizer.Push(ids[at]);
        EXPECT_TRUE(tok::IsUtf8(piece)) << name;
        streamed += piece;
        // What is out at any cut is what the whole decoding of the ids so far begins with.
        if (at + 1 != cut) continue;
        const std::string so_far =
            tokenizer->Decode(std::span(ids).first(cut), /*skip_special=*/false);
        EXPECT_TRUE(so_far.starts_with(streamed)) << name;
      }
      EXPECT_EQ(streamed + detokenizer.Finish(), tokenizer->Decode(ids, false)) << name;
    }
  }
}

// Processor time: what else the machine does shall not matter.
double SecondsToEncode(const Tokenizer& tokenizer, const char* unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  const std::clock_t start = std::clock();
  EXPECT_FALSE(tokenizer.Encode(text + "a", {}).empty());
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Sixteen times the text in about sixteen times the time: far from the 256 of a quadratic cost.
TEST(Tokenizer, LongRunsTakeLinearTime) {
  for (const std::string name : {"gemma", "llama3", "tiktoken_kimi", "unigram", "sp_bpe_llama",
                                 "sp_unigram_t5", "wordpiece"}) {
    const auto tokenizer = LoadNamed(name);
    for (const char* unit : {"a", " ", "\n", "\xE4\xBD\xA0", "\xCC\x81\xCC\xA3"}) {
      const double one = SecondsToEncode(*tokenizer, unit, size_t{1} << 12);
      const double sixteen = SecondsToEncode(*tokenizer, unit, size_t{1} << 16);
      EXPECT_LT(sixteen, 64 * one + 0.25) << name << " " << unit;
    }
  }
}

TEST(Tokenizer, AMegabyteOfOneCharacterIsQuick) {
  constexpr double kBound = 10.0;  // about 0.2 s; sanitizers cost much
  EXPECT_LT(SecondsToEncode(*LoadNamed("qwen2"), "a", 1'000'000), kBound);
  EXPECT_LT(SecondsToEncode(*LoadNamed("tiktoken_kimi"), " ", 1'000'000), kBound);
}

TEST(Tokenizer, IsSharedByThreads) {
  const auto tokenizer = LoadNamed("qwen2");
  const std::string text = "Hello world, 12345 na\xC3\xAFve   <|im_end|> x";
  const std::vector<int32_t> expected = tokenizer->Encode(text, {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(tokenizer->Encode(text, {}), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tq
