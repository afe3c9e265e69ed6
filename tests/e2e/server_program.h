// The program as a server.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"

namespace tq::test {

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
  pid_t pid() const { return pid_; }
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

}  // namespace tq::test
