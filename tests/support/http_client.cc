#include "support/http_client.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace tq::test {

Json HttpReply::json() const {
  const auto parsed = ParseJson(body, "body");
  return parsed.ok() ? *parsed : Json();
}

HttpClient::HttpClient(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Connect(AF_INET, &address, sizeof(address));
}

HttpClient::HttpClient(const std::string& unix_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, unix_path.c_str(),
              std::min(unix_path.size() + 1, sizeof(address.sun_path)));
  Connect(AF_UNIX, &address, sizeof(address));
}

void HttpClient::Connect(int family, const void* address, size_t size) {
  socket_ = ::socket(family, SOCK_STREAM, 0);
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (::connect(socket_, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) !=
      0) {
    ::close(socket_);
    socket_ = -1;
  }
}

HttpClient::~HttpClient() {
  if (socket_ >= 0) ::close(socket_);
}

void HttpClient::Drop() {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  ::close(socket_);
  socket_ = -1;
}

void HttpClient::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

void HttpClient::SendRequest(const std::string& method, const std::string& path,
                             const std::string& body, const std::vector<std::string>& headers) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: test\r\n";
  for (const std::string& header : headers) text += header + "\r\n";
  if (!body.empty() || method == "POST") {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  Send(text + "\r\n" + body);
}

std::string HttpClient::ReadSome(size_t most) {
  std::string bytes(most, '\0');
  const ssize_t n = socket_ < 0 ? 0 : ::recv(socket_, bytes.data(), most, 0);
  bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return bytes;
}

bool HttpClient::ReadUntil(const std::string& text) {
  while (buffer_.find(text) == std::string::npos) {
    const std::string more = ReadSome();
    if (more.empty()) return false;
    buffer_ += more;
  }
  return true;
}

std::optional<std::string> HttpClient::TakeLine() {
  if (!ReadUntil("\r\n")) return std::nullopt;
  const size_t end = buffer_.find("\r\n");
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::optional<std::string> HttpClient::Take(size_t size) {
  while (buffer_.size() < size) {
    const std::string more = ReadSome();
    if (more.empty()) return std::nullopt;
    buffer_ += more;
  }
  std::string bytes = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return bytes;
}

HttpReply HttpClient::Read(bool head) {
  HttpReply reply;
  const auto status = TakeLine();
  if (!status || status->size() < 12) return reply;
  while (true) {
    const auto line = TakeLine();
    if (!line) return reply;
    if (line->empty()) break;
    const size_t colon = line->find(": ");
    if (colon == std::string::npos) return reply;
    std::string name = line->substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[name] = line->substr(colon + 2);
  }
  reply.status = std::atoi(status->c_str() + 9);
  if (reply.status == 100) return Read(head);
  reply.complete = head || reply.status == 204 || reply.status == 304;
  if (reply.complete) return reply;
  if (const auto length = reply.headers.find("content-length"); length != reply.headers.end()) {
    const auto body = Take(static_cast<size_t>(std::atoll(length->second.c_str())));
    reply.body = body.value_or("");
    reply.complete = body.has_value();
    return reply;
  }
  const auto encoding = reply.headers.find("transfer-encoding");
  if (encoding == reply.headers.end() || encoding->second != "chunked") {
    while (ReadUntil(std::string(1, '\0'))) {
    }
    reply.body.swap(buffer_);
    reply.complete = true;
    return reply;
  }
  while (true) {
    const auto line = TakeLine();
    if (!line) return reply;
    size_t size = 0;
    std::from_chars(line->data(), line->data() + line->size(), size, 16);
    const auto chunk = Take(size + 2);
    if (!chunk) return reply;
    reply.complete = size == 0;
    if (reply.complete) return reply;
    reply.body += chunk->substr(0, size);
  }
}

HttpReply Fetch(int port, const std::string& method, const std::string& path,
                const std::string& body, const std::vector<std::string>& headers) {
  HttpClient client(port);
  client.SendRequest(method, path, body, headers);
  return client.Read(method == "HEAD");
}

std::vector<std::pair<std::string, std::string>> SseEvents(const std::string& body) {
  std::vector<std::pair<std::string, std::string>> events;
  size_t at = 0;
  while (at < body.size()) {
    const size_t end = std::min(body.find("\n\n", at), body.size());
    std::string name;
    std::string data;
    size_t line = at;
    while (line < end) {
      const size_t line_end = std::min(body.find('\n', line), end);
      const std::string text = body.substr(line, line_end - line);
      if (text.starts_with("event: ")) name = text.substr(7);
      if (text.starts_with("data: ")) data += text.substr(6);
      line = line_end + 1;
    }
    events.emplace_back(name, data);
    at = end + 2;
  }
  return events;
}

}  // namespace tq::test
