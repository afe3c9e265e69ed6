#include "server/transport/connection.h"

#include <exception>
#include <utility>

#include <boost/beast/http/read.hpp>

#include "server/transport/exchange_impl.h"

namespace tq::server {
namespace {

namespace http = boost::beast::http;

constexpr size_t kReadBytes = 4096;
constexpr size_t kMaxLingerBytes = size_t{1} << 20;
constexpr std::chrono::seconds kLingerTime{2};

std::string ToText(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Connection::Connection(Socket socket, Strand strand, std::shared_ptr<ServerState> state)
    : socket_(std::move(socket)),
      strand_(std::move(strand)),
      state_(std::move(state)),
      deadline_(strand_),
      write_deadline_(strand_) {
  ++state_->num_connections;
}

Connection::~Connection() { --state_->num_connections; }

void Connection::Start() {
  asio::post(strand_, [self = shared_from_this()] { self->ReadRequest(); });
}

void Connection::CloseIfIdle() {
  asio::post(strand_, [self = shared_from_this()] {
    if (self->exchange_ == nullptr) self->CloseGently();
  });
}

void Connection::Drop() {
  if (exchange_ != nullptr) exchange_->Drop();
  exchange_ = nullptr;
}

void Connection::ArmDeadline(std::chrono::milliseconds time) {
  deadline_.expires_after(time);
  deadline_.async_wait([self = shared_from_this()](ErrorCode error) {
    // It may have been set anew while this was on its way.
    const bool over = self->deadline_.expiry() <= asio::steady_timer::clock_type::now();
    if (!error && over) self->Close();
  });
}

void Connection::ReadRequest() {
  if (closing_ || closed_) return;
  if (state_->stopping) return CloseGently();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(state_->options.max_header_bytes));
  parser_->body_limit(state_->options.max_body_bytes);
  ArmDeadline(state_->options.idle_timeout);
  http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](ErrorCode error, size_t) { self->OnHeader(error); });
}

void Connection::OnHeader(ErrorCode error) {
  if (closed_) return;
  if (error == http::error::header_limit) return Refuse(431, "the header is too large");
  if (error == http::error::body_limit) return Refuse(413, "the body is too large");
  const bool is_http_error =
      error.category() == http::make_error_code(http::error::end_of_stream).category();
  if (is_http_error && error != http::error::end_of_stream &&
      error != http::error::partial_message) {
    return Refuse(400, "the request is no HTTP");
  }
  if (error) return Close();
  if (parser_->get()[http::field::expect] == "100-continue") Send("HTTP/1.1 100 Continue\r\n\r\n");
  ReadBody();
}

void Connection::ReadBody() {
  if (parser_->is_done()) return Dispatch();
  ArmDeadline(state_->options.body_timeout);
  parser_->eager(true);
  http::async_read_some(
      socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
        if (self->closed_) return;
        if (error == http::error::body_limit) {
          return self->Refuse(413, "the body is too large");
        }
        if (error == http::error::bad_chunk || error == http::error::bad_chunk_extension) {
          return self->Refuse(400, "the body has a broken chunk");
        }
        if (error) return self->Close();
        self->ReadBody();
      });
}

void Connection::Dispatch() {
  deadline_.cancel();
  auto& message = parser_->get();
  HttpRequest request;
  request.method = ToText(message.method_string());
  const std::string target = ToText(message.target());
  const size_t query = target.find('?');
  request.path = target.substr(0, query);
  if (query != std::string::npos) request.query = target.substr(query + 1);
  for (const auto& field : message) {
    request.headers.push_back({ToText(field.name_string()), ToText(field.value())});
  }
  request.body = std::move(message.body());
  exchange_ = std::make_shared<ExchangeImpl>(shared_from_this(), std::move(request),
                                             message.version() < 11, message.keep_alive());
  parser_.reset();
  Watch();
  const std::shared_ptr<ExchangeImpl> exchange = exchange_;
  // What the standard library throws when memory ends, or a third party by surprise.
  try {
    state_->handler(exchange);
  } catch (const std::exception& e) {
    exchange->Respond(state_->options.refuse(500, e.what()));
  }
}

void Connection::Refuse(int status, std::string_view message) {
  HttpRequest request;
  request.method = "POST";
  exchange_ = std::make_shared<ExchangeImpl>(shared_from_this(), std::move(request), false, false);
  const std::shared_ptr<ExchangeImpl> exchange = exchange_;
  exchange->Respond(state_->options.refuse(status, message));
}

void Connection::Watch() {
  // Of a client that sends its next request early it is not seen before a write fails.
  if (watching_ || closed_ || buffer_.size() > 0) return;
  watching_ = true;
  socket_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](ErrorCode error, size_t num_bytes) {
                            self->watching_ = false;
                            if (self->closed_) return;
                            self->buffer_.commit(num_bytes);
                            if (self->closing_) return self->Linger();
                            if (error) return self->OnPeerGone();
                            if (self->exchange_ == nullptr) self->ReadRequest();
                          });
}

void Connection::OnPeerGone() {
  if (exchange_ != nullptr) return Close();
  CloseGently();  // the rest of the answer may still be on its way
}

void Connection::Send(std::string bytes) {
  if (closed_) return;
  queued_ += bytes;
  if (!writing_) WriteQueued();
}

void Connection::WriteQueued() {
  writing_ = true;
  in_flight_.clear();
  in_flight_.swap(queued_);
  write_deadline_.expires_after(state_->options.write_timeout);
  write_deadline_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error) self->Close();
  });
  asio::async_write(socket_, asio::buffer(in_flight_),
                    [self = shared_from_this()](ErrorCode error, size_t num_bytes) {
                      self->OnWritten(error, num_bytes);
                    });
}

void Connection::OnWritten(ErrorCode error, size_t num_bytes) {
  write_deadline_.cancel();
  writing_ = false;
  if (closed_) return;
  if (error) return Close();
  const bool was_full = num_bytes + queued_.size() >= kHighWaterBytes;
  in_flight_.clear();
  if (!queued_.empty()) {
    WriteQueued();
  } else if (closing_) {
    CloseGently();
    return;
  }
  const bool has_room = queued_.size() + in_flight_.size() < kHighWaterBytes;
  if (was_full && has_room && exchange_ != nullptr) exchange_->Writable();
}

void Connection::FinishExchange(bool keep) {
  exchange_ = nullptr;
  if (closed_) return;
  if (!keep || state_->stopping) return CloseGently();
  if (watching_) {
    ArmDeadline(state_->options.idle_timeout);  // the watch reads on
  } else {
    asio::post(strand_, [self = shared_from_this()] { self->ReadRequest(); });
  }
}

void Connection::CloseGently() {
  if (closed_) return;
  closing_ = true;
  if (writing_) return;  // OnWritten comes back here
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  ArmDeadline(kLingerTime);
  if (!watching_) Linger();
}

void Connection::Linger() {
  if (closed_ || writing_) return;
  lingered_bytes_ += buffer_.size();
  buffer_.consume(buffer_.size());
  if (lingered_bytes_ > kMaxLingerBytes) return Close();
  socket_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](ErrorCode error, size_t num_bytes) {
                            if (error) return self->Close();
                            self->buffer_.commit(num_bytes);
                            self->Linger();
                          });
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  deadline_.cancel();
  write_deadline_.cancel();
  ErrorCode ignored;
  socket_.close(ignored);
  const std::shared_ptr<ExchangeImpl> exchange = std::move(exchange_);
  exchange_ = nullptr;
  if (exchange != nullptr) exchange->PeerGone();
}

}  // namespace tq::server
