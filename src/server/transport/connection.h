// Connection: one client's socket: reads requests one after the other, writes their answers, sees
// when the client goes. Private to this folder. Thread: its strand, but for what says otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/transport/asio.h"
#include "server/transport/http_server.h"

namespace tq::server {

// What the connections of one server share.
struct ServerState {
  HttpServerOptions options;
  HttpHandler handler;
  std::atomic<size_t> num_connections{0};
  std::atomic<size_t> num_exchanges{0};
  std::atomic<bool> stopping{false};
};

class ExchangeImpl;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, Strand strand, std::shared_ptr<ServerState> state);
  ~Connection();

  // Any thread.
  void Start();
  void CloseIfIdle();
  // Requires: no thread runs the server any more. Lets go of what waits for this connection.
  void Drop();

 private:
  friend class ExchangeImpl;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void ReadRequest();
  void OnHeader(ErrorCode error);
  void ReadBody();
  void Dispatch();
  // The client sent what is no request: one answer, then the end.
  void Refuse(int status, std::string_view message);
  // Reads ahead while an exchange is at work: the end of the stream means that the client left.
  void Watch();
  void OnPeerGone();

  void Send(std::string bytes);
  void WriteQueued();
  void OnWritten(ErrorCode error, size_t num_bytes);
  // The answer is complete; keep: the connection may serve another request.
  void FinishExchange(bool keep);
  // Closes once all is written, and after a client that still sends had time to read the answer.
  void CloseGently();
  void Linger();
  void Close();
  void ArmDeadline(std::chrono::milliseconds time);

  Socket socket_;
  Strand strand_;
  std::shared_ptr<ServerState> state_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::shared_ptr<ExchangeImpl> exchange_;
  asio::steady_timer deadline_;        // of reading
  asio::steady_timer write_deadline_;  // of one write
  std::string queued_;                 // not yet given to the socket
  std::string in_flight_;
  bool writing_ = false;
  bool watching_ = false;
  bool closing_ = false;  // once all is written
  bool closed_ = false;
  size_t lingered_bytes_ = 0;
};

}  // namespace tq::server
