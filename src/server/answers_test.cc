// Answers of the three APIs: whole and as streams.
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

constexpr const char* kTools =
    R"("tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object",
       "properties": {"at": {"type": "string"}}}}}])";
constexpr const char* kCallScript =
    "<think>Hm.</think>I look.<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"sky\"}}"
    "</tool_call>";

// Contents of all deltas, put together.
std::string JoinDeltas(const HttpReply& reply, const char* field) {
  std::string text;
  for (const Json& chunk : EventData(reply)) {
    if (chunk["choices"].empty()) continue;
    const Json& delta = chunk["choices"][0]["delta"];
    if (delta.contains(field)) text += delta[field].get<std::string>();
  }
  return text;
}

TEST(ChatCompletions, WholeAndStreamedSayTheSame) {
  TestServer server({});
  const HttpReply whole = server.Post("/v1/chat/completions", kHi);
  ASSERT_EQ(whole.status, 200);
  const Json answer = whole.json();
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "Hello, world.");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);

  const HttpReply stream = server.Post("/v1/chat/completions", HiWith(R"("stream": true)"));
  EXPECT_EQ(stream.headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(JoinDeltas(stream, "content"), "Hello, world.");
  const std::vector<Json> chunks = EventData(stream);
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

// AP-01, AP-02
TEST(ChatCompletions, UsageInStreamsWhenAskedFor) {
  TestServer server({});
  for (const char* fields :
       {R"("stream": true)", R"("stream": true, "stream_options": {"include_usage": false})"}) {
    for (const Json& chunk : EventData(server.Post("/v1/chat/completions", HiWith(fields)))) {
      EXPECT_FALSE(chunk.contains("usage"));
    }
  }
  const std::string asked = HiWith(R"("stream": true, "stream_options": {"include_usage": true})");
  const std::vector<Json> chunks = EventData(server.Post("/v1/chat/completions", asked));
  EXPECT_EQ(chunks.back()["choices"], Json::array());
  EXPECT_EQ(chunks.back()["usage"]["prompt_tokens"], 4);
  EXPECT_TRUE(chunks.back()["usage"]["prompt_tokens_details"].contains("cached_tokens"));
  TestServer always({.service = {.stream_usage = true}});
  EXPECT_TRUE(EventData(always.Post("/v1/chat/completions", HiWith(R"("stream": true)")))
                  .back()
                  .contains("usage"));
}

// ST-01, ST-04, ST-05
TEST(ChatCompletions, StopStringsAcrossTokens) {
  TestServer server({.script = "A golden moon rises"});
  for (const char* stream : {"", R"(, "stream": true)"}) {
    const std::string body = HiWith(R"("stop": ["den moon", "zzz"])" + std::string(stream));
    const HttpReply reply = server.Post("/v1/chat/completions", body);
    const std::string text =
        *stream == '\0' ? reply.json()["choices"][0]["message"]["content"].get<std::string>()
                        : JoinDeltas(reply, "content");
    EXPECT_EQ(text, "A gol");
  }
  const Json message =
      server.Post("/v1/messages", HiWith(R"("max_tokens": 50, "stop_sequences": ["moon"])")).json();
  EXPECT_EQ(message["stop_reason"], "stop_sequence");
  EXPECT_EQ(message["stop_sequence"], "moon");
  EXPECT_EQ(message["content"][0]["text"], "A golden ");
  // What never becomes whole is shown.
  EXPECT_EQ(server.Post("/v1/chat/completions", HiWith(R"("stop": "rises!")"))
                .json()["choices"][0]["message"]["content"],
            "A golden moon rises");
}

// ST-06, ST-08
TEST(ChatCompletions, NoHalfCharacters) {
  TestServer server({.script = "\xF0\x9F\x98\x80 \xC4\x8F \xFF\xFF"
                               "A"});
  const HttpReply stream = server.Post("/v1/chat/completions", HiWith(R"("stream": true)"));
  EXPECT_EQ(JoinDeltas(stream, "content"),
            "\xF0\x9F\x98\x80 \xC4\x8F \xEF\xBF\xBD\xEF\xBF\xBD"
            "A");
}

TEST(ChatCompletions, ThoughtsAndCalls) {
  TestServer server({.script = kCallScript});
  const Json answer = server.Post("/v1/chat/completions", HiWith(kTools)).json();
  const Json& message = answer["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  EXPECT_EQ(message["content"], "I look.");
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "look");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"at": "sky"})");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_GT(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);

  const HttpReply stream =
      server.Post("/v1/chat/completions", HiWith(std::string(kTools) + R"(, "stream": true)"));
  EXPECT_EQ(JoinDeltas(stream, "reasoning_content"), "Hm.");
  EXPECT_EQ(JoinDeltas(stream, "content"), "I look.");
  std::string arguments;
  std::string id;
  for (const Json& chunk : EventData(stream)) {
    const Json& delta = chunk["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    const Json& call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    if (call.contains("id")) {
      EXPECT_EQ(id, "") << "once";
      id = call["id"].get<std::string>();
      EXPECT_EQ(call["function"]["name"], "look");
    }
    arguments += call["function"]["arguments"].get<std::string>();
  }
  EXPECT_TRUE(id.starts_with("call_"));
  EXPECT_EQ(arguments, R"({"at": "sky"})");
  // Without tools the same text is text.
  const Json plain = server.Post("/v1/chat/completions", kHi).json();
  EXPECT_FALSE(plain["choices"][0]["message"].contains("tool_calls"));
}

