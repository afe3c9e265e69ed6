// What the rest of the server sees of HTTP: a request, an answer, and an Exchange that brings one
// to the other. No HTTP library here. Thread: see Exchange.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tq::server {

struct Header {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // as sent, without the query
  std::string query;   // behind the '?', as sent
  std::vector<Header> headers;
  std::string body;

  // Value of the first header of this name, whatever its case; "" when there is none.
  std::string_view Find(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers = {};
  std::string body = {};  // not of a stream
};

// One request and its answer: Respond once, or StartStream, Write ..., EndStream. What is called
// after the end, or when the client is gone, does nothing. Thread: all calls of one exchange and
// all its callbacks come one after the other, on threads of the server; only Post may be called
// from elsewhere.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;
  // Goes with the answer, whatever it will be.
  virtual void AddHeader(std::string name, std::string value) = 0;

  virtual void Respond(HttpResponse response) = 0;
  virtual void StartStream(HttpResponse head) = 0;
  // Queues bytes of a stream. They are always taken; who writes much waits for writable().
  virtual void Write(std::string bytes) = 0;
  // Less than kHighWaterBytes are queued.
  virtual bool writable() const = 0;
  virtual void EndStream() = 0;
  // Closes the connection, so that the client sees that the stream is not complete.
  virtual void Abort() = 0;

  // At most one call: the client went away before the answer was complete.
  virtual void OnClosed(std::function<void()> callback) = 0;
  // Called each time that writable() becomes true again.
  virtual void OnWritable(std::function<void()> callback) = 0;
  // Calls back once, later. A new call replaces the one before.
  virtual void After(std::chrono::milliseconds delay, std::function<void()> callback) = 0;
  virtual void Post(std::function<void()> callback) = 0;  // any thread
};

inline constexpr size_t kHighWaterBytes = size_t{64} << 10;

using HttpHandler = std::function<void(const std::shared_ptr<Exchange>&)>;

}  // namespace tq::server
