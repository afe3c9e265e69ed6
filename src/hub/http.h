// HTTP GET through libcurl. One client per thread; a client keeps its connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace tq {

struct HttpRequest {
  std::string url;
  std::string token;        // bearer; never sent to another host that a redirect names
  int64_t range_begin = 0;  // bytes [begin, end) when end > 0
  int64_t range_end = 0;
  // Takes the body as it comes; false: enough. Only called for status 200 and 206.
  std::function<bool(std::span<const std::byte>)> body;
  const std::atomic<bool>* cancel = nullptr;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // of the last answer; names in small letters
};

class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Follows redirects; proxies as the usual environment variables say. Errors: kIo (no connection,
  // cut off, nothing for 30 s), kCancelled. An HTTP status is no error here.
  Result<HttpResponse> Get(const HttpRequest& request);

 private:
  struct CloseHandle {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, CloseHandle> handle_;
};

// A path with everything but letters, digits, "-._~" and "/" as %XX.
std::string EscapePath(const std::string& path);

}  // namespace tq
