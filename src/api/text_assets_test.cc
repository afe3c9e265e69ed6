#include "api/text_assets.h"

#include <map>

#include <gtest/gtest.h>

namespace tq {
namespace {

using Files = std::map<std::string, std::string>;

// Documents without tensors.
class Documents final : public WeightSource {
 public:
  explicit Documents(Files documents) : documents_(std::move(documents)) {}
  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "test"; }
  const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  Result<std::string> ReadDocument(const std::string& name) const override {
    const auto found = documents_.find(name);
    if (found == documents_.end()) return NotFound(name);
    return found->second;
  }
  std::vector<std::string> DocumentNames() const override { return {}; }
  void DropPages(const SourceTensor&) const override {}

 private:
  std::string path_ = "checkpoint";
  Files documents_;
  std::vector<SourceTensor> tensors_;
};

TEST(TextAssets, SamplingOnlyWhereThePublisherSamples) {
  const auto greedy = LoadTextAssets(
      Documents(Files{{"generation_config.json",
                       R"({"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.1})"}}));
  ASSERT_TRUE(greedy.ok());
  EXPECT_EQ(greedy.value().sampling.temperature, 0.0f);
  EXPECT_EQ(greedy.value().sampling.top_k, 0);
  EXPECT_EQ(greedy.value().sampling.repetition_penalty, 1.1f);

  const auto sampled = LoadTextAssets(Documents(Files{
      {"generation_config.json",
       R"({"do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": null})"}}));
  ASSERT_TRUE(sampled.ok());
  EXPECT_EQ(sampled.value().sampling.temperature, 0.7f);
  EXPECT_EQ(sampled.value().sampling.top_p, 0.8f);
  EXPECT_EQ(sampled.value().sampling.top_k, 20);
  EXPECT_EQ(sampled.value().sampling.min_p, 0.0f);

  const auto bare =
      LoadTextAssets(Documents(Files{{"generation_config.json", R"({"do_sample": true})"}}));
  EXPECT_EQ(bare.value().sampling.temperature, 1.0f);
  EXPECT_EQ(LoadTextAssets(Documents(Files{})).value().sampling.temperature, 0.0f);
}

TEST(TextAssets, EndIdsFromTheFirstDocumentThatHasThem) {
  using Ids = std::vector<int32_t>;
  const auto end_ids = [](Files documents) {
    auto assets = LoadTextAssets(Documents(std::move(documents)));
    return assets.ok() ? assets.value().end_ids : Ids{-1};
  };
  EXPECT_EQ(end_ids({{"generation_config.json", R"({"eos_token_id": [7, 8]})"},
                     {"config.json", R"({"eos_token_id": 9})"}}),
            (Ids{7, 8}));
  EXPECT_EQ(end_ids({{"generation_config.json", R"({"eos_token_id": null})"},
                     {"config.json", R"({"eos_token_id": 9})"}}),
            Ids{9});
  EXPECT_EQ(end_ids({{"config.json", R"({"text_config": {"eos_token_id": 3}})"}}), Ids{3});
  EXPECT_EQ(end_ids({}), Ids{});
  for (const char* bad :
       {R"({"eos_token_id": "x"})", R"({"eos_token_id": -1})", R"({"eos_token_id": 1.5})",
        R"({"eos_token_id": [1, 99999999999]})", "[]", "{"}) {
    EXPECT_EQ(end_ids({{"generation_config.json", bad}}), Ids{-1}) << bad;
  }
}

TEST(TextAssets, MissingPartsMatterOnlyToWhoNeedsThem) {
  const auto assets = LoadTextAssets(
      Documents(Files{{"tokenizer.json", "broken"}, {"chat_template.jinja", "{% if %}"}}));
  ASSERT_TRUE(assets.ok());
  EXPECT_FALSE(NeedTokenizer(assets.value()).ok());
  EXPECT_FALSE(NeedChat(assets.value()).ok());
  EXPECT_FALSE(EncodePrompt(assets.value(), "hi", {}).ok());
  const auto none = LoadTextAssets(Documents(Files{}));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(NeedTokenizer(none.value()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(NeedChat(none.value()).status().code(), StatusCode::kNotFound);
}

// tokenizer.json goes before tiktoken.model, that before tokenizer.model.
TEST(TextAssets, TokenizerFromTheFirstFileThatIsThere) {
  const auto status = [](Files documents) {
    return LoadTextAssets(Documents(std::move(documents))).value().tokenizer_status;
  };
  const std::string json = R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE",
      "vocab": {"a": 0}, "merges": []}})";
  EXPECT_TRUE(status({{"tokenizer.json", json}, {"tokenizer.model", "broken"}}).ok());
  const Status tiktoken = status({{"tiktoken.model", "broken"}, {"tokenizer.model", "broken"}});
  EXPECT_TRUE(tiktoken.message().starts_with("tiktoken.model")) << tiktoken.message();
  const Status model = status({{"tokenizer.model", "broken"}, {"added_tokens.json", "{}"}});
  EXPECT_TRUE(model.message().starts_with("tokenizer.model")) << model.message();
  const Status none = status({{"vocab.txt", "a"}});
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_TRUE(none.message().starts_with("checkpoint: expected tokenizer.json")) << none.message();
}

}  // namespace
}  // namespace tq
