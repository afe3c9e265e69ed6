// The reference's ids and decodings, and what must hold for any text.
#include "tokenizer/tokenizer.h"

#include <chrono>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tokenizer/unicode.h"

namespace tq {
namespace {

constexpr const char* kNames[] = {"deepseek_v3", "gemma",   "llama2", "llama3", "o200k",
                                  "qwen2",       "qwen3_5", "smollm", "tekken"};
constexpr const char* kByteLevelNames[] = {"deepseek_v3", "llama3", "o200k", "smollm", "tekken"};

std::string ReadData(const std::string& name, const std::string& file) {
  return ReadTextFile(std::string(TQ_TEST_DATA "/tokenizers/") + name + "/" + file).value();
}

std::unique_ptr<Tokenizer> LoadNamed(const std::string& name) {
  auto tokenizer = Tokenizer::Load(ReadData(name, "tokenizer.json"), "");
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
    ASSERT_GT(cases.size(), 40u);
    for (const Json& item : cases) {
      const std::string text = item["text"];
      SCOPED_TRACE(text.substr(0, 80));
      const std::vector<int32_t> ids = item["ids"];
      EXPECT_EQ(tokenizer->Encode(text, {}), ids);
      EXPECT_EQ(tokenizer->Encode(text, {.add_special_tokens = true}),
                item["ids_with_special"].get<std::vector<int32_t>>());
      EXPECT_EQ(tokenizer->Decode(ids, false), item["decoded"].get<std::string>());
      EXPECT_EQ(tokenizer->Decode(ids, true), item["decoded_skip"].get<std::string>());
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

TEST(Tokenizer, LongRunsTakeLinearTime) {
  for (const std::string name : {"gemma", "llama3", "o200k"}) {
    const auto tokenizer = LoadNamed(name);
    for (const char* unit : {"a", " ", "\n", "\xE4\xBD\xA0", "\xCC\x81\xCC\xA3"}) {
      std::string text;
      while (text.size() < (size_t{1} << 16)) text += unit;
      const auto start = std::chrono::steady_clock::now();
      EXPECT_FALSE(tokenizer->Encode(text, {}).empty());
      const auto took = std::chrono::steady_clock::now() - start;
      EXPECT_LT(took, std::chrono::seconds(1)) << name << " " << unit;
    }
  }
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
