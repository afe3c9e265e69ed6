// Many connections at once, idle and busy ones, and bytes that are no request.
#include <fstream>
#include <random>
#include <thread>

#include <sys/resource.h>

#include "server/server_for_test.h"
#include "support/own_memory.h"

namespace tq::server {
namespace {

using tq::test::HttpClient;
using tq::test::HttpReply;

// Bytes of this process that are in memory or swapped out.
int64_t ResidentBytes() {
  std::ifstream status("/proc/self/status");
  int64_t kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:") || line.starts_with("VmSwap:")) {
      kilobytes += std::stoll(line.substr(line.find(':') + 1));
    }
  }
  return kilobytes * 1024;
}

TEST(Load, AThousandIdleConnectionsAreCheap) {
  constexpr int kConnections = 1000;
  constexpr rlim_t kFiles = 2 * kConnections + 200;  // both ends are in this process
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < kFiles) {
    files.rlim_cur = std::min(files.rlim_max, kFiles);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  }
  if (files.rlim_cur < kFiles) GTEST_SKIP() << "too few open files are allowed";
  TestServer server({});
  EXPECT_EQ(server.Get("/health").status, 200);
  const int64_t before = ResidentBytes();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    ASSERT_TRUE(clients.back()->connected()) << i;
    // Each has been used, so that whatever a request leaves behind is there.
    clients.back()->SendRequest("GET", "/health");
    ASSERT_EQ(clients.back()->Read().status, 200) << i;
  }
  EXPECT_GE(server.http().num_connections(), size_t{kConnections});
  const int64_t grown = ResidentBytes() - before;
  if (tq::test::kMemoryIsOurs) {
    EXPECT_LT(grown, 100 << 20);
  }
  RecordProperty("bytes_per_connection", std::to_string(grown / kConnections));
  // The server still answers, on old connections and on new ones.
  clients.front()->SendRequest("GET", "/health");
  EXPECT_EQ(clients.front()->Read().status, 200);
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi).status, 200);
}

// CN-07: answers leave nothing behind but what is kept on purpose.
TEST(Load, CN07_ManyAnswersLeaveNoMemoryBehind) {
  TestServer server(
      {.script = std::string(50, 'x'), .service = {.max_responses = 4, .max_turns = 4}});
  const auto ask = [&](int i) {
    HttpClient client(server.port());
    const std::string text = std::to_string(i) + std::string(500, 'p');
    client.SendRequest("POST", "/v1/chat/completions",
                       R"({"messages": [{"role": "user", "content": ")" + text + R"("}]})");
    return client.Read().status;
  };
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ask(i), 200);
  const int64_t before = ResidentBytes();
  for (int i = 100; i < 500; ++i) ASSERT_EQ(ask(i), 200);
  if (tq::test::kMemoryIsOurs) {
    EXPECT_LT(ResidentBytes() - before, 8 << 20);
  }
}

// 64 streams; one in four reads slowly, one in four is dropped in the middle.
TEST(Load, SlowReadersAndDroppedOnesHurtNobodyElse) {
  const std::string script(400, 'x');
  TestServer server({.script = script, .engine = {.kv_tokens = 1 << 16, .max_sequences = 64}});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->SendRequest("POST", "/v1/chat/completions", HiWith(R"("stream": true)"));
  }
  for (size_t i = 0; i < clients.size(); i += 4) {
    ASSERT_TRUE(clients[i]->ReadUntil("\"content\":\"x"));
    clients[i]->Drop();
  }
  for (size_t i = 1; i < clients.size(); i += 4) {
    for (int reads = 0; reads < 5; ++reads) {
      EXPECT_FALSE(clients[i]->ReadSome(16).empty());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    if (i % 4 == 0) continue;
    const HttpReply reply = clients[i]->Read();
    // ReadSome took the head of the slow ones.
    if (i % 4 != 1) {
      EXPECT_EQ(reply.status, 200);
      EXPECT_TRUE(reply.complete);
      EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
    }
  }
  for (int i = 0; i < 500 && server.engine().stats().running > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(server.engine().stats().running, 0);
}

TEST(Load, BodiesUpToTheLimitAndBeyond) {
  constexpr size_t kLimit = size_t{1} << 20;
  TestServer server({.http = {.max_body_bytes = kLimit}});
  const std::string start = R"({"messages": [{"role": "user", "content": "Hi"}], "user": ")";
  const std::string fits = start + std::string(kLimit - start.size() - 2, 'u') + "\"}";
  ASSERT_EQ(fits.size(), kLimit);
  EXPECT_EQ(server.Post("/v1/chat/completions", fits).status, 200);
  const HttpReply reply = server.Post("/v1/chat/completions", fits + " ");
  EXPECT_EQ(reply.status, 413);
  EXPECT_TRUE(reply.json()["error"].is_object());
  // A length that lies costs nothing.
  const int64_t before = ResidentBytes();
  HttpClient liar(server.port());
  liar.Send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{");
  HttpClient giant(server.port());
  giant.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n");
  EXPECT_GE(giant.Read().status, 400);
  if (tq::test::kMemoryIsOurs) {
    EXPECT_LT(ResidentBytes() - before, 8 << 20);
  }
  // Chunks that add up to too much.
  HttpClient chunked(server.port());
  chunked.Send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'c') + "\r\n";
  for (int i = 0; i < 17; ++i) chunked.Send(chunk);
  EXPECT_EQ(chunked.Read().status, 413);
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi).status, 200);
}

// A good request with bytes changed, cut out and doubled: an answer or a closed connection, never
// the end of the server.
TEST(Load, MalformedRequestsOfAllKinds) {
  TestServer server({});
  const std::string good =
      "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Connection: close\r\nContent-Length: " +
      std::to_string(std::string(kHi).size()) + "\r\n\r\n" + kHi;
  std::mt19937 random(7);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random()) % limit; };
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    for (size_t changes = 1 + below(4); changes > 0; --changes) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(below(256));
          break;
        case 1:
          bytes.erase(at, 1 + below(20));
          break;
        case 2:
          bytes.insert(at, bytes.substr(below(bytes.size()), 20));
          break;
        default:
          bytes.insert(at, 1, "\r\n\0 :"[below(5)]);
      }
      if (bytes.empty()) bytes = "x";
    }
    HttpClient client(server.port());
    client.Send(bytes);
    if (i % 2 == 0) client.Drop();
  }
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi).status, 200);
}

}  // namespace
}  // namespace tq::server
