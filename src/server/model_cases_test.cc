// Cases of public reports about what a server makes of a checkpoint's own files: templates,
// tokenizers, defaults; and about prompts that do not fit into one step.
#include <algorithm>
#include <atomic>
#include <map>

#include "grammar/grammar_compiler.h"
#include "server/cases_for_test.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;
using tq::test::ScriptModel;

std::string PromptText(const TestServer& server, const Json& body) {
  const Json tokens = server.Post("/tokenize", body.dump()).json()["tokens"];
  return server.Post("/detokenize", Json{{"tokens", tokens}}.dump()).json()["content"];
}

const Json kUserHi = Json::array({Json{{"role", "user"}, {"content", "Hi"}}});

TEST(Cases, TM06_DescriptionsOfToolsStayUtf8) {
  TestServer server(Says("x"));
  const std::string chinese = "\xE6\x9F\xA5\xE8\xAF\xA2\xE5\xA4\xA9\xE6\xB0\x94";
  Json tools = Json::array();
  for (int i = 0; i < 10; ++i) {
    const Json field = {{"type", "string"}, {"description", chinese}};
    const Json parameters = {{"type", "object"}, {"properties", {{"city", field}}}};
    const Json function = {
        {"name", "f" + std::to_string(i)}, {"description", chinese}, {"parameters", parameters}};
    tools.push_back({{"type", "function"}, {"function", function}});
  }
  const std::string prompt = PromptText(server, {{"messages", kUserHi}, {"tools", tools}});
  size_t found = 0;
  for (size_t at = 0; (at = prompt.find(chinese, at)) != std::string::npos; ++at) ++found;
  EXPECT_EQ(found, 20u) << prompt;
  EXPECT_EQ(prompt.find("\\u"), std::string::npos) << prompt;
}

