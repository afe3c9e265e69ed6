// What went wrong with requests in public elsewhere: histories, templates, numbers, forms of an
// answer. The names begin with the ids of the cases.
#include "server/cases_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

// Tokens that the same conversation has as a prompt, in several forms.
int64_t PromptTokensOf(const TestServer& server, const std::string& path, const Json& body) {
  const HttpReply reply = server.Post(path, body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body << body.dump();
  if (reply.status != 200) return -1;
  const Json usage = reply.json()["usage"];
  if (usage.contains("prompt_tokens")) return usage["prompt_tokens"].get<int64_t>();
  return usage["input_tokens"].get<int64_t>() + usage.value("cache_read_input_tokens", int64_t{0});
}

TEST(Cases, TC18_AToolWithoutDescriptionOrParametersIsRendered) {
  TestServer server(Says("x", TemplateWith("<tool_call>arguments")));
  const auto tokens = [&](const Json& tools) {
    Json body = Body(kPaths[0], false, false);
    body["tools"] = tools;
    return PromptTokensOf(server, kPaths[0], body);
  };
  const auto tool = [](Json function) {
    return Json{{"type", "function"}, {"function", std::move(function)}};
  };
  const Json add = tool(Json{{"name", "add"}, {"parameters", {{"type", "object"}}}});
  const int64_t alone = tokens(Json::array({add}));
  EXPECT_GT(tokens(Json::array({tool(Json{{"name", "ping"}}), add})), alone);
  EXPECT_GT(tokens(Json::array({add, tool(Json{{"name", "ping"}, {"description", nullptr}})})),
            alone);
}

// TC-19, TC-20, AP-06, CL-04, CL-05, TM-07, and the like: histories that were refused for ever.
struct HistoryCase {
  const char* id;
  const char* path;
  const char* messages;  // or the input
};

constexpr HistoryCase kHistories[] = {
    {"TC19", "/v1/chat/completions",
     R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls":
         [{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
         {"role": "assistant", "content": "I look."},
         {"role": "tool", "tool_call_id": "c1", "content": "pong"}])"},
    {"TC20", "/v1/chat/completions",
     R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls":
         [{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
         {"role": "tool", "tool_call_id": "c1", "content": "pong"}])"},
    {"TC20 missing", "/v1/chat/completions",
     R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls":
         [{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
         {"role": "tool", "tool_call_id": "c1", "content": "pong"}])"},
    {"TC20 empty", "/v1/chat/completions",
     R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls":
         [{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
         {"role": "tool", "tool_call_id": "c1", "content": "pong"}])"},
    {"TC20 list", "/v1/chat/completions",
     R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [], "tool_calls":
         [{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
         {"role": "tool", "tool_call_id": "c1", "content": "pong"}])"},
    {"TM07 neighbours", "/v1/chat/completions",
     R"([{"role": "system", "content": "a"}, {"role": "developer", "content": "b"},
         {"role": "user", "content": "c"}, {"role": "user", "content": "d"},
         {"role": "system", "content": "e"}])"},
    {"CL09", "/v1/chat/completions",
     R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "reasoning_content": "Hm.",
         "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ping",
         "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "pong"},
         {"role": "assistant", "reasoning": "Hm again.", "content": "x"},
         {"role": "user", "content": "And?"}])"},
    {"CL05", "/v1/messages",
     R"([{"role": "user", "content": [{"type": "text", "text": "", "cache_control":
         {"type": "ephemeral"}}, {"type": "text", "text": "Hi"}]}])"},
    {"TM07 instructions", "/v1/responses",
     R"([{"role": "developer", "content": "a"}, {"role": "user", "content": "b"},
         {"role": "user", "content": "c"}])"},
};

TEST(Cases, TC19_TC20_TM07_CL05_CL09_HistoriesThatAreTaken) {
  // A template that wants one system message at the top, and turns in order.
  const std::string strict =
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
      "{{ raise_exception('system must come first') }}{% endif %}"
      "{% if not loop.first and m.role == messages[loop.index0 - 1].role and m.role != 'tool' %}"
      "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}" +
      TemplateWith("<tool_call>arguments</tool_call>");
  TestServer lenient(Says("x"));
  TestServer raising(Says("x", strict));
  std::map<std::string, int64_t> tokens;
  for (const HistoryCase& item : kHistories) {
    SCOPED_TRACE(item.id);
    Json body = {{"max_tokens", 5}, {"instructions", "Be brief."}};
    body[std::string(item.path) == "/v1/responses" ? "input" : "messages"] =
        *ParseJson(item.messages, item.id);
    tokens[item.id] = PromptTokensOf(lenient, item.path, body);
    EXPECT_EQ(raising.Post(item.path, body.dump()).status, 200)
        << raising.Post(item.path, body.dump()).body;
  }
  for (const char* form : {"TC20 missing", "TC20 empty", "TC20 list"}) {
    EXPECT_EQ(tokens[form], tokens["TC20"]) << form;
  }
}

