// Routes, keys, models, and what every endpoint refuses.
#include <set>

#include "base/file.h"
#include "server/fields.h"
#include "server/router.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpClient;
using tq::test::HttpReply;

TEST(Router, FindsEndpointsAndTheirArguments) {
  EXPECT_EQ(FindRoute("GET", "/health").endpoint->path, "/health");
  EXPECT_EQ(FindRoute("HEAD", "/").endpoint->path, "/");
  EXPECT_EQ(FindRoute("GET", "/v1/models/").endpoint->path, "/v1/models");
  EXPECT_EQ(FindRoute("GET", "/v1/models/org/a%2Db").arguments,
            std::vector<std::string>{"org/a-b"});
  EXPECT_EQ(FindRoute("GET", "/v1/responses/r1/input_items").arguments,
            std::vector<std::string>{"r1"});
  EXPECT_EQ(FindRoute("PUT", "/v1/responses/r1").allowed, "GET, DELETE");
  for (const char* path : {"", "*", "/v1", "/v1/chat", "/v1/chat/completions/x", "/v1//models"}) {
    EXPECT_EQ(FindRoute("GET", path).endpoint, nullptr) << path;
  }
}

TEST(Router, EveryEndpointIsFoundOnceAndHasADoc) {
  std::set<std::string> seen;
  for (const Endpoint& endpoint : Endpoints()) {
    EXPECT_FALSE(endpoint.doc.empty());
    EXPECT_TRUE(
        seen.insert(std::string(endpoint.method) + " " + std::string(endpoint.path)).second);
  }
}

// tools/api_doc.py makes the page.
TEST(Router, TheDocsListEveryEndpoint) {
  const auto page = ReadTextFile(TQ_SOURCE_DIR "/docs/api.md");
  ASSERT_TRUE(page.ok());
  for (const Endpoint& endpoint : Endpoints()) {
    const std::string row = "| " + std::string(endpoint.method) + " | `" +
                            std::string(endpoint.path) + "` | " + std::string(endpoint.doc) + " |";
    EXPECT_NE(page->find(row), std::string::npos) << row;
  }
}

TEST(Server, UnknownPathsAndMethods) {
  TestServer server({});
  // AP-09
  HttpReply reply = server.Post("/v1/nothing", "{}");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.json()["error"]["type"], "invalid_request_error");
  EXPECT_EQ(server.Post("/v1/messages/count_tokens?beta=true", kHi).status, 200);
  reply = server.Post("/v1/messages/nothing", "{}");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.json()["type"], "error");
  EXPECT_EQ(reply.json()["error"]["type"], "not_found_error");
  EXPECT_EQ(reply.json()["request_id"], reply.headers.at("request-id"));
  reply = server.Get("/v1/chat/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.headers.at("allow"), "POST");
}

TEST(Server, FirstQuestionsOfClients) {
  TestServer server({.service = {.api_keys = {"secret"}}});
  EXPECT_EQ(tq::test::Fetch(server.port(), "HEAD", "/").status, 200);
  EXPECT_EQ(tq::test::Fetch(server.port(), "HEAD", "/api/hello").status, 200);
  EXPECT_EQ(server.Get("/health").json()["status"], "ok");
  // A client that begins with a WebSocket falls back at once on 426 alone.
  const HttpReply reply = server.Get("/v1/responses", {"Connection: Upgrade", "Upgrade: websocket",
                                                       "Authorization: Bearer secret"});
  EXPECT_EQ(reply.status, 426);
}

