// `serve` with several models: who answers, what is in memory, what outlives an unload.
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "e2e/program.h"
#include "e2e/server_program.h"
#include "e2e/small_checkpoint.h"
#include "support/http_client.h"
#include "support/own_memory.h"

namespace tq::test {
namespace {

const std::string kDemo = TQ_SOURCE_DIR "/demo";

std::string Question(const std::string& model, const std::string& text = "What is 3 plus 4?") {
  return Json{{"model", model},
              {"messages", Json::array({Json{{"role", "user"}, {"content", text}}})},
              {"max_tokens", 30},
              {"temperature", 0}}
      .dump();
}

Json Ask(const ServerProgram& server, const std::string& body) {
  const HttpReply reply = Fetch(server.port(), "POST", "/v1/chat/completions", body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json();
}

std::string TextOf(const Json& answer) {
  return answer["choices"][0]["message"]["content"].get<std::string>();
}

// A number of /metrics; -1: it is not there.
double Metric(const ServerProgram& server, const std::string& name) {
  const std::string body = Fetch(server.port(), "GET", "/metrics").body;
  const size_t at = body.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(body.substr(at + name.size() + 2));
}

std::string StateOf(const ServerProgram& server, const std::string& model) {
  const Json found = Fetch(server.port(), "GET", "/v1/models/" + model).json();
  return found["status"]["value"].get<std::string>();
}

class ServeModels : public testing::Test {
 protected:
  void SetUp() override { WriteSmallCheckpoint(small()); }
  std::string small() const { return folder_ / "small"; }

  TempFolder folder_;
};

TEST_F(ServeModels, EachAnswersByItsName) {
  const Json alone = ParseOut(RunProgram("generate --json --quiet --model " + kDemo +
                                         " --max-tokens 30 --prompt 'What is 3 plus 4?'"));
  const ServerProgram server({"--model", kDemo, "--model", "tiny,t=" + small()});
  const Json list = Fetch(server.port(), "GET", "/v1/models").json();
  std::vector<std::string> ids;
  for (const Json& model : list["data"]) ids.push_back(model["id"].get<std::string>());
  EXPECT_EQ(ids, (std::vector<std::string>{"demo", "tiny", "t"}));
  EXPECT_EQ(StateOf(server, "demo"), "loaded");
  EXPECT_EQ(StateOf(server, "tiny"), "unloaded");
  EXPECT_EQ(TextOf(Ask(server, Question("demo"))), alone["text"]);
  const HttpReply tiny = Fetch(server.port(), "POST", "/v1/completions",
                               R"({"model": "t", "prompt": "Once", "max_tokens": 5})");
  ASSERT_EQ(tiny.status, 200) << tiny.body;
  EXPECT_EQ(tiny.json()["usage"]["completion_tokens"], 5);
  EXPECT_EQ(StateOf(server, "tiny"), "loaded");
  EXPECT_EQ(Fetch(server.port(), "POST", "/v1/chat/completions", Question("other")).status, 404);
}

// What is said of a model before its load is what its engine has.
TEST_F(ServeModels, TheHeadersTellWhatTheEngineWillHave) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{},
        {"--memory-gb", "0.2", "--kv-bits", "4"},
        {"--context-length", "500", "--kv-tokens", "3000", "--max-batch", "3"}}) {
    std::vector<std::string> args = {"--model", kDemo, "--load-on-demand"};
    args.insert(args.end(), flags.begin(), flags.end());
    const ServerProgram server(args);
    const Json props = Fetch(server.port(), "GET", "/props").json();
    EXPECT_EQ(props["state"], "unloaded");
    EXPECT_EQ(Metric(server, "turboquant_kv_pages"), -1);
    Ask(server, Question("demo"));
    EXPECT_EQ(Metric(server, "turboquant_kv_pages"), (props["kv_tokens"].get<int64_t>() + 63) / 64);
    const Json loaded = Fetch(server.port(), "GET", "/props").json();
    EXPECT_EQ(loaded["state"], "loaded");
    EXPECT_EQ(loaded["context_length"], props["context_length"]);
    if (!flags.empty() && flags[0] == "--memory-gb") {
      EXPECT_LE(props["memory_bytes"], 200'000'000);
    }
  }
}