TEST(Cases, AP06_PartsOfAnAssistantAreJoined) {
  TestServer server(Says("x"));
  const auto tokens = [&](const Json& content) {
    const Json body = {{"max_tokens", 1},
                       {"messages",
                        {{{"role", "user"}, {"content", "Hi"}},
                         {{"role", "assistant"}, {"content", content}},
                         {{"role", "user"}, {"content", "And?"}}}}};
    return PromptTokensOf(server, kPaths[0], body);
  };
  const Json parts = {{{"type", "text"}, {"text", "A"}}, {{"type", "text"}, {"text", "B"}}};
  EXPECT_EQ(tokens(parts), tokens("AB"));
  const Json unknown = Json::array({Json{{"type", "smell"}, {"smell", "x"}}});
  const Json body = {
      {"messages", Json::array({Json{{"role", "assistant"}, {"content", unknown}}})}};
  EXPECT_EQ(server.Post(kPaths[0], body.dump()).status, 400);
}

// TM-02: a template that cannot be used; texts are continued all the same.
TEST(Cases, TM02_TM04_ABrokenTemplateIsSaidAndCompletionsGoOn) {
  TestServerOptions options = Says("x");
  options.load_text = [](TextAssets& text) {
    text.tokenizer = std::move(Tokenizer::Load(tq::test::ByteTokenizerJson(), "")).value();
    ChatDocuments documents;
    documents.chat_template_jinja = "{% for m in %}";
    const auto chat = ChatPrompt::Load(documents);
    EXPECT_FALSE(chat.ok());
    text.chat_status = chat.status();
    text.end_ids = {tq::test::ScriptModel::kEnd};
  };
  TestServer server(std::move(options));
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": "a"})").status, 200);
  const HttpReply reply = server.Post(kPaths[0], kHi);
  EXPECT_GE(reply.status, 400);
  EXPECT_NE(reply.json()["error"]["message"].get<std::string>().find("line 1"), std::string::npos)
      << reply.body;
}

// What templates of real checkpoints use, and a name that nobody knows.
TEST(Cases, TM01_TM03_TM05_ConstructsOfTemplates) {
  const char* pieces[] = {
      "{{ 'a' | safe }}",
      "{{ messages | rejectattr('role', 'equalto', 'tool') | list | length }}",
      "{% if messages is sequence %}a{% endif %}",
      "{% if messages[0] is mapping %}a{% endif %}",
      "{% for k, v in messages[0] | items %}{{ k }}{% endfor %}",
      "{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}",
      "{% for m in messages %}{{ loop.previtem is defined }}{% endfor %}",
      "{{ 'abc'[::-1] }}",
      "{{ 'a' ~ 1 }}",
      "{{ 'a' if messages }}",
      "{% macro f(x, y='b') %}{{ x }}{{ y }}{% endmacro %}{{ f('a') }}",
      "{{ strftime_now('%Y') }}",
      "{{ ' a b '.strip().split(' ')[-1] }}{{ 'ab'.startswith('a') }}",
      "{% generation %}a{% endgeneration %}",
      "{% for i in range(9) %}{% if i == 3 %}{% break %}{% else %}{% continue %}{% endif %}"
      "{% endfor %}",
      "{{ 'a</x>b'.split('</x>')[-1].lstrip('\\n') }}",
  };
  for (const char* piece : pieces) {
    TestServer server(Says("x", piece + TemplateWith("<tool_call>arguments")));
    EXPECT_EQ(server.Post(kPaths[0], kHi).status, 200) << piece << server.Post(kPaths[0], kHi).body;
  }
  ChatDocuments documents;
  documents.chat_template_jinja = "a\nb{{ 'c' | frobnicate }}";
  const auto chat = ChatPrompt::Load(documents);
  ASSERT_FALSE(chat.ok());
  EXPECT_NE(chat.status().message().find("frobnicate"), std::string::npos);
  EXPECT_NE(chat.status().message().find("line 2"), std::string::npos) << chat.status().message();
}

TEST(Cases, TM13_AnyOfSeveralEndsIsTheEnd) {
  TestServerOptions options = Says("abZcd");
  const auto load = options.load_text;
  options.load_text = [load](TextAssets& text) {
    load(text);
    text.end_ids = {tq::test::ScriptModel::kEnd, 'Y' + tq::test::kFirstByteId,
                    'Z' + tq::test::kFirstByteId};
  };
  TestServer server(std::move(options));
  for (const char* path : kPaths) {
    const Lines lines = SummaryOf(server.Post(path, Body(path, false, false).dump()).json());
    EXPECT_EQ(lines, (Lines{"text ab", EndOf(path, "stop")}));
  }
}