// The next turn begins with what the model wrote, not with how the template would write it.
TEST(ChatCompletions, TheNextPromptContinuesTheLastOne) {
  TestServer server({.script = kCallScript});
  const Json first = server.Post("/v1/chat/completions", HiWith(kTools)).json();
  Json message = first["choices"][0]["message"];
  message["tool_calls"][0]["function"]["arguments"] = R"({"at":"sky"})";  // as clients write it
  message.erase("reasoning_content");
  const Json history = {
      {{"role", "user"}, {"content", "Hi"}},
      message,
      {{"role", "tool"}, {"tool_call_id", message["tool_calls"][0]["id"]}, {"content", "blue"}}};
  const std::string body = "{\"messages\": " + history.dump() + ", " + kTools + "}";
  const Json second = server.Post("/v1/chat/completions", body).json();
  const int64_t turn = first["usage"]["total_tokens"].get<int64_t>();
  const int64_t cached = second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
  EXPECT_GE(cached, turn / kPageTokens * kPageTokens);
  EXPECT_GT(cached, 0);
}

TEST(Completions, TextsAndIds) {
  TestServer server({.script = "xyz"});
  const Json text =
      server.Post("/v1/completions", R"({"prompt": "a<|assistant|>", "max_tokens": 2})").json();
  EXPECT_EQ(text["object"], "text_completion");
  EXPECT_EQ(text["choices"][0]["text"], "xy");
  EXPECT_EQ(text["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": [107, 4]})").json()["choices"][0]["text"],
            "xyz");
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": [[107, 4]]})").status, 200);
  for (const char* bad :
       {R"({"prompt": ""})", R"({"prompt": []})", R"({"prompt": [9999]})", R"({"prompt": [-1]})",
        R"({"prompt": [["a"]]})", R"({"prompt": 3})", R"({})", R"({"prompt": ["a", [-1]]})",
        R"({"prompt": "a", "echo": true, "logprobs": 1})", R"({"prompt": "a", "suffix": "b"})",
        R"({"prompt": "a", "best_of": 2})"}) {
    EXPECT_EQ(server.Post("/v1/completions", bad).status, 400) << bad;
  }
  const HttpReply stream =
      server.Post("/v1/completions", R"({"prompt": "<|assistant|>", "stream": true})");
  std::string joined;
  for (const Json& chunk : EventData(stream)) {
    joined += chunk["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(joined, "xyz");
}

TEST(Messages, TheOrderOfEvents) {
  TestServer server({.script = kCallScript});
  const std::string body =
      R"({"max_tokens": 500, "stream": true, "thinking": {"type": "adaptive", "display": "omitted"},
          "system": [{"type": "text", "text": ""}, {"type": "text", "text": "Be brief.",
                      "cache_control": {"type": "ephemeral"}}],
          "messages": [{"role": "user", "content": "Hi"}],
          "tools": [{"name": "look", "input_schema": {"type": "object"}}]})";
  const HttpReply stream = server.Post("/v1/messages?beta=true", body, {"anthropic-beta: a,b"});
  ASSERT_EQ(stream.status, 200) << stream.body;
  std::vector<std::string> order;
  for (const std::string& name : EventNames(stream)) {
    if (order.empty() || order.back() != name) order.push_back(name);
  }
  EXPECT_EQ(order, (std::vector<std::string>{
                       "message_start", "ping", "content_block_start", "content_block_delta",
                       "content_block_stop", "content_block_start", "content_block_delta",
                       "content_block_stop", "content_block_start", "content_block_delta",
                       "content_block_stop", "message_delta", "message_stop"}));
  std::string arguments;
  bool is_signed = false;
  int64_t open = -1;
  for (const Json& event : EventData(stream)) {
    const std::string type = event["type"].get<std::string>();
    if (type == "content_block_start") {
      EXPECT_EQ(event["index"], ++open);
    }
    if (type != "content_block_delta") continue;
    EXPECT_EQ(event["index"], open);
    const Json& delta = event["delta"];
    is_signed |= delta["type"] == "signature_delta";
    if (delta["type"] == "input_json_delta") arguments += delta["partial_json"].get<std::string>();
  }
  EXPECT_TRUE(is_signed);
  EXPECT_EQ(arguments, R"({"at": "sky"})");
  const std::vector<Json> events = EventData(stream);
  EXPECT_EQ(events.front()["message"]["content"], Json::array());
  EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "tool_use");

  Json whole_body = *ParseJson(body, "body");
  whole_body["stream"] = false;
  const Json whole = server.Post("/v1/messages", whole_body.dump()).json();
  EXPECT_EQ(whole["content"][0]["thinking"], "Hm.");
  EXPECT_EQ(whole["content"][1]["text"], "I look.");
  EXPECT_EQ(whole["content"][2]["input"], Json({{"at", "sky"}}));
  EXPECT_TRUE(whole["content"][2]["id"].get<std::string>().starts_with("toolu_"));
  EXPECT_EQ(whole["stop_reason"], "tool_use");
}