TEST(Cases, TM08_OneBosHoweverManyWouldWriteIt) {
  TestServerOptions options = Says("x");
  options.load_text = [](TextAssets& text) {
    auto json = ParseJson(tq::test::ByteTokenizerJson(), "tokenizer");
    (*json)["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"pair",
         {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
        {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
    auto tokenizer = Tokenizer::Load(json->dump(), "");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    text.tokenizer = std::move(tokenizer).value();
    ChatDocuments documents;
    documents.tokenizer_config = tq::test::ByteTokenizerConfig();
    documents.special_texts = {"<s>", "</s>", "<|user|>", "<|assistant|>"};
    auto chat = ChatPrompt::Load(documents);
    ASSERT_TRUE(chat.ok()) << chat.status().message();
    text.chat = std::move(chat).value();
    text.end_ids = {ScriptModel::kEnd};
  };
  const TestServer server(options);
  const auto count = [](const Json& ids) { return std::count(ids.begin(), ids.end(), 1); };
  const Json chat = server.Post("/tokenize", Json{{"messages", kUserHi}}.dump()).json()["tokens"];
  EXPECT_EQ(count(chat), 1) << chat;
  EXPECT_EQ(chat[0], 1);
  const Json raw =
      server.Post("/tokenize", R"({"content": "ab", "add_special": true})").json()["tokens"];
  EXPECT_EQ(raw.size(), 3u);
  EXPECT_EQ(count(raw), 1);
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": "ab", "max_tokens": 1})")
                .json()["usage"]["prompt_tokens"],
            3);
  // A user who writes its name means the text.
  const Json typed = Json::array({Json{{"role", "user"}, {"content", "<s>"}}});
  EXPECT_EQ(count(server.Post("/tokenize", Json{{"messages", typed}}.dump()).json()["tokens"]), 1);
}

// What a template cannot express is told, in the log and in the answer's head.
TEST(Cases, TM11_AnEffortIsHeardOrToldOf) {
  struct Knows {
    const char* piece;
    std::map<std::string, std::string> shown;  // effort -> what the prompt says
    std::vector<std::string> told;             // efforts with a note
  };
  const std::vector<Knows> templates = {
      {"[{{ reasoning_effort }}]",
       {{"low", "[low]"}, {"high", "[high]"}, {"none", "[low]"}, {"minimal", "[low]"}},
       {"none", "minimal"}},
      {"[{{ enable_thinking }}]", {{"low", "[True]"}, {"none", "[False]"}}, {}},
      {"[]", {{"low", "[]"}, {"none", "[]"}}, {"low", "none"}},
  };
  for (const Knows& knows : templates) {
    TestServer server(Says("x", knows.piece + TemplateWith("<tool_call>arguments")));
    for (const auto& [effort, shown] : knows.shown) {
      Json body = {{"messages", kUserHi}, {"reasoning_effort", effort}, {"max_tokens", 3}};
      const HttpReply reply = server.Post(kPaths[0], body.dump());
      ASSERT_EQ(reply.status, 200) << reply.body;
      const bool told = std::find(knows.told.begin(), knows.told.end(), effort) != knows.told.end();
      EXPECT_EQ(reply.headers.contains("turboquant-note"), told) << knows.piece << effort;
      if (told) {
        EXPECT_NE(reply.headers.at("turboquant-note").find("reasoning_effort"), std::string::npos);
      }
    }
    EXPECT_EQ(server.Post(kPaths[0], HiWith(R"("reasoning_effort": "much")")).status, 400);
  }
}

TEST(Cases, TM12_DefaultsAreTheCheckpointsAndShown) {
  TestServerOptions options = Says("Hello there, this is a text.");
  const auto load = options.load_text;
  options.load_text = [load](TextAssets& text) {
    load(text);
    text.sampling.temperature = 0.35f;
    text.sampling.top_k = 20;
    text.sampling.top_p = 0.8f;
  };
  // The same seed draws the same, whoever says the numbers.
  const auto say = [](const TestServer& server, const std::string& fields) {
    return server.Post(kPaths[0], HiWith(fields + R"("seed": 7, "max_tokens": 40)"))
        .json()["choices"][0]["message"]["content"]
        .get<std::string>();
  };
  const TestServer with(options);
  const TestServer without(Says("Hello there, this is a text."));
  const std::string explicit_fields = R"("temperature": 0.35, "top_k": 20, "top_p": 0.8, )";
  EXPECT_EQ(say(with, ""), say(without, explicit_fields));
  EXPECT_EQ(say(with, explicit_fields), say(without, explicit_fields));
  EXPECT_EQ(say(with, R"("temperature": 0, )"), "Hello there, this is a text.");
  const Json shown = with.Get("/props").json()["default_sampling"];
  EXPECT_EQ(shown["top_k"], 20);
  EXPECT_NEAR(shown["top_p"].get<double>(), 0.8, 1e-6);
  EXPECT_NEAR(shown["temperature"].get<double>(), 0.35, 1e-6);
}

TEST(Cases, SO03_AFormBeginsBehindTheThoughtsAndIsAnObject) {
  if (!GrammarCompiler::Available()) GTEST_SKIP() << "built without XGrammar";
  Json body = Body(kPaths[0], false, false, 200);
  body["response_format"] = {{"type", "json_object"}};
  // Thoughts with a tag are free.
  const TestServer tagged(Says("<think>Hm, [1].</think>{\"a\": [1]}"));
  const Json message = tagged.Post(kPaths[0], body.dump()).json()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "Hm, [1].");
  EXPECT_EQ(message["content"], "{\"a\": [1]}");
  // Those that the prompt opened, too.
  const TestServer opened(Says("Hm.</think>{\"a\": [1]}", kOpened));
  EXPECT_EQ(opened.Post(kPaths[0], body.dump()).json()["choices"][0]["message"]["content"],
            "{\"a\": [1]}");
  // A template without thoughts has no room for them: an object from the first byte, never a list
  // or a blank.
  for (const char* script : {"Okay, let me think.", "[].   ", "     "}) {
    const TestServer server(Says(script, kMistral));
    const Json choice = server.Post(kPaths[0], body.dump()).json()["choices"][0];
    const std::string content = choice["message"]["content"];
    EXPECT_TRUE(content.starts_with('{')) << script << ": " << choice;
    if (choice["finish_reason"] == "stop") {
      const auto json = ParseJson(content, "answer");
      EXPECT_TRUE(json.ok() && json->is_object()) << content;
    }
  }
}

