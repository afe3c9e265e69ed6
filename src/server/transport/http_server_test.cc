#include "server/transport/http_server.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/http_client.h"

namespace tq::server {
namespace {

using tq::test::Fetch;
using tq::test::HttpClient;
using tq::test::HttpReply;

HttpResponse Refusal(int status, std::string_view message) {
  return {.status = status, .content_type = "text/plain", .body = std::string(message)};
}

// Answers with what it was asked.
void Echo(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (request.path == "/throw") throw std::bad_alloc();
  if (request.path == "/stream") {
    exchange->StartStream({.content_type = "text/plain"});
    exchange->Write("one ");
    exchange->Write("two");
    return exchange->EndStream();
  }
  exchange->AddHeader("X-Echo", "line\r\nSet-Cookie: no");
  exchange->Respond({.content_type = "text/plain",
                     .body = request.method + " " + request.path + "?" + request.query + " " +
                             std::string(request.Find("X-Test")) + request.body});
}

std::unique_ptr<HttpServer> Start(HttpServerOptions options = {}, HttpHandler handler = Echo) {
  options.port = 0;
  options.refuse = Refusal;
  auto server = HttpServer::Listen(std::move(options), std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status().message();
  return std::move(server).value();
}

TEST(HttpServer, ReadsARequestAndKeepsTheConnection) {
  const auto server = Start();
  HttpClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    client.SendRequest("POST", "/a%20b?x=1&y", "body", {"x-TEST: v "});
    const HttpReply reply = client.Read();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "POST /a%20b?x=1&y vbody");
    EXPECT_EQ(reply.headers.at("connection"), "keep-alive");
    EXPECT_EQ(reply.headers.at("x-echo"), "line  Set-Cookie: no");
    EXPECT_EQ(reply.headers.count("set-cookie"), 0u);
  }
  EXPECT_EQ(server->num_connections(), 1u);
}

TEST(HttpServer, RequestsSentAheadAreAnsweredInOrder) {
  const auto server = Start();
  HttpClient client(server->port());
  client.Send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 "
      "HTTP/1.1\r\nHost: "
      "a\r\n\r\n");
  EXPECT_EQ(client.Read().body, "GET /1? ");
  EXPECT_EQ(client.Read().body, "GET /2? ");
  EXPECT_EQ(client.Read().body, "GET /3? ");
}

TEST(HttpServer, ABodyInChunksAndExpectContinue) {
  const auto server = Start();
  HttpClient client(server->port());
  client.Send(
      "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(client.ReadUntil("100 Continue"));
  client.Send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().body, "POST /c? abcde");
}

TEST(HttpServer, StreamsInChunksOrToTheEndForOldClients) {
  const auto server = Start();
  EXPECT_EQ(Fetch(server->port(), "GET", "/stream").body, "one two");
  HttpClient old(server->port());
  old.Send("GET /stream HTTP/1.0\r\n\r\n");
  const HttpReply reply = old.Read();
  EXPECT_EQ(reply.body, "one two");
  EXPECT_EQ(reply.headers.count("transfer-encoding"), 0u);
}

TEST(HttpServer, HeadHasNoBody) {
  const auto server = Start();
  HttpClient client(server->port());
  client.SendRequest("HEAD", "/h");
  EXPECT_EQ(client.Read(true).headers.at("content-length"), "9");
  client.SendRequest("GET", "/g");
  EXPECT_EQ(client.Read().body, "GET /g? ");
}

TEST(HttpServer, WhatIsNoHttpIsRefusedAndTheServerGoesOn) {
  const auto server = Start({.max_header_bytes = 1000, .max_body_bytes = 100});
  const std::pair<std::string, int> cases[] = {
      {"\x16\x03\x01\x02garbage\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nBad Header\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nX: " + std::string(2000, 'a') + "\r\n\r\n", 431},
      {"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" + std::string(300, 'a'),
       413},
  };
  for (const auto& [bytes, status] : cases) {
    HttpClient client(server->port());
    client.Send(bytes);
    const HttpReply reply = client.Read();
    EXPECT_EQ(reply.status, status) << bytes.substr(0, 60);
    EXPECT_EQ(client.ReadSome(), "") << "it closes the connection";
  }
  EXPECT_EQ(Fetch(server->port(), "GET", "/alive").status, 200);
}

