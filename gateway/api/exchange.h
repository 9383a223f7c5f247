// What the API layer sees of HTTP: a request that has arrived whole, and the reply it owes.
// `gateway/http` makes both; nothing here knows sockets.
#pragma once

#include "gateway/clock.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace incipit::gateway {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string id;      // "req_…": the response header `request-id` and the error bodies carry it
  std::string method;  // as sent, "POST"
  std::string path;    // without the query, not percent-decoded
  std::string query;   // behind the question mark
  HeaderList headers;  // names in lower case, in the order sent
  std::string body;
  TimePoint arrived;                               // lifetimes count from here (C-17)
  std::chrono::steady_clock::time_point received;  // real time, for TTFT

  // The first header line of that (lower case) name; nullptr when there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const;
  // Percent-decoded values of a query parameter, in order.
  [[nodiscard]] std::vector<std::string> query_values(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  HeaderList headers;  // besides content-type, content-length, request-id and the like
  std::string body;
};

// Thrown by `Reply` when the peer cannot be reached any more. Ends the request, not the server.
struct PeerGone {};

// Either `send` once, or `begin`, any number of `write`, and `finish`. One caller at a time.
class Reply {
 public:
  virtual ~Reply() = default;

  virtual boost::asio::awaitable<void> send(Response response) = 0;

  // The head of a body whose length is not known; `response.body` goes out with it. Throws
  // PeerGone.
  virtual boost::asio::awaitable<void> begin(Response response) = 0;
  virtual boost::asio::awaitable<void> write(std::string bytes) = 0;
  virtual boost::asio::awaitable<void> finish(std::string last_bytes) = 0;

  // A head was handed over, so the status is decided.
  [[nodiscard]] virtual bool begun() const = 0;
  // All of it was handed over.
  [[nodiscard]] virtual bool complete() const = 0;
};

// The piece of a path behind its `index`th slash, percent-decoded: "/v1/files/f" has "f" at 2.
// Empty when there are not so many.
[[nodiscard]] std::string path_segment(std::string_view path, std::size_t index);

// "a%20b+c" to "a b+c"; a broken escape stays as it is.
[[nodiscard]] std::string percent_decoded(std::string_view text);

}  // namespace incipit::gateway
