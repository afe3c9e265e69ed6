// A process of hub_server.py.
#pragma once

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tq::test {

class HubServer {
 public:
  explicit HubServer(const std::string& folder) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::execlp("python3", "python3", TQ_SOURCE_DIR "/tests/e2e/hub_server.py", folder.c_str(),
               static_cast<char*>(nullptr));
      ::_exit(1);
    }
    ::close(ends[1]);
    std::FILE* out = ::fdopen(ends[0], "r");
    EXPECT_EQ(std::fscanf(out, "%d", &port_), 1);
    std::fclose(out);
  }
  ~HubServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string endpoint(const std::string& fault) const {
    return fmt::format("http://127.0.0.1:{}/{}", port_, fault);
  }

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace tq::test
