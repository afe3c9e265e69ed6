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

// What sentence-transformers writes beside a model.
TEST(EmbeddingSettings, OfTheModulesOfACheckpoint) {
  const auto read = [](Files documents) {
    return ReadEmbeddingSettings(Documents(std::move(documents)));
  };
  const auto plain = read({});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->pooling, Pooling::kLast);
  EXPECT_TRUE(plain->normalize);
  const std::string modules = R"([
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
  const std::string normalized = modules.substr(0, modules.size() - 1) +
                                 R"(, {"idx": 2, "name": "2", "path": "2_Normalize",
                                       "type": "sentence_transformers.models.Normalize"}])";
  const std::string pooling = "1_Pooling/config.json";
  const std::pair<const char*, Pooling> kinds[] = {
      {R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})", Pooling::kMean},
      {R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})", Pooling::kFirst},
      {R"({"word_embedding_dimension": 8, "pooling_mode_lasttoken": true, "include_prompt": true})",
       Pooling::kLast},
      {R"({"pooling_mode": "mean"})", Pooling::kMean}};
  for (const auto& [config, want] : kinds) {
    const auto bare = read({{"modules.json", modules}, {pooling, config}});
    ASSERT_TRUE(bare.ok()) << bare.status().message();
    EXPECT_EQ(bare->pooling, want) << config;
    EXPECT_FALSE(bare->normalize);
    EXPECT_TRUE(read({{"modules.json", normalized}, {pooling, config}})->normalize);
  }
  for (const char* config :
       {R"({"pooling_mode_max_tokens": true})", R"({})", "[]", "{",
        R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})"}) {
    EXPECT_FALSE(read({{"modules.json", modules}, {pooling, config}}).ok()) << config;
  }
  EXPECT_FALSE(read({{"modules.json", modules}}).ok()) << "no Pooling config";
  const auto dense = read({{"modules.json", R"([{"type": "sentence_transformers.models.Dense",
                                                 "path": "2_Dense"}])"}});
  EXPECT_EQ(dense.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(dense.status().message().find("Dense"), std::string::npos);
  // Of use for text all the same.
  const auto assets = LoadTextAssets(Documents(Files{{"modules.json", "{}"}}));
  ASSERT_TRUE(assets.ok());
  EXPECT_FALSE(assets.value().embedding_status.ok());
}

TEST(DryBreakerCache, KeepsSomeLists) {
  const std::string json = R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "c": 2}, "merges": []}})";
  const auto tokenizer = Tokenizer::Load(json, "");
  ASSERT_TRUE(tokenizer.ok());
  DryBreakerCache cache;
  using Ids = std::vector<std::vector<int32_t>>;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(cache.Ids(**tokenizer, {"a"}), (Ids{{0}}));
    EXPECT_EQ(cache.Ids(**tokenizer, {"a", "c"}), (Ids{{0}, {2}}));
    EXPECT_EQ(cache.num_lists(), 2u);
  }
  for (int i = 0; i < 40; ++i) {
    cache.Ids(**tokenizer, {"b" + std::to_string(i)});
    EXPECT_EQ(cache.Ids(**tokenizer, {"a"}), (Ids{{0}})) << "the one in use stays";
  }
  EXPECT_EQ(cache.num_lists(), DryBreakerCache::kMaxLists);
}

}  // namespace
}  // namespace tq
