// The program as a server, with the demo model.
#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "e2e/program.h"
#include "e2e/server_program.h"
#include "support/http_client.h"

namespace tq::test {
namespace {

constexpr const char* kDemo = TQ_SOURCE_DIR "/demo";

TEST(Serve, AnswersAsGenerateDoes) {
  const Outcome alone = RunProgram("generate --json --quiet --model " + std::string(kDemo) +
                                   " --max-tokens 40 --prompt 'What is 3 plus 4?'");
  const Json expected = ParseOut(alone);
  const TempFolder folder;
  ServerProgram server({"--model", kDemo, "--log-file", folder / "log", "--api-key", "k"});
  const std::string question =
      R"("messages": [{"role": "user", "content": "What is 3 plus 4?"}], "max_tokens": 40)";
  const std::vector<std::string> key{"Authorization: Bearer k"};
  const HttpReply whole =
      Fetch(server.port(), "POST", "/v1/chat/completions", "{" + question + "}", key);
  ASSERT_EQ(whole.status, 200) << whole.body;
  EXPECT_EQ(whole.json()["choices"][0]["message"]["content"], expected["text"]);
  EXPECT_EQ(whole.json()["model"], "demo");

  const HttpReply message =
      Fetch(server.port(), "POST", "/v1/messages", "{" + question + "}", {"x-api-key: k"});
  EXPECT_EQ(message.json()["stop_reason"], "end_turn") << message.body;
  EXPECT_EQ(Fetch(server.port(), "GET", "/v1/models").status, 401);

  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  const auto log = ReadTextFile(folder / "log");
  ASSERT_TRUE(log.ok());
  EXPECT_NE(log->find("answer id=" + whole.headers.at("x-request-id")), std::string::npos) << *log;
  EXPECT_EQ(log->find("3 plus 4"), std::string::npos) << "no prompts in logs";
}

TEST(Serve, LogprobsAreThoseOfGenerate) {
  const Json alone =
      ParseOut(RunProgram("generate --json --quiet --logprobs 2 --model " + std::string(kDemo) +
                          " --max-tokens 40 --prompt 'What is 3 plus 4?'"));
  const ServerProgram server({"--model", kDemo});
  const Json answer =
      Fetch(server.port(), "POST", "/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": "What is 3 plus 4?"}], "max_tokens": 40,
                "n": 2, "logprobs": true, "top_logprobs": 2})")
          .json();
  ASSERT_EQ(answer["choices"].size(), 2u) << answer;
  EXPECT_EQ(answer["choices"][0]["logprobs"]["content"], alone["logprobs"]["content"]);
  EXPECT_EQ(answer["choices"][0]["message"], answer["choices"][1]["message"]) << "greedy";
}

// The model would answer the question.
TEST(Serve, ACallComesWhenItMust) {
  const ServerProgram server({"--model", kDemo});
  const HttpReply reply =
      Fetch(server.port(), "POST", "/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": "What is 3 plus 4?"}], "max_tokens": 200,
          "tools": [{"type": "function", "function": {"name": "get_weather", "parameters":
          {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]},
          "days": {"type": "integer"}}, "required": ["city"]}}}],
          "tool_choice": "required", "parallel_tool_calls": false})");
  if (reply.status == 501) GTEST_SKIP() << "built without XGrammar";
  const Json choice = reply.json()["choices"][0];
  ASSERT_EQ(choice["finish_reason"], "tool_calls") << reply.body;
  const Json& function = choice["message"]["tool_calls"][0]["function"];
  EXPECT_EQ(function["name"], "get_weather");
  const auto arguments = ParseJson(function["arguments"].get<std::string>(), "arguments");
  ASSERT_TRUE(arguments.ok()) << reply.body;
  EXPECT_TRUE((*arguments)["city"] == "Oslo" || (*arguments)["city"] == "Rome") << reply.body;
}

TEST(Serve, ASignalLetsAnswersFinish) {
  ServerProgram server({"--model", kDemo});
  HttpClient client(server.port());
  client.SendRequest(
      "POST", "/v1/completions",
      R"({"prompt": "Once", "max_tokens": 300, "ignore_eos": true, "stream": true})");
  ASSERT_TRUE(client.ReadUntil("\"text\""));
  server.Signal(SIGINT);
  const HttpReply reply = client.Read();
  EXPECT_TRUE(reply.complete);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(server.Wait(), 0);
}

TEST(Serve, ASecondSignalEndsAtOnce) {
  ServerProgram server({"--model", kDemo});
  HttpClient client(server.port());
  client.SendRequest(
      "POST", "/v1/completions",
      R"({"prompt": "Once", "max_tokens": 4000, "ignore_eos": true, "stream": true})");
  ASSERT_TRUE(client.ReadUntil("\"text\""));
  server.Signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 128 + SIGTERM);
}

TEST(Serve, AnotherRunGoesOnFromTheDisk) {
  const TempFolder folder;
  std::string words;
  for (int i = 0; i < 40; ++i) words += "box " + std::to_string(i) + " is here. ";
  const std::string body = R"({"messages": [{"role": "user", "content": ")" + words +
                           R"(What is 3 plus 4?"}], "max_tokens": 30, "temperature": 0})";
  Json answers[2];
  for (Json& answer : answers) {
    ServerProgram server({"--model", kDemo, "--kv-bits", "4", "--disk-cache", folder / "cache",
                          "--disk-cache-min-tokens", "64"});
    const Json props = Fetch(server.port(), "GET", "/props").json();
    EXPECT_EQ(props["kv_format"], "K4/V4");
    EXPECT_EQ(props["disk_cache"]["folder"], folder / "cache");
    answer = Fetch(server.port(), "POST", "/v1/chat/completions", body).json();
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
  const auto cached = [](const Json& answer) {
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
  };
  EXPECT_EQ(cached(answers[0]), 0) << answers[0];
  EXPECT_GE(cached(answers[1]), 64) << answers[1];
  EXPECT_EQ(answers[0]["choices"], answers[1]["choices"]);
}

