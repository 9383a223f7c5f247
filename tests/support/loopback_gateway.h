// A whole gateway in the test's process, on a free port of 127.0.0.1 with the tiny model, and a
// client that speaks bytes: what it sends need not be HTTP.
#pragma once

#include "gateway/http/server.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace incipit::gateway::testing {

struct GatewaySetup {
  ServerOptions server;
  EngineOptions engine;
  int context = 4096;
  std::string keys;  // contents of a keys file, or empty
  LimitRates limits;
  bool virtual_clock = false;
  bool strict_betas = false;
  std::size_t files_memory = std::size_t{16} << 20;
  std::size_t batches_memory = std::size_t{16} << 20;
  std::string public_url;
  std::chrono::milliseconds request_timeout{60'000};

  GatewaySetup();
};

class LoopbackGateway {
 public:
  explicit LoopbackGateway(const GatewaySetup& setup = {});
  ~LoopbackGateway();

  [[nodiscard]] Server& server();
  [[nodiscard]] Engine& engine();
  [[nodiscard]] std::uint16_t port() const;
  // The request log so far, complete lines only.
  [[nodiscard]] std::vector<std::string> log_lines() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct Answer {
  int status = 0;  // 0: the connection ended before a head was complete
  std::string head;
  std::string body;       // chunks joined
  bool complete = false;  // the body came to its end
  // Value of a header (lower case name), or empty.
  [[nodiscard]] std::string header(std::string_view name) const;
};

// Blocking socket; every read gives up after twenty seconds.
class Client {
 public:
  enum class Kind { quick, narrow };  // narrow: buffers so small that not reading is soon felt

  explicit Client(const LoopbackGateway& gateway, Kind kind = Kind::quick);
  ~Client();
  Client(Client&& other) noexcept;
  Client(const Client&) = delete;

  // False when the peer does not take it any more.
  bool send(std::string_view bytes);
  // Bytes that are there, at least one; empty when the peer has closed.
  std::string receive();
  // Reads on until `what` has arrived; returns whether it did.
  bool wait_for(std::string_view what);
  Answer answer();
  // Nothing but the end of the connection follows.
  bool is_closed();
  void close();

 private:
  int socket_ = -1;
  std::string buffer_;  // received, not yet part of an answer
};

// "POST /v1/messages HTTP/1.1" with host, version and length; `headers` are lines with their ends.
[[nodiscard]] std::string post(std::string_view path, std::string_view body,
                               std::string_view headers = "");
[[nodiscard]] std::string get(std::string_view path, std::string_view headers = "");
// A Messages request for claude-sonnet-4-6 with one user text.
[[nodiscard]] std::string message(std::string_view text, int max_tokens, bool stream);
// One request on a connection of its own.
Answer ask(const LoopbackGateway& gateway, std::string_view request);

// The integer behind `"name":`; -1 when the text has none.
[[nodiscard]] long number_in(std::string_view json, std::string_view name);

// Polls until `condition` holds, at most twenty seconds; returns whether it did.
bool eventually(const std::function<bool()>& condition);

}  // namespace incipit::gateway::testing
