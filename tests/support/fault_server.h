// An HTTP/1.1 server on a free port of 127.0.0.1 that answers by a script, faults included, and
// keeps what it was asked. Plain sockets: the SDK's tests build without Boost.
//
//   FaultServer server({{.status = 529}, {.body = "{}"}});        // the first request, the second
//   FaultServer server({{.body = events, .chunk = 64, .fault = Fault::cut, .at = 100}});
//   FaultServer server([](const FaultServer::Request& request) { return Reply{.body =
//   request.body}; });
#pragma once

#include "incipit/transport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace incipit::testing {

enum class Fault {
  none,
  no_reply,     // the connection is closed when the request is there
  silence,      // nothing at all comes until `release`; then the reply
  cut_headers,  // closed in the middle of the headers
  cut,          // closed after `at` bytes of the body
  stall         // nothing comes after `at` bytes of the body until `release`; then the rest
};

struct Reply {
  int status = 200;
  std::vector<HttpHeader> headers{};  // besides the length
  std::string body{};
  std::size_t chunk = 0;  // chunks of so many bytes; 0: a content-length
  Fault fault = Fault::none;
  std::size_t at = 0;
  bool reset = false;                  // the fault closes with RST, not FIN
  bool close = false;                  // the connection is closed behind the reply, unannounced
  std::chrono::milliseconds delay{0};  // before the headers
  std::string
      raw{};  // if any: these bytes are the whole reply, and the connection is closed behind them
};

[[nodiscard]] Reply json_reply(std::string body, int status = 200);

// 200 with these server-sent events, in chunks of 64 bytes.
[[nodiscard]] Reply sse_reply(std::string events);

class FaultServer {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::vector<HttpHeader> headers;
    std::string body;
    int connection = 0;  // 0 for the first that was accepted

    // The value of that header (compared without case), or "".
    [[nodiscard]] std::string header(std::string_view name) const;
    [[nodiscard]] bool has_header(std::string_view name) const;
  };

  using Script = std::function<Reply(const Request&)>;

  // The replies in order, whichever connection asks. When they are used up: 418, which is not
  // retried.
  explicit FaultServer(std::vector<Reply> replies);
  // Called under no lock, from several threads at once.
  explicit FaultServer(Script script);
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  [[nodiscard]] std::string base_url() const;  // "http://127.0.0.1:PORT"

  [[nodiscard]] int port() const { return port_; }

  // So far, in the order in which they were complete.
  [[nodiscard]] std::vector<Request> requests() const;

  [[nodiscard]] Request request(std::size_t index) const { return requests().at(index); }

  // Of all bodies together: how much the system took from the server.
  [[nodiscard]] std::size_t body_bytes_sent() const { return body_bytes_sent_; }

  // Each returns whether it came to that within five seconds.
  bool wait_for_requests(std::size_t count) const;
  bool wait_until_client_closed(int connection = 0) const;

  // Ends one `silence` or `stall`, now or to come.
  void release();

 private:
  struct Connection {
    int socket = -1;
    int number = 0;
    std::string received{};  // not yet part of a request
    bool closed_by_client = false;
    std::jthread thread{};
  };

  void accept_connections();
  void serve(Connection& connection);
  bool receive(Connection& connection, Request& request);
  bool receive_more(Connection& connection);
  bool answer(Connection& connection, const Reply& reply);
  bool send(Connection& connection, std::string_view bytes, bool of_body = false);
  bool pause(Connection& connection, int milliseconds);
  void see_client_close(Connection& connection);
  bool wait_for(const std::function<bool()>& condition) const;

  Script script_;
  int listener_ = -1;
  int releases_ = -1;  // an eventfd that counts
  int port_ = 0;
  std::atomic<std::size_t> body_bytes_sent_{0};

  mutable std::mutex
      mutex_;  // guards what follows; of a connection: its socket's life and `closed_by_client`
  mutable std::condition_variable changed_;
  std::vector<Request> requests_;
  std::list<Connection> connections_;
  bool stopping_ = false;

  std::jthread acceptor_;
};

}  // namespace incipit::testing