// AP-11
TEST(Serve, BadFlagsAreOneLine) {
  const std::string model = " --model " + std::string(kDemo);
  EXPECT_EQ(CheckError(RunProgram("serve --port 99999" + model), 2, {"--port"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --max-batch 4O96" + model), 2, {"--max-batch"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --max-btch 4" + model), 2, {"--max-btch"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --api-key-file /none" + model), 1, {"/none"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --chat-template-args '[1]'" + model), 1,
                       {"--chat-template-args", "object"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --no-prefix-cache --disk-cache /tmp" + model), 1,
                       {"--no-prefix-cache"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --unix-socket /dev/null/socket" + model), 1,
                       {"/dev/null/socket"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --log-file /dev/null/log" + model), 1,
                       {"/dev/null/log"}),
            "");
}

Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return file ? Status::Ok() : IoError(path);
}

TEST(Serve, AFileOfFlags) {
  const TempFolder folder;
  const std::string config = folder / "serve.toml";
  ASSERT_TRUE(Write(config, "# a comment\nmodel = \"" + std::string(kDemo) +
                                "\"\nserved-model-name = [\"local\", \"other\"]\n"
                                "context-length = 1000  # tokens\nrate-limit = 1\napi-key = 'k 1'\n"
                                "prefill-keepalive = false\nstrict-model-name = true\n")
                  .ok());
  // The command line wins.
  ServerProgram server({"--config", config, "--context-length", "500"});
  const std::vector<std::string> key{"x-api-key: k 1"};
  EXPECT_EQ(Fetch(server.port(), "GET", "/props").status, 401);
  const Json list = Fetch(server.port(), "GET", "/v1/models", "", key).json();
  EXPECT_EQ(list["data"][0]["id"], "local");
  EXPECT_EQ(list["data"][0]["context_length"], 500);
  const auto ask = [&](const std::string& model) {
    return Fetch(server.port(), "POST", "/v1/completions",
                 R"({"prompt": "a", "max_tokens": 1, "model": ")" + model + "\"}", key);
  };
  EXPECT_EQ(ask("third").status, 404);
  const HttpReply late = ask("other");
  EXPECT_EQ(late.status, 429);
  EXPECT_GT(std::stoi(late.headers.at("retry-after")), 30);
}

TEST(Serve, ABadFileOfFlagsNamesTheKey) {
  const TempFolder folder;
  const std::string config = folder / "serve.toml";
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"prot = 80", {"prot", "port"}},
      {"port = eighty", {"port", "eighty"}},
      {"port = 99999", {"port", "99999"}},
      {"port = 1\nhost = \"x\"\nport = 2", {"port", "twice"}},
      {"json = maybe", {"json"}},
      {"replay = \"x\"", {"replay"}},
      {"config = \"x\"", {"config"}},
      {"help = true", {"help"}},
      {"[network]\nport = 1", {"network"}},
      {"api-key = \"a#b\"", {"line 1", "#"}},
      {"api-key = \"ab", {"line 1"}},
      {"just words", {"just words"}},
      {"log-level = \"loud\"", {"log-level", "loud"}},
  };
  for (const auto& [text, named] : cases) {
    ASSERT_TRUE(Write(config, text).ok());
    std::vector<std::string> expected = named;
    expected.push_back("serve.toml");
    EXPECT_EQ(CheckError(RunProgram("serve --model " + std::string(kDemo) + " --config " + config),
                         2, expected),
              "")
        << text;
  }
  EXPECT_EQ(
      CheckError(RunProgram("serve --config /none --model " + std::string(kDemo)), 2, {"/none"}),
      "");
}

// What docs/serve.md shows.
TEST(Serve, ReplaysAFile) {
  const TempFolder folder;
  const std::string file = folder / "replay.json";
  ASSERT_TRUE(Write(file, R"({"answers": [
      {"when": "list the files", "say": "<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>"},
      {"when": "<tool_response>", "say": "Two files."}, {"say": "I did not expect that."}]})")
                  .ok());
  ServerProgram server({"--model", kDemo, "--replay", file});
  const std::string tools =
      R"(, "tools": [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]})";
  const std::string user = R"({"role": "user", "content": "Please list the files."})";
  const auto ask = [&](const std::string& messages) {
    const HttpReply reply = Fetch(server.port(), "POST", "/v1/chat/completions",
                                  "{\"messages\": [" + messages + "]" + tools);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["choices"][0]["message"];
  };
  const Json called = ask(user);
  EXPECT_EQ(called["tool_calls"][0]["function"]["arguments"], R"({"command": "ls"})");
  const std::string id = called["tool_calls"][0]["id"].get<std::string>();
  const Json said = ask(user + "," + called.dump() + R"(,{"role": "tool", "tool_call_id": ")" + id +
                        R"(", "content": "a b"})");
  EXPECT_EQ(said["content"], "Two files.");
  EXPECT_EQ(ask(R"({"role": "user", "content": "Hi"})")["content"], "I did not expect that.");
  const std::string model = " --model " + std::string(kDemo);
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --replay /none" + model), 1, {"/none"}), "");
  ASSERT_TRUE(Write(file, "{}").ok());
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --replay " + file + model), 1, {"answers"}), "");
  EXPECT_EQ(RunProgram("serve --help").out.find("--replay"), std::string::npos);
}

}  // namespace
}  // namespace tq::test