TEST(Messages, CountsWhatAPromptHas) {
  TestServer server({});
  const Json counted = server.Post("/v1/messages/count_tokens", kHi).json();
  const Json answered = server.Post("/v1/messages", kHi).json();
  EXPECT_EQ(counted["input_tokens"].get<int64_t>(),
            answered["usage"]["input_tokens"].get<int64_t>() +
                answered["usage"]["cache_read_input_tokens"].get<int64_t>());
  EXPECT_EQ(server.Post("/v1/messages/count_tokens", HiWith(R"("tools": [])")).status, 200);
  EXPECT_EQ(server.Post("/v1/messages", HiWith(R"("stream": false)")).status, 400) << "max_tokens";
}

// CL-01
TEST(Messages, TheBillingLineDoesNotSpoilThePrefix) {
  TestServer server({});
  const auto ask = [&](const std::string& hash) {
    const Json body = {
        {"max_tokens", 5},
        {"system",
         {{{"type", "text"}, {"text", "x-anthropic-billing-header: cc_version=1." + hash + ";"}},
          {{"type", "text"}, {"text", std::string(2000, 's')}}}},
        {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    return server.Post("/v1/messages", body.dump()).json()["usage"];
  };
  const Json first = ask("abc");
  const Json second = ask("def");
  EXPECT_EQ(first["cache_read_input_tokens"], 0);
  EXPECT_GT(second["cache_read_input_tokens"].get<int64_t>(), 1900);
}

// CL-02
TEST(Responses, TheOrderOfEvents) {
  TestServer server({.script = kCallScript});
  const std::string body =
      R"({"input": "Hi", "stream": true, "tools": [{"type": "function", "name": "look",
          "parameters": {"type": "object"}}, {"type": "web_search"}]})";
  const HttpReply stream = server.Post("/v1/responses", body);
  ASSERT_EQ(stream.status, 200) << stream.body;
  std::vector<std::string> order;
  for (std::string name : EventNames(stream)) {
    name = name.substr(9);  // "response."
    if (order.empty() || order.back() != name) order.push_back(name);
  }
  EXPECT_EQ(order,
            (std::vector<std::string>{
                "created", "in_progress", "output_item.added", "reasoning_summary_part.added",
                "reasoning_summary_text.delta", "reasoning_summary_text.done",
                "reasoning_summary_part.done", "output_item.done", "output_item.added",
                "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
                "output_item.done", "output_item.added", "function_call_arguments.delta",
                "function_call_arguments.done", "output_item.done", "completed"}));
  int64_t number = 0;
  for (const Json& event : EventData(stream)) EXPECT_EQ(event["sequence_number"], number++);
  const Json last = EventData(stream).back()["response"];
  EXPECT_EQ(last["status"], "completed");
  EXPECT_EQ(last["output"][2]["arguments"], R"({"at": "sky"})");
  EXPECT_GT(last["usage"]["output_tokens"].get<int64_t>(), 0);
}