TEST_F(ServeModels, AnUnloadGivesTheMemoryBack) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "a sanitizer gives no memory back";
  const ServerProgram server({"--model", kDemo, "--model", "b=" + kDemo, "--load-on-demand",
                              "--max-loaded-models", "1", "--idle-unload", "1"});
  const std::string bytes = "process_resident_memory_bytes";
  Ask(server, Question("demo"));
  const double one = Metric(server, bytes);
  for (int i = 0; i < 600 && StateOf(server, "demo") != "unloaded"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const double before = Metric(server, bytes);
  EXPECT_LT(before, one - 15e6) << "the weights alone are as much";
  // However often they take turns.
  for (int i = 0; i < 4; ++i) {
    Ask(server, Question("b"));
    Ask(server, Question("demo"));
  }
  EXPECT_LT(Metric(server, bytes), one + 0.3 * (one - before));
  EXPECT_EQ(Metric(server, "turboquant_model_unloads_total{model=\"b\"}"), 4);
}

TEST_F(ServeModels, TheDiskCacheOutlivesAnUnload) {
  const ServerProgram server({"--model", kDemo, "--model", "tiny=" + small(), "--max-loaded-models",
                              "1", "--disk-cache", folder_ / "cache", "--disk-cache-min-tokens",
                              "64"});
  std::string words;
  for (int i = 0; i < 40; ++i) words += fmt::format("box {} is here. ", i);
  const std::string question = Question("demo", words + "What is 3 plus 4?");
  const auto cached = [](const Json& answer) {
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
  };
  const Json first = Ask(server, question);
  EXPECT_EQ(cached(first), 0);
  EXPECT_EQ(Fetch(server.port(), "POST", "/v1/completions",
                  R"({"model": "tiny", "prompt": "Once", "max_tokens": 5})")
                .status,
            200);
  EXPECT_EQ(StateOf(server, "demo"), "unloaded");
  const Json again = Ask(server, question);
  EXPECT_GE(cached(again), 64);
  EXPECT_EQ(again["choices"], first["choices"]);
}

TEST_F(ServeModels, TheLogHasLoadsAndUnloads) {
  const std::string file = folder_ / "log";
  {
    ServerProgram server({"--model", kDemo, "--model", "tiny=" + small(), "--max-loaded-models",
                          "1", "--log-file", file});
    Fetch(server.port(), "POST", "/v1/completions",
          R"({"model": "tiny", "prompt": "Once", "max_tokens": 1})");
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
  const auto log = ReadTextFile(file);
  ASSERT_TRUE(log.ok());
  size_t at = 0;
  for (const char* event : {"load model=demo", "loaded model=demo", "unloaded model=demo for=room",
                            "load model=tiny", "loaded model=tiny", "answer id="}) {
    at = log->find(event, at);
    ASSERT_NE(at, std::string::npos) << event << "\n" << *log;
  }
}

TEST_F(ServeModels, WhatIsWrongIsSaidBeforeItListens) {
  const std::string demo = "serve --quiet --model " + kDemo;
  EXPECT_EQ(CheckError(RunProgram(demo + " --model /none"), 1, {"none", "/none"}), "");
  ASSERT_TRUE(WriteFile(small() + "/config.json", "{").ok());
  EXPECT_EQ(CheckError(RunProgram(demo + " --model tiny=" + small()), 1, {"tiny", "config.json"}),
            "");
  EXPECT_EQ(CheckError(RunProgram(demo + " --model " + kDemo), 1, {"\"demo\"", "NAME=PATH"}), "");
  EXPECT_EQ(CheckError(RunProgram(demo + " --model b=" + kDemo + " --memory-gb 0.01"), 1,
                       {"demo", "0.010 GB", "GB of"}),
            "");
  EXPECT_EQ(CheckError(RunProgram(demo + " --model b=" + kDemo + " --served-model-name x"), 1,
                       {"--served-model-name", "NAME=PATH"}),
            "");
  EXPECT_EQ(CheckError(RunProgram(demo + " --model =" + kDemo), 2, {"--model", "NAME=PATH"}), "");
  EXPECT_EQ(CheckError(RunProgram(demo + " --model 'a,,b=" + kDemo + "'"), 2, {"NAME=PATH"}), "");
}

TEST_F(ServeModels, AFileOfFlagsHasAList) {
  const std::string config = folder_ / "serve.toml";
  ASSERT_TRUE(WriteFile(config, fmt::format("model = [\"one=missing/model\", \"two={}\"]\n"
                                            "load-on-demand = true\nmax-loaded-models = 1\n",
                                            kDemo))
                  .ok());
  EXPECT_EQ(CheckError(RunProgram("serve --config " + config), 2, {"model", "missing/model"}), "");
  ASSERT_TRUE(WriteFile(config, fmt::format("model = [\"one={0}\", \"two={0}\"]\n"
                                            "load-on-demand = true\nmax-loaded-models = 1\n",
                                            kDemo))
                  .ok());
  const ServerProgram server({"--config", config});
  EXPECT_EQ(Ask(server, Question("two"))["model"], "two");
  EXPECT_EQ(StateOf(server, "one"), "unloaded");
}

}  // namespace
}  // namespace tq::test
