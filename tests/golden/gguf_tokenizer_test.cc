// A GGUF vocabulary gives the ids of the original tokenizer: through the synthesized
// tokenizer.json.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf_container.h"
#include "weights/gguf_documents.h"
#include "weights/gguf_tokenizer_keys.h"
#include "weights/gguf_writer.h"

namespace tq {
namespace {

class GgufTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GgufTokenizer, EncodesLikeTheOriginal) {
  const std::string folder = TQ_TEST_DATA "/gguf/tokenizers/" + std::string(GetParam()) + "/";
  const auto mapped = MappedFile::Open(folder + "vocab.gguf");
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  const auto file = ParseGguf((*mapped)->bytes(), folder);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto json = GgufTokenizerJson(*file, folder);
  ASSERT_TRUE(json.ok()) << json.status().message();
  const auto config = GgufTokenizerConfigJson(*file, folder);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto tokenizer = Tokenizer::Load(*json, *config);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();

  const auto text = ReadTextFile(folder + "expected.json");
  ASSERT_TRUE(text.ok());
  const Json cases = *ParseJson(*text, folder);
  int compared = 0;
  for (const Json& item : cases) {
    if (!item.contains("text")) continue;
    const std::string input = item["text"].get<std::string>();
    const auto ids = item["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ((*tokenizer)->Encode(input, {}), ids) << input;
    EXPECT_EQ((*tokenizer)->Encode(input, {.add_special_tokens = true}),
              item.value("ids_with_special", ids))
        << input;
    ++compared;
  }
  EXPECT_GE(compared, 50);
}

INSTANTIATE_TEST_SUITE_P(All, GgufTokenizer,
                         testing::Values("deepseek_v3", "gemma", "llama2", "llama3", "o200k",
                                         "qwen2", "qwen3_5", "smollm", "tekken", "tiktoken_kimi"));

// tokenizer.json -> GGUF keys -> tokenizer.json: the same ids.
class WrittenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(WrittenTokenizer, EncodesLikeTheOriginal) {
  const std::string folder = TQ_TEST_DATA "/tokenizers/" + std::string(GetParam()) + "/";
  const std::string path = testing::TempDir() + "tq_written_tokenizer_" + GetParam() + ".gguf";
  TokenizerDocuments documents;
  documents.tokenizer = *ReadTextFile(folder + "tokenizer.json");
  documents.tokenizer_config = R"({"chat_template": "{{ messages }}"})";
  GgufMetadata metadata;
  metadata.Text("general.architecture", "llama");
  std::vector<std::string> warnings;
  constexpr int64_t kRows = 1600;  // more than there are tokens
  const Status added = AddGgufTokenizer(documents, kRows, folder, metadata, warnings);
  ASSERT_TRUE(added.ok()) << added.message();
  ASSERT_TRUE((*GgufWriter::Create(path, metadata, {}))->Finish().ok());

  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  const auto file = ParseGguf((*mapped)->bytes(), path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto json = GgufTokenizerJson(*file, path);
  ASSERT_TRUE(json.ok()) << json.status().message();
  const auto config = GgufTokenizerConfigJson(*file, path);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ((*ParseJson(*config, path))["chat_template"], "{{ messages }}");
  const auto original = Tokenizer::Load(documents.tokenizer, "");
  ASSERT_TRUE(original.ok()) << original.status().message();
  const auto written = Tokenizer::Load(*json, *config);
  ASSERT_TRUE(written.ok()) << written.status().message();
  const Json cases = *ParseJson(*ReadTextFile(folder + "expected.json"), folder);
  int compared = 0;
  for (const Json& item : cases) {
    if (!item.contains("text")) continue;
    const std::string input = item["text"].get<std::string>();
    for (const bool special : {false, true}) {
      const auto ids = (*original)->Encode(input, {.add_special_tokens = special});
      EXPECT_EQ((*written)->Encode(input, {.add_special_tokens = special}), ids) << input;
    }
    ++compared;
  }
  EXPECT_GE(compared, 50);
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, WrittenTokenizer,
                         testing::Values("deepseek_v3", "gemma", "llama2", "llama3", "o200k",
                                         "qwen2", "qwen3_5", "smollm", "tekken"));

TEST(WrittenTokenizer, RefusesWhatGgufCannotSay) {
  const auto error = [](std::string tokenizer) {
    GgufMetadata metadata;
    std::vector<std::string> warnings;
    TokenizerDocuments documents;
    documents.tokenizer = std::move(tokenizer);
    return AddGgufTokenizer(documents, 1600, "t", metadata, warnings).message();
  };
  const std::string folder = TQ_TEST_DATA "/tokenizers/";
  EXPECT_EQ(error("").find("t: no tokenizer.json"), 0u);
  EXPECT_EQ(error(*ReadTextFile(folder + "unigram/tokenizer.json")),
            "t: a tokenizer of type BPE can be written as GGUF, found \"Unigram\"");
  Json qwen = *ParseJson(*ReadTextFile(folder + "qwen2/tokenizer.json"), "");
  qwen["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "x+";
  EXPECT_NE(error(qwen.dump()).find("has no name in GGUF"), std::string::npos);
  Json llama = *ParseJson(*ReadTextFile(folder + "llama2/tokenizer.json"), "");
  // A piece that is merged early one way and late another has no single score.
  llama["model"]["merges"].push_back(
      {"\xE2\x96\x81"
       "self",
       "."});
  EXPECT_NE(error(llama.dump()).find("do not follow from one score per token"), std::string::npos);
  // No type of value may fail a lookup.
  for (const char* key : {"model", "added_tokens", "normalizer", "pre_tokenizer"}) {
    for (const Json& value : {Json(3), Json("x"), Json::array({1}), Json::object({{"type", 3}})}) {
      Json broken = qwen;
      broken[key] = value;
      EXPECT_NE(error(broken.dump()), "") << key << ' ' << value;
    }
  }
}

}  // namespace
}  // namespace tq
