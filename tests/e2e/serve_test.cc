// The program as a server, with the demo model.
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "e2e/program.h"
#include "support/http_client.h"

namespace tq::test {
namespace {

constexpr const char* kDemo = TQ_SOURCE_DIR "/demo";

// `turboquant serve --port 0 --json` as a child.
class ServerProgram {
 public:
  explicit ServerProgram(std::vector<std::string> args) {
    args.insert(args.begin(), {TQ_PROGRAM, "serve", "--port", "0", "--json", "--quiet"});
    int out[2];
    EXPECT_EQ(::pipe(out), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]);
      std::vector<char*> argv;
      for (std::string& arg : args) argv.push_back(arg.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    char byte = 0;
    while (::read(out[0], &byte, 1) == 1 && byte != '\n') line_ += byte;
    ::close(out[0]);
    const auto json = ParseJson(line_, "stdout");
    EXPECT_TRUE(json.ok()) << line_;
    if (json.ok()) port_ = (*json)["port"].get<int>();
  }
  ~ServerProgram() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  int port() const { return port_; }
  void Signal(int signal) const { ::kill(pid_, signal); }
  // The exit code; 128 + signal when one ended it.
  int Wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int port_ = 0;
  std::string line_;
};

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

// AP-11
TEST(Serve, BadFlagsAreOneLine) {
  const std::string model = " --model " + std::string(kDemo);
  EXPECT_EQ(CheckError(RunProgram("serve --port 99999" + model), 2, {"--port"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --max-batch 4O96" + model), 2, {"--max-batch"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --max-btch 4" + model), 2, {"--max-btch"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --api-key-file /none" + model), 1, {"/none"}), "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --unix-socket /dev/null/socket" + model), 1,
                       {"/dev/null/socket"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("serve --quiet --log-file /dev/null/log" + model), 1,
                       {"/dev/null/log"}),
            "");
}

}  // namespace
}  // namespace tq::test
