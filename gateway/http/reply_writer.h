// A reply as bytes on a connection: heads, chunks, keep-alive.
#pragma once

#include "gateway/api/exchange.h"
#include "gateway/http/connection.h"

#include <boost/asio/awaitable.hpp>

#include <string>

namespace incipit::gateway {

// What of the request decides how its reply is framed.
struct Framing {
  bool keep_alive = false;
  bool may_chunk = true;      // otherwise the end of the connection ends the body
  bool without_body = false;  // HEAD
};

class ReplyWriter final : public Reply {
 public:
  // `connection` outlives the writer.
  ReplyWriter(Connection& connection, std::string request_id, Framing framing,
              std::chrono::milliseconds write_timeout);

  asio::awaitable<void> send(Response response) override;
  asio::awaitable<void> begin(Response response) override;
  asio::awaitable<void> write(std::string bytes) override;
  asio::awaitable<void> finish(std::string last_bytes) override;

  [[nodiscard]] bool begun() const override { return begun_; }

  [[nodiscard]] bool complete() const override { return complete_; }

  // The reply is complete and the connection may carry another request.
  [[nodiscard]] bool can_continue() const { return complete_ && framing_.keep_alive; }

 private:
  [[nodiscard]] std::string head(const Response& response) const;
  void append_chunk(std::string& out, std::string_view bytes) const;

  Connection& connection_;
  std::string request_id_;
  Framing framing_;
  std::chrono::milliseconds write_timeout_;
  bool begun_ = false;
  bool complete_ = false;
};

}  // namespace incipit::gateway
