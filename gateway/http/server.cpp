#include "gateway/http/server.h"

#include "gateway/api/anthropic_reply.h"
#include "gateway/http/connection.h"
#include "gateway/http/reply_writer.h"
#include "gateway/http/request_reader.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace incipit::gateway {

namespace {

using asio::ip::tcp;

constexpr auto as_result = asio::experimental::as_tuple(asio::use_awaitable);
// Clients beyond the limit that are told so; still more are just closed.
constexpr std::size_t max_refused = 64;

std::runtime_error cannot_listen(const std::string& host, std::uint16_t port,
                                 const boost::system::error_code& error) {
  if (error == asio::error::address_in_use) {
    return std::runtime_error(
        fmt::format("port {} on {} is in use by another program; choose another with --port, or "
                    "--port 0 for a free one",
                    port, host));
  }
  return std::runtime_error(
      fmt::format("cannot listen on {} port {}: {}", host, port, error.message()));
}

tcp::endpoint resolve(asio::io_context& context, const ServerOptions& options) {
  boost::system::error_code error;
  tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    throw std::runtime_error(fmt::format("--host {}: no such address ({})", options.host,
                                         error ? error.message() : "nothing found"));
  }
  tcp::endpoint chosen = *found.begin();
  for (const auto& entry : found) {  // "localhost" is both: most clients try IPv4
    if (entry.endpoint().address().is_v4()) {
      chosen = entry.endpoint();
      break;
    }
  }
  if (options.loopback_only && !chosen.address().is_loopback()) {
    throw std::runtime_error(
        fmt::format("--host {} can be reached from other machines; that needs --keys FILE, so that "
                    "not everybody may use it",
                    options.host));
  }
  return chosen;
}

}  // namespace

struct Server::State {
  // Counts a connection as open from its acceptance to the end of its coroutine, however that ends.
  class Registration {
   public:
    Registration(State& state, const std::shared_ptr<Connection>& connection)
        : state_(&state), connection_(connection) {
      const std::lock_guard lock(state_->mutex);
      state_->open.insert(connection_);
    }

    Registration(Registration&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), connection_(std::move(other.connection_)) {}

    Registration& operator=(Registration&&) = delete;

    ~Registration() {
      if (state_ == nullptr) return;
      const std::lock_guard lock(state_->mutex);
      state_->open.erase(connection_);
      state_->changed.notify_all();
    }

   private:
    State* state_;
    std::weak_ptr<Connection> connection_;
  };

  explicit State(const ServerOptions& the_options)
      : options(the_options), context(the_options.threads), acceptor(asio::make_strand(context)) {}

  asio::awaitable<void> accept_loop();
  void admit(tcp::socket socket);
  asio::awaitable<void> session(std::shared_ptr<Connection> connection, Registration registration,
                                bool is_refused) const;
  asio::awaitable<void> converse(Connection& connection) const;
  asio::awaitable<void> refuse(Connection& connection, const HttpRequest& request,
                               ApiError error) const;

  // Closes every open connection, or only those between two requests; each on its own strand.
  void close_connections(bool only_idle) {
    const std::lock_guard lock(mutex);
    for (const std::weak_ptr<Connection>& weak : open) {
      if (const std::shared_ptr<Connection> connection = weak.lock()) {
        asio::post(connection->socket.get_executor(), [connection, only_idle] {
          if (connection->idle || !only_idle) connection->close();
        });
      }
    }
  }

  ServerOptions options;
  Services* services = nullptr;
  std::atomic<bool> draining = false;

  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::weak_ptr<Connection>, std::owner_less<std::weak_ptr<Connection>>> open;

  asio::io_context context;  // destroyed, with its coroutines, before what they refer to
  tcp::acceptor acceptor;
  tcp::endpoint endpoint;
  std::vector<std::thread> threads;
};

asio::awaitable<void> Server::State::accept_loop() {
  while (!draining) {
    auto [error, socket] = co_await acceptor.async_accept(
        asio::any_io_executor(asio::make_strand(context)), as_result);
    if (draining) co_return;
    if (error) {  // out of file descriptors, most likely: others will be closed
      asio::steady_timer pause(co_await asio::this_coro::executor, std::chrono::milliseconds(20));
      const auto [ignored] = co_await pause.async_wait(as_result);
      static_cast<void>(ignored);
      continue;
    }
    try {
      admit(std::move(socket));
    } catch (const std::exception&) {  // no memory for this one; it is closed
    }
  }
}