// LD-08, CVE-2026-21869: every number of a request at its edges. Nothing but an answer or a 400.
TEST(Cases, LD08_NumbersAtTheirEdges) {
  TestServer server(Says("x"));
  const char* numbers[] = {"-1",
                           "2147483648",
                           "-9223372036854775808",
                           "9223372036854775808",
                           "1e300",
                           "-0.0",
                           "1.5",
                           "\"1\"",
                           "null",
                           "NaN",
                           "[]",
                           "18446744073709551616"};
  const char* fields[] = {"max_tokens",
                          "max_completion_tokens",
                          "max_output_tokens",
                          "temperature",
                          "top_p",
                          "top_k",
                          "min_p",
                          "typical_p",
                          "seed",
                          "presence_penalty",
                          "frequency_penalty",
                          "repetition_penalty",
                          "min_tokens",
                          "n",
                          "best_of",
                          "logprobs",
                          "top_logprobs",
                          "xtc_probability",
                          "xtc_threshold",
                          "dry_multiplier",
                          "dry_base",
                          "dry_allowed_length",
                          "dry_penalty_last_n"};
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/v1/messages",
                           "/v1/responses", "/v1/messages/count_tokens"}) {
    for (const char* field : fields) {
      for (const char* number : numbers) {
        const std::string most = std::string(field) == "max_tokens" ? "" : R"("max_tokens": 4, )";
        const std::string body = R"({"messages": [{"role": "user", "content": "Hi"}], "input": "Hi",
            "prompt": "Hi", )" + most +
                                 "\"" + field + "\": " + number + "}";
        const HttpReply reply = server.Post(path, body);
        EXPECT_TRUE(reply.status == 200 || reply.status == 400)
            << path << " " << field << " " << number << ": " << reply.status << reply.body;
        if (reply.status == 400) {
          EXPECT_TRUE(reply.json()["error"].contains("message"));
        }
      }
    }
  }
  for (const char* number : numbers) {
    for (const std::string& body : {"{\"tokens\": [" + std::string(number) + "]}",
                                    "{\"tokens\": " + std::string(number) + "}"}) {
      const int status = server.Post("/detokenize", body).status;
      EXPECT_TRUE(status == 200 || status == 400) << body;
    }
    const int status =
        server.Post("/v1/completions", "{\"prompt\": [" + std::string(number) + "]}").status;
    // The one is id 0, the other a list of prompts.
    const bool fits = std::string(number) == "-0.0" || std::string(number) == "\"1\"";
    EXPECT_EQ(status, fits ? 200 : 400) << number;
  }
}

// SO-02, SO-06: an answer that is held to a form ends with it, on every API.
TEST(Cases, SO02_SO06_EveryApiHoldsAnswersToTheirForm) {
  TestServer server(Says("{\"n\": 42}\n\n\n\n\n\n"));
  const Json schema = {{"type", "object"},
                       {"properties", {{"n", {{"type", "integer"}}}}},
                       {"required", Json::array({"n"})},
                       {"additionalProperties", false}};
  const Json format = {{"type", "json_schema"}, {"name", "x"}, {"schema", schema}};
  Json chat = Body(kPaths[0], false, false);
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", format}};
  Json messages = Body(kPaths[1], false, false);
  messages["output_config"] = {{"format", format}};
  messages["thinking"] = {{"type", "disabled"}};
  Json responses = Body(kPaths[2], false, false);
  responses["text"] = {{"format", format}};
  for (const auto& [path, body] : {std::pair(kPaths[0], chat), std::pair(kPaths[1], messages),
                                   std::pair(kPaths[2], responses)}) {
    const HttpReply reply = server.Post(path, body.dump());
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Lines lines = SummaryOf(reply.json());
    ASSERT_EQ(lines.size(), 2u) << reply.body;
    const auto json = ParseJson(lines.front().substr(5), "answer");
    ASSERT_TRUE(json.ok()) << lines.front();
    EXPECT_TRUE((*json)["n"].is_number_integer());
    EXPECT_EQ(lines.back(), EndOf(path, "stop"));
  }
}

// SO-01: a model that would rather write blanks than go on (of the allowed bytes the lowest wins).
TEST(Cases, SO01_BlanksHaveAnEnd) {
  TestServer server(Says("{\x7F"));
  const Json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "boolean"}}}, {"b", {{"type", "null"}}}}},
                       {"required", Json::array({"a", "b"})},
                       {"additionalProperties", false}};
  Json body = Body(kPaths[0], false, false);
  body["response_format"] = {{"type", "json_schema"},
                             {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  const Json choice = server.Post(kPaths[0], body.dump()).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop") << choice;
  const auto json = ParseJson(choice["message"]["content"].get<std::string>(), "answer");
  ASSERT_TRUE(json.ok()) << choice;
  EXPECT_EQ(*json, Json({{"a", false}, {"b", nullptr}}));
}

// SO-04, SO-05: what a tool's schema says never makes a request fail.
TEST(Cases, SO04_SO05_ForeignToolSchemasAreTaken) {
  TestServer server(Says("x"));
  const Json schema = {
      {"type", "object"},
      {"properties",
       {{"a", {{"type", "string"}, {"maxLength", 100000}, {"pattern", "[a-z]+-\\d"}}},
        {"b", {{"type", "array"}, {"maxItems", 5000}, {"items", {{"type", "string"}}}}},
        {"c", {{"oneOf", {{{"type", "null"}}, {{"type", "integer"}}}}}}}}};
  Json body = Body(kPaths[0], false, false);
  const Json function = {{"name", "f"}, {"parameters", schema}};
  body["tools"] = Json::array({Json{{"type", "function"}, {"function", function}}});
  EXPECT_EQ(server.Post(kPaths[0], body.dump()).status, 200);
}

}  // namespace
}  // namespace tq::server
