// The HTTP server: accepts, holds the limits, reads requests, hands each to `serve`, watches the
// peer meanwhile. One coroutine on one strand per connection.
#pragma once

#include "gateway/api/routes.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace incipit::gateway {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8787;  // 0 = a free one
  bool loopback_only = true;  // refuse to bind elsewhere: no keys are configured
  int threads = 2;
  int max_connections = 1024;                      // one more is answered 529 and closed
  std::size_t head_limit = std::size_t{64} << 10;  // bytes of request line and headers: 431
  int max_headers = 100;                           // lines: 431
  BodyLimits body_limits;                          // 413
  std::chrono::milliseconds head_timeout{10'000};  // first byte to end of the head: 408
  std::chrono::milliseconds body_timeout{30'000};  // between two pieces of a body: 408
  std::chrono::milliseconds body_total{300'000};   // for a whole body: 408
  std::chrono::milliseconds idle_timeout{75'000};  // between requests: closed
  std::chrono::milliseconds write_timeout{
      30'000};                              // a reader that takes nothing for so long: closed
  std::chrono::milliseconds linger{2'000};  // how long the rest of a refused request is read off
};

class Server {
 public:
  // Binds, so that a port in use is known before a model is loaded. Throws std::runtime_error: one
  // sentence that names address and reason.
  explicit Server(const ServerOptions& options);
  // Ends every connection at once.
  ~Server();

  // Listens and starts the threads. `services` outlives the server.
  void start(Services& services);

  // "http://127.0.0.1:8787"
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] int connections() const;

  // No new connections, no further requests on open ones; requests in progress run to their end.
  void stop_accepting();
  // Waits until no connection is left; false when that takes longer than `timeout`.
  bool wait_until_idle(std::chrono::milliseconds timeout);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