TEST(HttpServer, AHandlerThatThrowsIsA500) {
  const auto server = Start();
  EXPECT_EQ(Fetch(server->port(), "GET", "/throw").status, 500);
  EXPECT_EQ(Fetch(server->port(), "GET", "/").status, 200);
}

TEST(HttpServer, SilentConnectionsAreClosed) {
  const auto server =
      Start({.idle_timeout = std::chrono::seconds(1), .body_timeout = std::chrono::seconds(1)});
  HttpClient idle(server->port());
  HttpClient half(server->port());
  HttpClient body(server->port());
  half.Send("GET / HT");
  body.Send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(idle.ReadSome(), "");
  EXPECT_EQ(half.ReadSome(), "");
  EXPECT_EQ(body.ReadSome(), "");
}

TEST(HttpServer, ConnectionsBeyondTheLimitAreClosed) {
  const auto server = Start({.max_connections = 2});
  HttpClient one(server->port());
  HttpClient two(server->port());
  one.SendRequest("GET", "/");
  two.SendRequest("GET", "/");
  EXPECT_EQ(one.Read().status, 200);
  EXPECT_EQ(two.Read().status, 200);
  HttpClient three(server->port());
  EXPECT_EQ(three.ReadSome(), "");
  one.SendRequest("GET", "/");
  EXPECT_EQ(one.Read().status, 200);
}

TEST(HttpServer, AUnixSocketThatAKilledServerLeftIsReplaced) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tq_http_" + std::to_string(::getpid()))).string();
  {
    const auto server = Start({.unix_path = path});
    HttpClient client(path);
    client.SendRequest("GET", "/u");
    EXPECT_EQ(client.Read().body, "GET /u? ");
    const auto second = HttpServer::Listen({.unix_path = path, .refuse = Refusal}, Echo);
    EXPECT_EQ(second.status().code(), StatusCode::kIo);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpServer, AnAddressInUseIsAnError) {
  const auto server = Start();
  const auto second = HttpServer::Listen({.port = server->port(), .refuse = Refusal}, Echo);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("127.0.0.1:"), std::string::npos);
}

// CN-06
TEST(HttpServer, ManyShortConnectionsLeaveNothingBehind) {
  const auto server = Start();
  for (int i = 0; i < 500; ++i) ASSERT_EQ(Fetch(server->port(), "GET", "/").status, 200);
  for (int i = 0; i < 300 && server->num_connections() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(server->num_connections(), 0u);
  EXPECT_EQ(server->num_exchanges(), 0u);
}

TEST(HttpServer, StopsWhenTheLastAnswerIsWritten) {
  std::shared_ptr<Exchange> open;
  std::mutex mutex;
  const auto server = Start({}, [&](const std::shared_ptr<Exchange>& exchange) {
    const std::lock_guard lock(mutex);
    open = exchange;
  });
  HttpClient idle(server->port());
  HttpClient client(server->port());
  client.SendRequest("GET", "/");
  while (server->num_exchanges() == 0) std::this_thread::yield();
  server->StopAccepting();
  EXPECT_FALSE(server->WaitIdle(std::chrono::milliseconds(50)));
  EXPECT_EQ(idle.ReadSome(), "");
  {
    const std::lock_guard lock(mutex);
    open->Post([exchange = open] { exchange->Respond({.body = "late"}); });
    open.reset();
  }
  const HttpReply reply = client.Read();
  EXPECT_EQ(reply.body, "late");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(server->WaitIdle(std::chrono::milliseconds(5000)));
}

}  // namespace
}  // namespace tq::server
