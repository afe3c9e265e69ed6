#include "server/transport/http_server.h"

#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/transport/asio.h"
#include "server/transport/connection.h"

namespace tq::server {
namespace {

using Tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using TcpAcceptor = asio::basic_socket_acceptor<Tcp, Strand>;
using LocalAcceptor = asio::basic_socket_acceptor<Unix, Strand>;

constexpr std::chrono::milliseconds kAcceptRetry{100};

Status ListenError(const std::string& address, const ErrorCode& error) {
  return IoError(
      fmt::format("cannot listen on {}: {}; choose another --host, --port or --unix-socket",
                  address, error.message()));
}

// A socket that nobody listens on any more is left by a program that was killed.
Status RemoveStaleSocket(asio::io_context& context, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return Status::Ok();
  if (!S_ISSOCK(info.st_mode)) {
    return InvalidArgument(
        fmt::format("{}: expected no file or a socket, found another file", path));
  }
  Unix::socket probe(context);
  ErrorCode error;
  probe.connect(Unix::endpoint(path), error);
  if (!error) {
    return IoError(fmt::format("{}: another program listens there; choose another path", path));
  }
  ::unlink(path.c_str());
  return Status::Ok();
}

}  // namespace

struct HttpServer::Impl {
  std::shared_ptr<ServerState> state = std::make_shared<ServerState>();
  asio::io_context context;
  Strand control = asio::make_strand(context);  // of the next two
  std::variant<std::monostate, TcpAcceptor, LocalAcceptor> acceptor;
  asio::steady_timer retry{control};
  std::string address;
  int port = 0;
  std::mutex mutex;  // guards connections
  std::vector<std::weak_ptr<Connection>> connections;
  std::vector<std::thread> threads;

  Status ListenTcp();
  Status ListenUnix();
  template <typename Acceptor>
  void Accept(Acceptor& from);
  void Serve(Socket socket, Strand strand);
  void Remember(const std::shared_ptr<Connection>& connection);
  std::vector<std::shared_ptr<Connection>> OpenConnections();
};

Status HttpServer::Impl::ListenTcp() {
  const HttpServerOptions& options = state->options;
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  ErrorCode error;
  Tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), Tcp::resolver::passive, error);
  if (error || found.empty()) return ListenError(where, error);
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  TcpAcceptor listener(control);
  listener.open(endpoint.protocol(), error);
  if (!error) listener.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) listener.bind(endpoint, error);
  if (!error) listener.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(where, error);
  port = listener.local_endpoint(error).port();
  const std::string host = endpoint.address().to_string();
  address = endpoint.address().is_v6() ? fmt::format("http://[{}]:{}", host, port)
                                       : fmt::format("http://{}:{}", host, port);
  acceptor = std::move(listener);
  return Status::Ok();
}

Status HttpServer::Impl::ListenUnix() {
  const std::string& path = state->options.unix_path;
  constexpr size_t kMaxPath = 107;  // of sockaddr_un
  if (path.size() > kMaxPath) {
    return InvalidArgument(fmt::format("{}: expected a path of at most {} bytes, found {}", path,
                                       kMaxPath, path.size()));
  }
  TQ_RETURN_IF_ERROR(RemoveStaleSocket(context, path));
  ErrorCode error;
  LocalAcceptor listener(control);
  listener.open(Unix(), error);
  if (!error) listener.bind(Unix::endpoint(path), error);
  if (!error) listener.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(path, error);
  address = "unix:" + path;
  acceptor = std::move(listener);
  return Status::Ok();
}

template <typename Acceptor>
void HttpServer::Impl::Accept(Acceptor& from) {
  Strand strand = asio::make_strand(context);
  from.async_accept(strand, [this, &from, strand](ErrorCode error, auto socket) {
    if (error == asio::error::operation_aborted || !from.is_open()) return;
    if (error) {  // out of files: some will be closed
      retry.expires_after(kAcceptRetry);
      retry.async_wait([this, &from](ErrorCode cancelled) {
        if (!cancelled && from.is_open()) Accept(from);
      });
      return;
    }
    ErrorCode ignored;
    if constexpr (std::is_same_v<Acceptor, TcpAcceptor>) {
      socket.set_option(Tcp::no_delay(true), ignored);
      socket.set_option(asio::socket_base::keep_alive(true), ignored);
    }
    Serve(Socket(std::move(socket)), strand);
    Accept(from);
  });
}

void HttpServer::Impl::Serve(Socket socket, Strand strand) {
  if (state->num_connections >= state->options.max_connections) return;  // closes it
  const auto connection = std::make_shared<Connection>(std::move(socket), std::move(strand), state);
  Remember(connection);
  connection->Start();
}

void HttpServer::Impl::Remember(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex);
  // Forgets those that are gone, in time that each new one pays for.
  if (connections.size() >= 16 && connections.size() >= 2 * state->num_connections) {
    std::erase_if(connections, [](const auto& old) { return old.expired(); });
  }
  connections.push_back(connection);
}

std::vector<std::shared_ptr<Connection>> HttpServer::Impl::OpenConnections() {
  std::vector<std::shared_ptr<Connection>> open;
  const std::lock_guard lock(mutex);
  for (const auto& connection : connections) {
    if (auto alive = connection.lock()) open.push_back(std::move(alive));
  }
  return open;
}

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(HttpServerOptions options,
                                                       HttpHandler handler) {
  auto impl = std::make_unique<Impl>();
  impl->state->options = std::move(options);
  impl->state->handler = std::move(handler);
  const bool is_unix = !impl->state->options.unix_path.empty();
  TQ_RETURN_IF_ERROR(is_unix ? impl->ListenUnix() : impl->ListenTcp());
  Impl& server = *impl;
  if (is_unix) {
    server.Accept(std::get<LocalAcceptor>(server.acceptor));
  } else {
    server.Accept(std::get<TcpAcceptor>(server.acceptor));
  }
  for (int i = 0; i < server.state->options.threads; ++i) {
    server.threads.emplace_back([&server] { server.context.run(); });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  StopAccepting();
  impl_->context.stop();
  for (std::thread& thread : impl_->threads) thread.join();
  for (const auto& connection : impl_->OpenConnections()) connection->Drop();
  if (!impl_->state->options.unix_path.empty()) {
    ::unlink(impl_->state->options.unix_path.c_str());
  }
}

const std::string& HttpServer::address() const { return impl_->address; }
int HttpServer::port() const { return impl_->port; }
size_t HttpServer::num_connections() const { return impl_->state->num_connections; }
size_t HttpServer::num_exchanges() const { return impl_->state->num_exchanges; }

void HttpServer::StopAccepting() {
  if (impl_->state->stopping.exchange(true)) return;
  asio::post(impl_->control, [impl = impl_.get()] {
    ErrorCode ignored;
    impl->retry.cancel();
    if (auto* tcp = std::get_if<TcpAcceptor>(&impl->acceptor)) tcp->close(ignored);
    if (auto* local = std::get_if<LocalAcceptor>(&impl->acceptor)) local->close(ignored);
  });
  for (const auto& connection : impl_->OpenConnections()) connection->CloseIfIdle();
}

bool HttpServer::WaitIdle(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll{10};
  constexpr std::chrono::seconds kLastBytes{3};
  const auto end = Clock::now() + timeout;
  while (num_exchanges() > 0) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  if (!impl_->state->stopping) return true;
  const auto sent = Clock::now() + kLastBytes;
  while (num_connections() > 0 && Clock::now() < sent) std::this_thread::sleep_for(kPoll);
  return true;
}

}  // namespace tq::server
