// HttpServer: listens, reads requests, hands each to a handler. HTTP/1.1 with keep-alive over TCP
// or a unix socket; a few threads, none of them per connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/transport/http.h"

namespace tq::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;             // 0: any that is free
  std::string unix_path = {};  // not empty: a socket in the file system instead
  int threads = 4;
  size_t max_header_bytes = size_t{64} << 10;
  size_t max_body_bytes = size_t{64} << 20;
  size_t max_connections = 4096;
  std::chrono::seconds idle_timeout{75};    // between requests, and for a whole header
  std::chrono::seconds body_timeout{60};    // without a byte of a body
  std::chrono::seconds write_timeout{300};  // a client that reads nothing is dropped after it
  // The answer to what is no request that a handler could see.
  std::function<HttpResponse(int status, std::string_view message)> refuse = {};
};

class HttpServer {
 public:
  // Errors: kIo naming the address (in use, not permitted), kInvalidArgument (no address).
  static Result<std::unique_ptr<HttpServer>> Listen(HttpServerOptions options, HttpHandler handler);
  // Drops what is still open.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:8080" or "unix:/path".
  const std::string& address() const;
  int port() const;  // 0 of a unix socket
  // Connections that are open, and exchanges that are not answered to the end.
  size_t num_connections() const;
  size_t num_exchanges() const;

  // No new connections; idle ones are closed, others once their exchange is done.
  void StopAccepting();
  // Waits for all exchanges. False: some were left when the time was over.
  bool WaitIdle(std::chrono::milliseconds timeout);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq::server