TEST(Server, KeysInBothHeaders) {
  TestServer server({.service = {.api_keys = {"first", "second"}}});
  const std::pair<const char*, int> cases[] = {
      {"Authorization: Bearer first", 200},
      {"authorization: bearer second", 200},
      {"x-api-key: second", 200},
      {"X-Api-Key: firs", 401},
      {"x-api-key: firstt", 401},
      {"x-api-key: ", 401},
      {"Authorization: first", 401},
      {"Authorization: Bearer ", 401},
      {"Other: first", 401},
  };
  for (const auto& [header, status] : cases) {
    EXPECT_EQ(server.Get("/v1/models", {header}).status, status) << header;
    EXPECT_EQ(server.Post("/v1/messages", kHi, {header}).status, status) << header;
  }
  EXPECT_EQ(server.Get("/v1/models").json()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(server.Post("/v1/messages", kHi).json()["error"]["type"], "authentication_error");
}

TEST(Server, ModelsForBothApis) {
  TestServer server({});
  const Json list = server.Get("/v1/models?limit=1000").json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "test-model");
  EXPECT_EQ(list["data"][0]["type"], "model");
  // CX-03: the window is a fact of the server.
  EXPECT_EQ(list["data"][0]["context_length"], 4096);
  EXPECT_EQ(list["has_more"], false);
  EXPECT_EQ(server.Get("/v1/models/test-model").json()["display_name"], "test-model");
  EXPECT_EQ(server.Get("/v1/models/other").status, 404);
}

// CL-06
TEST(Server, AnyModelNameIsServedUnlessStrict) {
  TestServer server({});
  for (const char* name : {"x-small", "x-large"}) {
    const HttpReply reply =
        server.Post("/v1/chat/completions", HiWith("\"model\": \"" + std::string(name) + "\""));
    EXPECT_EQ(reply.json()["model"], name);
  }
  EXPECT_EQ(server.Post("/v1/chat/completions", HiWith(R"("model": "")")).json()["model"],
            "test-model");
  TestServer strict({.service = {.any_model_name = false}});
  EXPECT_EQ(strict.Post("/v1/chat/completions", HiWith(R"("model": "x")")).status, 404);
  EXPECT_EQ(strict.Post("/v1/messages", HiWith(R"("max_tokens": 5, "model": "x")"))
                .json()["error"]["type"],
            "not_found_error");
}

TEST(Server, BrowsersOfNamedOrigins) {
  TestServer server({.service = {.api_keys = {"k"}, .origins = {"http://page"}}});
  const HttpReply asked =
      tq::test::Fetch(server.port(), "OPTIONS", "/v1/messages", "",
                      {"Origin: http://page", "Access-Control-Request-Headers: x-api-key"});
  EXPECT_EQ(asked.status, 204);
  EXPECT_EQ(asked.headers.at("access-control-allow-origin"), "http://page");
  EXPECT_EQ(asked.headers.at("access-control-allow-headers"), "x-api-key");
  EXPECT_EQ(
      server.Get("/health", {"Origin: http://other"}).headers.count("access-control-allow-origin"),
      0u);
}

TEST(Server, RefusesBodiesWithTheFieldsName) {
  TestServer server({});
  const std::pair<std::string, std::string> cases[] = {
      {"", "body"},
      {"[1]", "body"},
      {"{\"messages\": [", "body"},
      {"{\"a\": 1, \"a\": 2}", "a"},
      {std::string(1000, '['), "body"},
      {"{}", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": [{"role": "robot", "content": "x"}]})", "messages[0].role"},
      {HiWith(R"("temperature": -1)"), "temperature"},
      {HiWith(R"("temperature": true)"), "temperature"},
      {HiWith(R"("temperature": 1e999)"), "body"},
      {HiWith(R"("top_p": 1.5)"), "top_p"},
      {HiWith(R"("top_k": 1.5)"), "top_k"},
      {HiWith(R"("max_tokens": 0)"), "max_tokens"},
      {HiWith(R"("max_tokens": "ten")"), "max_tokens"},
      {HiWith(R"("seed": 1.5)"), "seed"},
      {HiWith(R"("stop": [1])"), "stop[0]"},
      {HiWith(R"("stop": {})"), "stop"},
      {HiWith(R"("n": 200)"), "n"},
      {HiWith(R"("logit_bias": {"a": 1})"), "logit_bias"},
      {HiWith(R"("logit_bias": {"9999": 1})"), "logit_bias"},
      {HiWith(R"("stream": "yes")"), "stream"},
      {HiWith(R"("response_format": {"type": "xml"})"), "response_format.type"},
      {HiWith(R"("tool_choice": "required")"), "tool_choice"},
      {HiWith(R"("reasoning_effort": "huge")"), "reasoning_effort"},
  };
  for (const auto& [body, field] : cases) {
    const HttpReply reply = server.Post("/v1/chat/completions", body);
    EXPECT_EQ(reply.status, 400) << body;
    const Json error = reply.json()["error"];
    EXPECT_NE(error["message"].get<std::string>().find(field), std::string::npos)
        << body << ": " << error;
    EXPECT_EQ(error["type"], "invalid_request_error");
  }
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi).status, 200);
}

