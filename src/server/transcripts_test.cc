// Conversations that were recorded at another server with a scripted generator: ours, with the same
// texts out of a replay file, has to say the same in the same order.
#include <algorithm>

#include "base/file.h"
#include "server/replay.h"
#include "server/summary_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

constexpr const char* kFolder = TQ_TEST_DATA "/transcripts/";

// What the generator said. The recorded counts of tokens agree with these texts.
constexpr const char* kAnswers = R"({"answers": [
  {"when": "script:hello", "say": "Hello there."},
  {"when": "script:think", "say": "<think>\nLet me see.\n</think>\n\nThe answer is 4."},
  {"when": "script:tool", "say": "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Oslo\", \"days\": 3}}\n</tool_call>"},
  {"when": "script:think_tool", "say": "<think>\nneed it\n</think>\n\nI look it up.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Rome\"}}\n</tool_call>"},
  {"when": "script:broken", "say": "x <tool_call>{\"name\": \"get_weather\", \"arguments\": {</tool_call> y"},
  {"when": "script:stop", "say": "one two STOP three"},
  {"when": "script:utf8", "say": "caf\u00e9 \u4e2d\u6587 \ud83d\ude00!"},
  {"when": "script:long", "say": "word ", "repeat": 100},
  {"when": "script:longthink", "say": "<think>hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm hmm</think>\nok"},
  {"when": "script:empty", "say": ""},
  {"when": "script:boom", "say": "!!b", "fail": true}]})";

Json ReadJson(const std::string& file) {
  const auto text = ReadTextFile(kFolder + file);
  EXPECT_TRUE(text.ok()) << text.status().message();
  const auto json = ParseJson(text.value(), file);
  EXPECT_TRUE(json.ok());
  return *json;
}

TestServerOptions Options() {
  TestServerOptions options;
  options.load_text = [](TextAssets& text) {
    const auto json = ReadTextFile(std::string(kFolder) + "tokenizer.json");
    auto tokenizer = Tokenizer::Load(json.value(), "");
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    text.tokenizer = std::move(tokenizer).value();
    ChatDocuments documents;
    documents.chat_template_jinja =
        ReadJson("tokenizer_config.json")["chat_template"].get<std::string>();
    documents.special_texts = {"<|im_start|>", "<|im_end|>"};
    auto chat = ChatPrompt::Load(documents);
    EXPECT_TRUE(chat.ok()) << chat.status().message();
    text.chat = std::move(chat).value();
    text.end_ids = {2};
  };
  options.make_model = [](const TextAssets& text) {
    auto answers = ParseReplay(kAnswers, "kAnswers");
    EXPECT_TRUE(answers.ok()) << answers.status().message();
    auto model = MakeReplayModel(std::move(answers).value(), text, 4096);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  };
  options.engine.prefix_cache = false;  // the recorded counts are those of new prompts
  return options;
}

// Where what was recorded is a fault; its own notes say so.
std::vector<std::string> Right(const std::string& script, std::vector<std::string> recorded) {
  // A blank that was held back came behind the text of the call.
  if (script == "script:broken") {
    return {R"(text x <tool_call>{"name": "get_weather", "arguments": {</tool_call> y)",
            recorded.back()};
  }
  // The first letters of a stop string were sent before it matched.
  if (script == "script:stop" && recorded.front().starts_with("text one two S") &&
      !recorded.front().ends_with("three")) {
    recorded.front() = "text one two";
  }
  return recorded;
}

std::string ScriptOf(const Json& body) {
  const std::string text = body.dump();
  const size_t at = text.rfind("script:");
  return text.substr(at, text.find('"', at) - at);
}

// An error ends a stream: what came behind it there, and a second event beside it, do not come
// here.
std::vector<std::string> EventsOf(const std::string& script, std::vector<std::string> recorded) {
  if (script == "script:think_tool") {
    // White space between two calls is no text here.
    for (const std::vector<std::string>& blank :
         {std::vector<std::string>{"response.output_item.added", "response.output_text.delta",
                                   "response.output_text.done", "response.output_item.done"},
          std::vector<std::string>{"content_block_start", "content_block_delta",
                                   "content_block_stop"}}) {
      const auto at = std::find_end(recorded.begin(), recorded.end(), blank.begin(), blank.end());
      if (at != recorded.end()) recorded.erase(at, at + static_cast<ptrdiff_t>(blank.size()));
    }
  }
  if (script != "script:boom") return recorded;
  std::erase(recorded, "[DONE]");
  if (!recorded.empty() && recorded.back() == "response.failed") std::erase(recorded, "error");
  return recorded;
}

int64_t PromptTokens(const Json& usage) {
  const char* const name = usage.contains("prompt_tokens") ? "prompt_tokens" : "input_tokens";
  return usage[name].get<int64_t>();
}

class Transcripts : public testing::Test {
 protected:
  void Compare(const Json& exchange) {
    const std::string path = exchange["path"].get<std::string>();
    const Json& body = exchange["body"];
    const std::string script = ScriptOf(body);
    const bool stream = body.value("stream", false);
    SCOPED_TRACE(path + " " + body.dump().substr(0, 300));
    const HttpReply reply = server_.Post(path, body.dump());
    EXPECT_EQ(reply.status, exchange["status"]) << reply.body;
    std::vector<std::string> expected;
    std::vector<std::string> said;
    Json usage;
    Json recorded_usage;
    if (stream) {
      std::string sse;
      for (const Json& event : exchange["sse"]) sse += event.get<std::string>() + "\n\n";
      const StreamSummary recorded = StreamOf(sse);
      const StreamSummary ours = StreamOf(reply.body);
      expected = recorded.lines;
      said = ours.lines;
      usage = ours.usage;
      recorded_usage = recorded.usage;
      EXPECT_EQ(ours.events, EventsOf(script, recorded.events));
    } else {
      expected = SummaryOf(exchange["json"]);
      said = SummaryOf(reply.json());
      usage = reply.json().value("usage", Json());
      recorded_usage = exchange["json"].value("usage", Json());
    }
    EXPECT_EQ(said, Right(script, expected));
    if (recorded_usage.is_object() && usage.is_object()) {
      // Who does not ask for thoughts gets none: the prompt has an empty one.
      const int64_t empty_thought = path == "/v1/messages" ? 6 : 0;
      EXPECT_EQ(PromptTokens(usage), PromptTokens(recorded_usage) + empty_thought);
    }
  }

  TestServer server_{Options()};
};

TEST_F(Transcripts, SayTheSameInTheSameOrder) {
  const Json file = ReadJson("scripted.json");
  for (const Json& exchange : file["exchanges"]) {
    // There the answer is lost behind its thoughts when they are too long.
    if (exchange["body"].contains("thinking")) continue;
    Compare(exchange);
  }
}

}  // namespace
}  // namespace tq::server
