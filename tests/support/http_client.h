// A plain blocking HTTP client, for tests of the server: what it sends can be anything.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace tq::test {

struct HttpReply {
  int status = 0;                              // 0: the connection ended before a whole answer
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;
  bool complete = false;
  Json json() const;  // null when the body is none
};

class HttpClient {
 public:
  explicit HttpClient(int port);
  explicit HttpClient(const std::string& unix_path);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return socket_ >= 0; }
  void Send(const std::string& bytes);
  void SendRequest(const std::string& method, const std::string& path, const std::string& body = "",
                   const std::vector<std::string>& headers = {});
  // The next whole answer. head: no body follows.
  HttpReply Read(bool head = false);
  // Bytes as they come, "" at the end.
  std::string ReadSome(size_t most = 4096);
  // Reads until `text` has come; false at the end of the connection.
  bool ReadUntil(const std::string& text);
  const std::string& seen() const { return buffer_; }
  // With a reset, as when a program is killed.
  void Drop();

 private:
  void Connect(int family, const void* address, size_t size);
  // A line, or so many bytes, off the front; nullopt at the end.
  std::optional<std::string> TakeLine();
  std::optional<std::string> Take(size_t size);

  int socket_ = -1;
  std::string buffer_;
};

// One request on a connection of its own.
HttpReply Fetch(int port, const std::string& method, const std::string& path,
                const std::string& body = "", const std::vector<std::string>& headers = {});

// The events of a stream: (name or "", data).
std::vector<std::pair<std::string, std::string>> SseEvents(const std::string& body);

}  // namespace tq::test
