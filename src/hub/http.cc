#include "hub/http.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <curl/curl.h>
#include <fmt/format.h>

namespace tq {
namespace {

// Once per process, before any thread uses the library.
bool InitCurl() {
  static const bool kReady = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return kReady;
}

struct Transfer {
  CURL* handle;
  const HttpRequest* request;
  HttpResponse response;
  bool stopped = false;  // by the body's taker
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {  // another answer begins: behind a redirect
    transfer.response.headers.clear();
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())) != 0) {
    value.remove_prefix(1);
  }
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0) {
    value.remove_suffix(1);
  }
  transfer.response.headers[name] = std::string(value);
  return size * count;
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  if ((status != 200 && status != 206) || !transfer.request->body) return size * count;
  if (transfer.request->body(std::as_bytes(std::span<const char>(data, size * count)))) {
    return size * count;
  }
  transfer.stopped = true;
  return 0;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* cancel = static_cast<Transfer*>(user)->request->cancel;
  return cancel != nullptr && cancel->load() ? 1 : 0;
}

}  // namespace

void HttpClient::CloseHandle::operator()(void* handle) const { curl_easy_cleanup(handle); }

HttpClient::HttpClient() : handle_(InitCurl() ? curl_easy_init() : nullptr) {}
HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::Get(const HttpRequest& request) {
  CURL* handle = handle_.get();
  if (handle == nullptr) return IoError("the HTTP library could not be started");
  Transfer transfer{handle, &request, {}};
  char error[CURL_ERROR_SIZE] = "";
  curl_easy_reset(handle);  // keeps the connection
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 8L);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, 15L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, 30L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "turboquant");
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  if (!request.token.empty()) {
    curl_easy_setopt(handle, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    curl_easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  if (request.range_end > 0) {
    const std::string range = fmt::format("{}-{}", request.range_begin, request.range_end - 1);
    curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());  // copied
  }
  const CURLcode code = curl_easy_perform(handle);
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  transfer.response.status = static_cast<int>(status);
  if (code == CURLE_OK || transfer.stopped) return transfer.response;
  if (code == CURLE_ABORTED_BY_CALLBACK) return Cancelled("the download was stopped");
  return IoError(
      fmt::format("{}: {}", request.url, error[0] != '\0' ? error : curl_easy_strerror(code)));
}

std::string EscapePath(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos;
    out += is_plain && byte < 128 ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace tq