// AP-07
TEST(Server, UnknownFieldsAreIgnored) {
  TestServer server({});
  const HttpReply reply = server.Post(
      "/v1/chat/completions",
      HiWith(R"("truncate_prompt_tokens": 5, "invented": {"a": [1]}, "user": "u", "metadata": {},
                "parallel_tool_calls": true, "service_tier": "auto", "store": false)"));
  EXPECT_EQ(reply.json()["choices"][0]["message"]["content"], "Hello, world.");
}

// CX-01, CX-02
TEST(Server, APromptThatIsTooLongIsRefusedWithBothNumbers) {
  TestServer server({.max_context = 100});
  const std::string body = R"({"max_tokens": 5, "messages": [{"role": "user", "content": ")" +
                           std::string(98, 'a') + R"("}]})";
  const Json openai = server.Post("/v1/chat/completions", body).json()["error"];
  EXPECT_EQ(openai["code"], "context_length_exceeded");
  EXPECT_NE(openai["message"].get<std::string>().find("maximum context length is 100 tokens"),
            std::string::npos);
  EXPECT_NE(openai["message"].get<std::string>().find(" 100 tokens"), std::string::npos);
  const Json anthropic = server.Post("/v1/messages", body).json()["error"];
  EXPECT_EQ(anthropic["type"], "invalid_request_error");
  EXPECT_EQ(anthropic["message"], "prompt is too long: 100 tokens > 99 maximum");
  // One token less fits, and all of it is read.
  const std::string fits = R"({"max_tokens": 5, "messages": [{"role": "user", "content": ")" +
                           std::string(97, 'a') + R"("}]})";
  const Json answer = server.Post("/v1/chat/completions", fits).json();
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 99);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
}

// CX-04
TEST(Server, MoreTokensThanTheContextHasEndWithLength) {
  TestServer server({.endless = true, .max_context = 64});
  const Json answer =
      server.Post("/v1/chat/completions", HiWith(R"("max_tokens": 4000000)")).json();
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["total_tokens"], 64);
}

TEST(Server, TokensOfTextsAndConversations) {
  TestServer server({});
  const Json tokens = server.Post("/tokenize", R"({"content": "ab<s>"})").json();
  EXPECT_EQ(tokens["tokens"], Json({107, 108, 1}));
  EXPECT_EQ(
      server.Post("/tokenize", R"({"content": "<s>", "parse_special": false})").json()["count"], 3);
  EXPECT_EQ(server.Post("/detokenize", R"({"tokens": [107, 108, 1]})").json()["content"], "ab<s>");
  EXPECT_EQ(server.Post("/detokenize", R"({"tokens": [266]})").status, 400);
  EXPECT_EQ(server.Post("/tokenize", kHi).json()["count"], 4);
  EXPECT_EQ(server.Get("/props").json()["context_length"], 4096);
  EXPECT_NE(server.Get("/metrics").body.find("turboquant_requests_waiting 0"), std::string::npos);
  EXPECT_TRUE(server.Get("/openapi.json").json()["paths"].contains("/v1/models/{model}"));
}

TEST(Fields, NumbersAreNotBooleansOrTexts) {
  const OrderedJson json = {{"a", 3.0}, {"b", true}, {"c", "3"}, {"d", 1e300}, {"e", nullptr}};
  const RequestNode node(json, "");
  EXPECT_EQ(**OptionalInt(node["a"], 0, 5), 3);
  EXPECT_FALSE(OptionalInt(node["a"], 4, 5).ok());
  EXPECT_FALSE(OptionalInt(node["b"], 0, 5).ok());
  EXPECT_FALSE(OptionalInt(node["c"], 0, 5).ok());
  EXPECT_FALSE(OptionalInt(node["d"], 0, 5).ok());
  EXPECT_FALSE(OptionalInt(node["e"], 0, 5)->has_value());
  EXPECT_EQ(OptionalBool(node["a"]).status().message(), "a: expected true or false, found 3.0");
}

}  // namespace
}  // namespace tq::server
