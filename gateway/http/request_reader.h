// Bytes to `HttpRequest`, within the limits.
#pragma once

#include "gateway/api/error.h"
#include "gateway/http/connection.h"
#include "gateway/http/server.h"

#include <boost/asio/awaitable.hpp>

#include <optional>

namespace incipit::gateway {

struct ReadRequest {
  HttpRequest request;
  std::optional<ApiError> refusal;  // answer that and close
  bool closed = false;              // the peer went away, or was silent too long: close
  bool keep_alive = false;
  bool may_chunk = true;  // HTTP/1.1
};

// Reads the next request of a connection. Never throws for anything that a peer can do. `wait` is
// how long the peer may take to begin. A body larger than messages have is read only from callers
// whose key is known.
asio::awaitable<ReadRequest> read_request(Connection& connection, const ServerOptions& options,
                                          const Services& services, std::chrono::milliseconds wait);

}  // namespace incipit::gateway
