#include "gateway/http/request_reader.h"

#include "gateway/api/anthropic_reply.h"

#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace incipit::gateway {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Parser = http::request_parser<http::string_body>;
using Milliseconds = std::chrono::milliseconds;

constexpr auto as_result = asio::experimental::as_tuple(asio::use_awaitable);

ApiError too_long_coming(std::string_view what) {
  return {408, "timeout_error", fmt::format("{} did not arrive in time", what)};
}

ApiError too_large(std::size_t limit, const BodyLimits& limits) {
  return {413, "request_too_large",
          fmt::format("Request exceeds the maximum size of {} bytes{}", limit,
                      limit == limits.message ? " (--body-limit)" : "")};
}

// What a failed read means: an answer, or nothing when nobody waits for one.
std::optional<ApiError> refusal_of(const beast::error_code& error, const ServerOptions& options) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ApiError(431, "invalid_request_error",
                    fmt::format("request headers are larger than {} bytes", options.head_limit));
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    return invalid_request("malformed HTTP request: " + error.message());
  }
  return {};  // the socket failed
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// Splits "/path?query", also in the form that proxies send ("http://host/path").
bool split_target(std::string_view target, HttpRequest& request) {
  if (const std::size_t scheme = target.find("://");
      scheme != std::string_view::npos && target.front() != '/') {
    const std::size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (target != "*" && !target.starts_with('/')) return false;
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = target.substr(0, mark);
  request.query = target.substr(std::min(mark + 1, target.size()));
  return true;
}

// Fills in all but the body. Returns what is wrong with the head.
std::optional<ApiError> take_head(const Parser::value_type& message, const ServerOptions& options,
                                  HttpRequest& request) {
  request.method = message.method_string();
  int count = 0;
  for (const auto& field : message) {
    if (++count > options.max_headers) {
      return ApiError(431, "invalid_request_error",
                      fmt::format("more than {} request headers", options.max_headers));
    }
    request.headers.emplace_back(lower_case(field.name_string()), std::string(field.value()));
  }
  if (message.version() == 11 && message.count(http::field::host) != 1) {
    return invalid_request("malformed HTTP request: exactly one Host header is required");
  }
  if (!split_target(message.target(), request)) {
    return invalid_request("malformed HTTP request: the target must be a path that starts with /");
  }
  return {};
}

// Throws ApiError for a caller without a key that comes with more than a message.
std::size_t permitted_body(const HttpRequest& head, const BodyLimits& limits, const Keys& keys) {
  const std::size_t limit = body_limit(head, limits);
  if (limit > limits.message) static_cast<void>(keys.scope_of(head));
  return limit;
}

// Waits for the first byte, then reads one head.
asio::awaitable<beast::error_code> read_head(Connection& connection, Parser& parser,
                                             const ServerOptions& options, Milliseconds wait) {
  if (connection.buffer.size() == 0) {
    connection.idle = true;
    connection.arm(wait);
    const auto [error, received] =
        co_await connection.socket.async_read_some(connection.buffer.prepare(4096), as_result);
    connection.disarm();
    connection.buffer.commit(received);
    if (error) co_return http::make_error_code(http::error::end_of_stream);
  }
  connection.idle = false;
  connection.arm(options.head_timeout);
  const auto [error, used] =
      co_await http::async_read_header(connection.socket, connection.buffer, parser, as_result);
  static_cast<void>(used);
  connection.disarm();
  co_return error;
}

asio::awaitable<beast::error_code> read_body(Connection& connection, Parser& parser,
                                             const ServerOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + options.body_total;
  beast::error_code error;
  while (!error && !parser.is_done()) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    connection.arm(std::clamp(left, Milliseconds(0), options.body_timeout));
    std::size_t used = 0;
    std::tie(error, used) =
        co_await http::async_read_some(connection.socket, connection.buffer, parser, as_result);
    connection.disarm();
  }
  co_return error;
}

}  // namespace

asio::awaitable<ReadRequest> read_request(Connection& connection, const ServerOptions& options,
                                          const Services& services, Milliseconds wait) {
  ReadRequest read;
  HttpRequest& request = read.request;
  request.id = make_id("req_01");
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(options.head_limit));
  parser.body_limit(boost::none);  // which one holds is known once the head is

  beast::error_code error = co_await read_head(connection, parser, options, wait);
  request.arrived = services.clock.now();
  request.received = std::chrono::steady_clock::now();
  if (error) {
    read.refusal = connection.expired() && parser.got_some() ? too_long_coming("the request head")
                                                             : refusal_of(error, options);
    read.closed = !read.refusal;
    co_return read;
  }
  const Parser::value_type& message = parser.get();
  read.refusal = take_head(message, options, request);
  if (read.refusal) co_return read;
  read.may_chunk = message.version() >= 11;
  read.keep_alive = parser.keep_alive();
  std::size_t limit = 0;
  try {
    limit = permitted_body(request, options.body_limits, services.keys);
  } catch (const ApiError& refused) {
    read.refusal = refused;
    co_return read;
  }
  if (parser.content_length().value_or(0) > limit) {
    read.refusal = too_large(limit, options.body_limits);
    co_return read;
  }
  parser.body_limit(limit);

  if (const std::string* expect = request.header("expect"); expect != nullptr) {
    if (!beast::iequals(*expect, "100-continue")) {
      read.refusal =
          ApiError(417, "invalid_request_error", "expect: only 100-continue is understood");
      co_return read;
    }
    if (!parser.is_done()) {
      try {
        co_await connection.write("HTTP/1.1 100 Continue\r\n\r\n", options.write_timeout);
      } catch (const PeerGone&) {
        read.closed = true;
      }
      if (read.closed) co_return read;
    }
  }
  error = co_await read_body(connection, parser, options);
  if (error == http::error::body_limit) {
    read.refusal = too_large(limit, options.body_limits);
    co_return read;
  }
  if (error) {
    read.refusal =
        connection.expired() ? too_long_coming("the request body") : refusal_of(error, options);
    read.closed = !read.refusal;
    co_return read;
  }
  request.body = std::move(parser.get().body());
  co_return read;
}

}  // namespace incipit::gateway
