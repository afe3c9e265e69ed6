#include "base/json.h"
#include "weights/gguf_documents.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "weights/gguf_builder_for_test.h"
#include "weights/gguf_pretokenizer.h"
#include "weights/spm_merges.h"

namespace tq {
namespace {

// The tokenizer.json of a fixture, or of a built file.
Json TokenizerOf(std::span<const std::byte> bytes) {
  const auto file = ParseGguf(bytes, "m.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  const auto text = GgufTokenizerJson(*file, "m.gguf");
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *ParseJson(*text, "tokenizer.json") : Json();
}
Json FixtureTokenizer(const std::string& name) {
  const auto mapped = MappedFile::Open(TQ_TEST_DATA "/gguf/tokenizers/" + name + "/vocab.gguf");
  EXPECT_TRUE(mapped.ok());
  return TokenizerOf((*mapped)->bytes());
}
Json BuiltTokenizer(const GgufBuilder& builder) {
  const std::string bytes = builder.Build();
  return TokenizerOf(std::as_bytes(std::span(bytes)));
}
Status Refusal(const GgufBuilder& builder) {
  const std::string bytes = builder.Build();
  const auto file = ParseGguf(std::as_bytes(std::span(bytes)), "m.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  const auto text = GgufTokenizerJson(*file, "m.gguf");
  EXPECT_FALSE(text.ok());
  return text.status();
}
void ExpectRefused(const GgufBuilder& builder, StatusCode code, std::string_view part) {
  const Status status = Refusal(builder);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(GgufDocuments, ByteLevelTokenizer) {
  const Json qwen = FixtureTokenizer("qwen2");
  EXPECT_EQ(qwen["normalizer"], Json({{"type", "NFC"}}));
  EXPECT_EQ(qwen["model"]["type"], "BPE");
  EXPECT_EQ(qwen["model"]["vocab"].size(), 1507u);
  EXPECT_EQ(qwen["model"]["merges"].size(), 1244u);
  EXPECT_EQ(qwen["model"]["merges"][4], Json::array({"s", "e"}));
  EXPECT_EQ(qwen["model"]["ignore_merges"], false);
  EXPECT_TRUE(qwen["post_processor"].is_null());
  const Json& steps = qwen["pre_tokenizer"]["pretokenizers"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["type"], "Split");
  EXPECT_EQ(steps[1], Json({{"type", "ByteLevel"},
                            {"add_prefix_space", false},
                            {"trim_offsets", true},
                            {"use_regex", false}}));
  ASSERT_EQ(qwen["added_tokens"].size(), 7u);
  EXPECT_EQ(qwen["added_tokens"][2], Json({{"id", 1502},
                                           {"content", "<|im_end|>"},
                                           {"single_word", false},
                                           {"lstrip", false},
                                           {"rstrip", false},
                                           {"normalized", false},
                                           {"special", true}}));
  EXPECT_EQ(qwen["added_tokens"][5]["special"], false);  // <think> is user-defined
}

TEST(GgufDocuments, FamiliesDiffer) {
  const Json llama3 = FixtureTokenizer("llama3");
  EXPECT_EQ(llama3["model"]["ignore_merges"], true);
  EXPECT_EQ(llama3["post_processor"]["single"][0]["SpecialToken"]["id"], "<|endoftext|>");
  EXPECT_EQ(llama3["post_processor"]["special_tokens"]["<|endoftext|>"]["ids"],
            Json::array({1500}));
  EXPECT_EQ(FixtureTokenizer("deepseek_v3")["pre_tokenizer"]["pretokenizers"].size(), 4u);
  const Json smollm = FixtureTokenizer("smollm")["pre_tokenizer"]["pretokenizers"];
  EXPECT_EQ(smollm[0], Json({{"type", "Digits"}, {"individual_digits", true}}));
  EXPECT_EQ(smollm[1]["use_regex"], true);
  for (const char* name : {"o200k", "qwen3_5", "tekken", "tiktoken_kimi"}) {
    EXPECT_EQ(FixtureTokenizer(name)["model"]["type"], "BPE") << name;
  }
}

TEST(GgufDocuments, SentencePieceTokenizer) {
  const Json llama = FixtureTokenizer("llama2");
  EXPECT_EQ(llama["model"]["byte_fallback"], true);
  EXPECT_EQ(llama["model"]["unk_token"], "<unk>");
  EXPECT_EQ(llama["normalizer"]["normalizers"][0]["type"], "Prepend");
  EXPECT_EQ(llama["decoder"]["decoders"].size(), 4u);
  EXPECT_EQ(llama["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");
  EXPECT_EQ(llama["added_tokens"].size(), 10u);
  const Json gemma = FixtureTokenizer("gemma");  // no space in front
  EXPECT_EQ(gemma["normalizer"]["type"], "Replace");
  EXPECT_EQ(gemma["decoder"]["decoders"].size(), 3u);
}

TEST(GgufDocuments, MergesFollowTheScores) {
  const std::vector<std::string_view> pieces = {"a", "b", "ab", "abb", "bb", "<s>"};
  const std::vector<float> scores = {0, 0, -1, -3, -2, 0};
  const std::vector<bool> usable = {true, true, true, true, true, false};
  const std::vector<Merge> expected = {{"a", "b"}, {"b", "b"}, {"ab", "b"}, {"a", "bb"}};
  EXPECT_EQ(DeriveSpmMerges(pieces, scores, usable), expected);
  EXPECT_EQ(BuiltTokenizer(TinyLlamaGguf())["model"]["merges"],
            Json::array({Json::array({"a", "b"})}));
}

TEST(GgufDocuments, UserDefinedSpacesAreMarked) {
  GgufBuilder b = TinyLlamaGguf();
  b.Texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "  ", "ab"});
  b.Numbers<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {2, 3, 3, 1, 4, 1});
  const Json added = BuiltTokenizer(b)["added_tokens"];
  EXPECT_EQ(added.back()["content"], "\xE2\x96\x81\xE2\x96\x81");
}

TEST(GgufDocuments, BosAndEosAreAdded) {
  const Json both = BuiltTokenizer(TinyLlamaGguf().Bool("tokenizer.ggml.add_eos_token", true));
  ASSERT_EQ(both["post_processor"]["single"].size(), 3u);
  EXPECT_EQ(both["post_processor"]["single"][2]["SpecialToken"]["id"], "</s>");
  const Json none = BuiltTokenizer(TinyLlamaGguf().Bool("tokenizer.ggml.add_bos_token", false));
  EXPECT_TRUE(none["post_processor"].is_null());
}

TEST(GgufDocuments, RefusesToGuess) {
  GgufBuilder gpt2 = TinyLlamaGguf();
  gpt2.Text("tokenizer.ggml.model", "gpt2").Texts("tokenizer.ggml.merges", {"a b"});
  ExpectRefused(gpt2, StatusCode::kUnsupported, "tokenizer.ggml.pre");
  gpt2.Text("tokenizer.ggml.pre", "frobnicate");
  ExpectRefused(gpt2, StatusCode::kUnsupported, "frobnicate");
  gpt2.Text("tokenizer.ggml.pre", "gpt-2");
  EXPECT_EQ(BuiltTokenizer(gpt2)["model"]["merges"].size(), 1u);
  ExpectRefused(gpt2.Texts("tokenizer.ggml.merges", {"a"}), StatusCode::kCorrupt, "merge 0");
  ExpectRefused(gpt2.Remove("tokenizer.ggml.merges"), StatusCode::kNotFound,
                "tokenizer.ggml.merges");
  ExpectRefused(TinyLlamaGguf().Text("tokenizer.ggml.model", "t5"), StatusCode::kUnsupported, "t5");
  ExpectRefused(TinyLlamaGguf().Remove("tokenizer.ggml.scores"), StatusCode::kNotFound,
                "tokenizer.ggml.scores");
  ExpectRefused(TinyLlamaGguf()
                    .Texts("tokenizer.ggml.tokens", {"a", "a"})
                    .Remove("tokenizer.ggml.token_type"),
                StatusCode::kCorrupt, "tokens 0 and 1");
  ExpectRefused(TinyLlamaGguf()
                    .Texts("tokenizer.ggml.tokens", {"a", "\xFF"})
                    .Remove("tokenizer.ggml.token_type"),
                StatusCode::kCorrupt, "token 1");
}

TEST(GgufDocuments, TheOriginalTokenizerWins) {
  EXPECT_EQ(BuiltTokenizer(TinyLlamaGguf().Text("tokenizer.huggingface.json", R"({"x":1})")),
            Json({{"x", 1}}));
}

TEST(GgufDocuments, TokenizerConfigAndGenerationConfig) {
  GgufBuilder b = TinyLlamaGguf();
  b.Text("tokenizer.chat_template", "A").Text("tokenizer.chat_template.tool_use", "B");
  b.Int("tokenizer.ggml.eot_token_id", 5).Int("tokenizer.ggml.eom_token_id", 2);
  const std::string bytes = b.Build();
  const auto file = ParseGguf(std::as_bytes(std::span(bytes)), "m.gguf");
  ASSERT_TRUE(file.ok());
  const Json config = *ParseJson(*GgufTokenizerConfigJson(*file, "m"), "tokenizer_config.json");
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["eos_token"], "</s>");
  EXPECT_EQ(config["unk_token"], "<unk>");
  EXPECT_EQ(config["add_bos_token"], true);
  EXPECT_EQ(config["chat_template"], Json::array({{{"name", "default"}, {"template", "A"}},
                                                  {{"name", "tool_use"}, {"template", "B"}}}));
  const Json generation = *ParseJson(*GgufGenerationConfigJson(*file, "m"), "generation");
  EXPECT_EQ(generation["bos_token_id"], 1);
  EXPECT_EQ(generation["eos_token_id"], Json::array({2, 5}));
  const Json added = BuiltTokenizer(b)["added_tokens"];
  EXPECT_EQ(added.back()["content"], "ab");  // ends a turn, so it is special
  EXPECT_EQ(added.back()["special"], true);
}

}  // namespace
}  // namespace tq
