// ExchangeImpl: an Exchange on a Connection. Private to this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/transport/connection.h"

namespace tq::server {

class ExchangeImpl final : public Exchange, public std::enable_shared_from_this<ExchangeImpl> {
 public:
  // http_1_0: no chunks. keep_alive: what the client wants.
  ExchangeImpl(std::shared_ptr<Connection> connection, HttpRequest request, bool http_1_0,
               bool keep_alive);
  ~ExchangeImpl() override;

  const HttpRequest& request() const override { return request_; }
  void AddHeader(std::string name, std::string value) override;
  void Respond(HttpResponse response) override;
  void StartStream(HttpResponse head) override;
  void Write(std::string bytes) override;
  bool writable() const override;
  void EndStream() override;
  void Abort() override;
  void OnClosed(std::function<void()> callback) override;
  void OnWritable(std::function<void()> callback) override;
  void After(std::chrono::milliseconds delay, std::function<void()> callback) override;
  void Post(std::function<void()> callback) override;

  // Of the connection.
  void PeerGone();
  void Writable();
  void Drop();

 private:
  enum class Phase : uint8_t { kOpen, kStreaming, kDone };
  std::string Head(const HttpResponse& response, std::string_view framing);
  void Finish();

  std::shared_ptr<Connection> connection_;
  HttpRequest request_;
  std::vector<Header> headers_;
  bool http_1_0_;
  bool keep_alive_;
  Phase phase_ = Phase::kOpen;
  asio::steady_timer timer_;
  std::function<void()> on_closed_;
  std::function<void()> on_writable_;
};

// "OK"; "" for a status without a usual name.
std::string_view ReasonPhrase(int status);

}  // namespace tq::server
