// A GGUF vocabulary gives the ids of the original tokenizer: through the synthesized
// tokenizer.json.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf_container.h"
#include "weights/gguf_documents.h"

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

}  // namespace
}  // namespace tq
