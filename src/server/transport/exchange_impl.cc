#include "server/transport/exchange_impl.h"

#include <ctime>
#include <initializer_list>
#include <utility>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

namespace tq::server {
namespace {

std::string DateNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(text, size);
}

// Header values come from requests too: nothing of them may begin a new line.
std::string OneLine(std::string value) {
  for (char& c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return value;
}

bool HasNoBody(int status) { return status == 204 || status == 304 || status < 200; }

}  // namespace

std::string_view ReasonPhrase(int status) {
  const auto known = boost::beast::http::int_to_status(static_cast<unsigned>(status));
  const boost::beast::string_view text = boost::beast::http::obsolete_reason(known);
  return {text.data(), text.size()};
}

ExchangeImpl::ExchangeImpl(std::shared_ptr<Connection> connection, HttpRequest request,
                           bool http_1_0, bool keep_alive)
    : connection_(std::move(connection)),
      request_(std::move(request)),
      http_1_0_(http_1_0),
      keep_alive_(keep_alive),
      timer_(connection_->strand_) {
  ++connection_->state_->num_exchanges;
}

ExchangeImpl::~ExchangeImpl() {
  if (phase_ != Phase::kDone) --connection_->state_->num_exchanges;
}

void ExchangeImpl::AddHeader(std::string name, std::string value) {
  headers_.push_back({std::move(name), std::move(value)});
}

std::string ExchangeImpl::Head(const HttpResponse& response, std::string_view framing) {
  if (connection_->state_->stopping) keep_alive_ = false;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status,
                                 ReasonPhrase(response.status), DateNow());
  if (!response.content_type.empty() && !HasNoBody(response.status)) {
    head += fmt::format("Content-Type: {}\r\n", response.content_type);
  }
  for (const std::vector<Header>* headers :
       std::initializer_list<const std::vector<Header>*>{&headers_, &response.headers}) {
    for (const Header& header : *headers) {
      head += fmt::format("{}: {}\r\n", header.name, OneLine(header.value));
    }
  }
  head += framing;
  head += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

void ExchangeImpl::Respond(HttpResponse response) {
  if (phase_ != Phase::kOpen) return;
  std::string framing;
  if (!HasNoBody(response.status)) {
    framing = fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  std::string bytes = Head(response, framing);
  if (request_.method != "HEAD" && !HasNoBody(response.status)) bytes += response.body;
  connection_->Send(std::move(bytes));
  Finish();
}

void ExchangeImpl::StartStream(HttpResponse head) {
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kStreaming;
  if (http_1_0_) keep_alive_ = false;
  connection_->Send(Head(head, http_1_0_ ? "" : "Transfer-Encoding: chunked\r\n"));
}

void ExchangeImpl::Write(std::string bytes) {
  if (phase_ != Phase::kStreaming || bytes.empty()) return;
  if (http_1_0_) {
    connection_->Send(std::move(bytes));
  } else {
    connection_->Send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
  }
}

bool ExchangeImpl::writable() const {
  return connection_->queued_.size() + connection_->in_flight_.size() < kHighWaterBytes;
}

void ExchangeImpl::EndStream() {
  if (phase_ != Phase::kStreaming) return;
  if (!http_1_0_) connection_->Send("0\r\n\r\n");
  Finish();
}

void ExchangeImpl::Abort() {
  if (phase_ == Phase::kDone) return;
  const auto self = shared_from_this();  // the connection lets go of it
  keep_alive_ = false;
  Finish();
}

void ExchangeImpl::Finish() {
  const auto self = shared_from_this();
  Drop();
  connection_->FinishExchange(keep_alive_);
}

void ExchangeImpl::Drop() {
  if (phase_ != Phase::kDone) --connection_->state_->num_exchanges;
  phase_ = Phase::kDone;
  timer_.cancel();
  // Whoever they keep alive may keep this alive.
  const auto closed = std::exchange(on_closed_, nullptr);
  const auto writable = std::exchange(on_writable_, nullptr);
}

void ExchangeImpl::PeerGone() {
  const auto self = shared_from_this();
  const auto callback = std::exchange(on_closed_, nullptr);
  const bool was_open = phase_ != Phase::kDone;
  Drop();
  if (was_open && callback) callback();
}

void ExchangeImpl::Writable() {
  const auto callback = on_writable_;  // a copy: it may end the exchange
  if (callback) callback();
}

void ExchangeImpl::OnClosed(std::function<void()> callback) {
  if (phase_ != Phase::kDone) on_closed_ = std::move(callback);
}

void ExchangeImpl::OnWritable(std::function<void()> callback) {
  if (phase_ != Phase::kDone) on_writable_ = std::move(callback);
}

void ExchangeImpl::After(std::chrono::milliseconds delay, std::function<void()> callback) {
  if (phase_ == Phase::kDone) return;
  timer_.expires_after(delay);
  timer_.async_wait([callback = std::move(callback)](ErrorCode error) {
    if (!error) callback();
  });
}

void ExchangeImpl::Post(std::function<void()> callback) {
  asio::post(connection_->strand_, std::move(callback));
}

}  // namespace tq::server