// Prompts are computed in chunks, however long; a picture is refused by name and not by memory.
TEST(Cases, CL08_NoStepIsWiderThanAChunk) {
  std::atomic<int64_t> widest = 0;
  TestServer server(
      {.hook = [&widest](
                   const StepPlan& plan) { widest = std::max<int64_t>(widest, plan.num_tokens()); },
       .max_context = 50'000,
       .engine = {.max_sequences = 2, .prefill_chunk = 128}});
  const std::string text(40'000, 'a');
  Json body = {{"messages", Json::array({Json{{"role", "user"}, {"content", text}}})},
               {"max_tokens", 5}};
  const Json usage = server.Post(kPaths[0], body.dump()).json()["usage"];
  EXPECT_GT(usage["prompt_tokens"], 40'000);
  EXPECT_LE(widest, 128 + 2);
  const Json again = server.Post(kPaths[0], body.dump()).json()["usage"];
  EXPECT_GT(again["prompt_tokens_details"]["cached_tokens"], 39'000);
  const Json image = {{"type", "image_url"},
                      {"image_url", {{"url", "data:image/png;base64,iVBORw0KGgo="}}}};
  const Json parts = Json::array({Json{{"type", "text"}, {"text", text}}, image});
  body["messages"] = Json::array({Json{{"role", "user"}, {"content", parts}}});
  const HttpReply reply = server.Post(kPaths[0], body.dump());
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("image"), std::string::npos) << reply.body;
}

// Never "tool_calls" without a call, on any API and in any syntax that has a grammar.
TEST(Cases, TC10_AForcedCallComes) {
  if (!GrammarCompiler::Available()) GTEST_SKIP() << "built without XGrammar";
  for (const std::string& chat_template : {kHermes, kXml, kMistral}) {
    const TestServer server(Says("No. I write text, and more of it, for ever.", chat_template));
    for (const std::string path : kPaths) {
      Json body = Body(path, true, false, 600);
      Json tools = body["tools"];
      body["tools"] = Json::array({tools[3]});  // ping, without arguments
      if (path == "/v1/messages") {
        body["tool_choice"] = {{"type", "any"}, {"disable_parallel_tool_use", true}};
      } else {
        body["tool_choice"] = "required";
        body["parallel_tool_calls"] = false;
      }
      const HttpReply reply = server.Post(path, body.dump());
      ASSERT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(SummaryOf(reply.json()), (Lines{"call ping {}", EndOf(path, "tool_calls")}))
          << path << reply.body;
    }
  }
}

// chat: a list of tokens with bytes and alternatives, completions: parallel lists.
TEST(Cases, AP03_AP04_AP05_LogprobsHaveTheShapeOfTheirApi) {
  const TestServer server({.script = "a\xF0\x9F\x98\x80z"});
  const Json chat =
      server.Post(kPaths[0], HiWith(R"("logprobs": true, "top_logprobs": 0)")).json()["choices"][0];
  const Json& logprobs = chat["logprobs"];
  EXPECT_TRUE(logprobs.contains("refusal"));
  EXPECT_EQ(logprobs["refusal"], nullptr);
  ASSERT_EQ(logprobs["content"].size(), 6u);
  for (const Json& token : logprobs["content"]) {
    for (const char* key : {"token", "logprob", "bytes", "top_logprobs"}) {
      EXPECT_TRUE(token.contains(key)) << token;
    }
    EXPECT_EQ(token["top_logprobs"], Json::array());
  }
  EXPECT_EQ(logprobs["content"][1]["bytes"], Json::array({0xF0})) << "half an emoji";
  const Json text =
      server
          .Post("/v1/completions", R"({"prompt": "<|assistant|>", "logprobs": 1, "max_tokens": 9})")
          .json()["choices"][0]["logprobs"];
  for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(text[key].size(), 6u) << key << text;
  }
  EXPECT_FALSE(text.contains("content"));
  EXPECT_EQ(server.Post(kPaths[0], HiWith(R"("top_logprobs": 1)")).status, 400);
  EXPECT_EQ(server.Post(kPaths[0], HiWith(R"("logprobs": true, "top_logprobs": 21)")).status, 400);
}

}  // namespace
}  // namespace tq::server