void Server::State::admit(tcp::socket socket) {
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex);
    count = open.size();
  }
  const auto most = static_cast<std::size_t>(options.max_connections);
  if (count >= most + max_refused) return;  // closes the socket
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  auto connection = std::make_shared<Connection>(std::move(socket));
  Registration registration(*this, connection);
  const auto executor = connection->socket.get_executor();
  asio::co_spawn(executor, session(std::move(connection), std::move(registration), count >= most),
                 asio::detached);
}

asio::awaitable<void> Server::State::session(std::shared_ptr<Connection> connection,
                                             Registration /*registration*/, bool is_refused) const {
  try {
    if (is_refused) {
      HttpRequest unread;
      unread.id = make_id("req_01");
      ApiError error(529, "overloaded_error", "Overloaded: too many open connections");
      error.retry_after = 2;
      co_await refuse(*connection, unread, error);
    } else {
      co_await converse(*connection);
    }
  } catch (const PeerGone&) {  // nobody to tell
  } catch (const std::exception& error) {
    // What no peer should be able to cause. It ends this connection only.
    RequestRecord record;
    record.error = error.what();
    services->log.write(record);
  }
  connection->close();
}

asio::awaitable<void> Server::State::converse(Connection& connection) const {
  using asio::experimental::awaitable_operators::operator||;
  std::chrono::milliseconds wait = options.head_timeout;
  while (!draining) {
    const ReadRequest read = co_await read_request(connection, options, *services, wait);
    wait = options.idle_timeout;
    if (read.closed) co_return;
    if (read.refusal) {
      co_await refuse(connection, read.request, *read.refusal);
      co_return;
    }
    const Framing framing{read.keep_alive && !draining, read.may_chunk,
                          read.request.method == "HEAD"};
    ReplyWriter reply(connection, read.request.id, framing, options.write_timeout);
    co_await (serve(read.request, reply, *services) || connection.watch(options.head_limit));
    if (!reply.complete()) co_return;
    if (!reply.can_continue()) {
      co_await connection.linger(options.linger);
      co_return;
    }
  }
}

asio::awaitable<void> Server::State::refuse(Connection& connection, const HttpRequest& request,
                                            ApiError error) const {
  RequestRecord record;
  record.request_id = request.id;
  record.method = request.method;
  record.path = request.path;
  record.status = error.status;
  record.error = error.what();
  services->metrics.count(record);
  services->log.write(record);
  ReplyWriter reply(connection, request.id, Framing{}, options.write_timeout);
  co_await reply.send(error_response(error, request.id));
  co_await connection.linger(options.linger);
}

Server::Server(const ServerOptions& options) : state_(std::make_unique<State>(options)) {
  State& s = *state_;
  s.endpoint = resolve(s.context, options);
  boost::system::error_code error;
  s.acceptor.open(s.endpoint.protocol(), error);
  if (!error) s.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) s.acceptor.bind(s.endpoint, error);
  if (error) throw cannot_listen(options.host, options.port, error);
  s.endpoint = s.acceptor.local_endpoint();
}

Server::~Server() {
  stop_accepting();
  state_->close_connections(false);
  wait_until_idle(std::chrono::seconds(2));
  state_->context.stop();
  for (std::thread& thread : state_->threads)
    thread.join();
}

void Server::start(Services& services) {
  State& s = *state_;
  s.services = &services;
  boost::system::error_code error;
  s.acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) throw cannot_listen(s.options.host, port(), error);
  asio::co_spawn(s.acceptor.get_executor(), s.accept_loop(), asio::detached);
  for (int i = 0; i < s.options.threads; ++i) {
    s.threads.emplace_back([&s] { s.context.run(); });
  }
}

std::string Server::address() const {
  const asio::ip::address& address = state_->endpoint.address();
  const std::string host = address.to_string();
  return fmt::format("http://{}:{}", address.is_v6() ? "[" + host + "]" : host, port());
}

std::uint16_t Server::port() const {
  return state_->endpoint.port();
}

int Server::connections() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->open.size());
}

void Server::stop_accepting() {
  State& s = *state_;
  s.draining = true;
  asio::post(s.acceptor.get_executor(), [&s] {
    boost::system::error_code ignored;
    s.acceptor.close(ignored);
  });
  s.close_connections(true);
}

bool Server::wait_until_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [this] { return state_->open.empty(); });
}

}  // namespace incipit::gateway