TEST(Responses, AreStoredContinuedAndForgotten) {
  TestServer server({});
  const Json first = server.Post("/v1/responses", R"({"input": "Hi"})").json();
  const std::string id = first["id"].get<std::string>();
  EXPECT_EQ(first["output"][0]["content"][0]["text"], "Hello, world.");
  EXPECT_EQ(server.Get("/v1/responses/" + id).json(), first);
  EXPECT_EQ(server.Get("/v1/responses/" + id + "/input_items").json()["data"][0]["content"], "Hi");
  const Json second =
      server
          .Post("/v1/responses",
                R"({"input": "And?", "store": false, "previous_response_id": ")" + id + "\"}")
          .json();
  EXPECT_EQ(second["previous_response_id"], id);
  // <user>Hi<assistant>Hello, world.<user>And?<assistant>
  EXPECT_EQ(second["usage"]["input_tokens"], 1 + 2 + 1 + 13 + 1 + 4 + 1);
  EXPECT_EQ(server.Get("/v1/responses/" + second["id"].get<std::string>()).status, 404);
  EXPECT_EQ(server.Post("/v1/responses/" + id + "/cancel", "").json()["status"], "completed");
  EXPECT_EQ(tq::test::Fetch(server.port(), "DELETE", "/v1/responses/" + id).json()["deleted"],
            true);
  EXPECT_EQ(server.Get("/v1/responses/" + id).status, 404);
  const HttpReply gone =
      server.Post("/v1/responses", R"({"input": "And?", "previous_response_id": ")" + id + "\"}");
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(gone.json()["error"]["code"], "response_not_found");
}

TEST(Responses, CutAnswersAreIncomplete) {
  TestServer server({.endless = true});
  const Json answer =
      server.Post("/v1/responses", R"({"input": "Hi", "max_output_tokens": 3})").json();
  EXPECT_EQ(answer["status"], "incomplete");
  EXPECT_EQ(answer["incomplete_details"]["reason"], "max_output_tokens");
  const HttpReply stream =
      server.Post("/v1/responses", R"({"input": "Hi", "max_output_tokens": 3, "stream": true})");
  EXPECT_EQ(EventNames(stream).back(), "response.incomplete");
}

// CL-03, CL-04
TEST(Responses, ReplayedItemsOfAllKindsAreTaken) {
  TestServer server({});
  const HttpReply reply = server.Post("/v1/responses", R"({"store": false, "input": [
      {"role": "user", "content": "Hi"},
      {"type": "reasoning", "summary": [], "encrypted_content": null},
      {"type": "reasoning", "id": "rs_1"},
      {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
      {"type": "function_call_output", "call_id": "c1", "output": "1"},
      {"type": "function_call_output", "call_id": "c9", "output": "9"}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  const HttpReply open = server.Post("/v1/messages", R"({"max_tokens": 5, "messages": [
      {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}},
                                        {"type": "tool_use", "id": "t2", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}]}]})");
  EXPECT_EQ(open.status, 200) << open.body;
}

TEST(Responses, FreeTextToolsAndNameSpaces) {
  TestServer server({.script = "<tool_call>{\"name\": \"apply\", \"arguments\": {\"input\": "
                               "\"a b\"}}</tool_call><tool_call>{\"name\": \"space__look\", "
                               "\"arguments\": {}}</tool_call>"});
  const HttpReply stream =
      server.Post("/v1/responses", R"({"stream": true, "input": "Hi", "tools": [
      {"type": "custom", "name": "apply"},
      {"type": "namespace", "name": "space", "tools": [{"type": "function", "name": "look"}]}]})");
  const Json output = EventData(stream).back()["response"]["output"];
  ASSERT_EQ(output.size(), 2u) << stream.body;
  EXPECT_EQ(output[0]["type"], "custom_tool_call");
  EXPECT_EQ(output[0]["input"], "a b");
  EXPECT_EQ(output[1]["name"], "look");
  EXPECT_EQ(output[1]["namespace"], "space");
}

}  // namespace
}  // namespace tq::server
