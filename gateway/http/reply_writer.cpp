#include "gateway/http/reply_writer.h"

#include <fmt/format.h>

#include <iterator>

namespace incipit::gateway {

namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 504:
      return "Gateway Timeout";
    case 529:
      return "Overloaded";
    default:
      return "Unknown";
  }
}

// A value that came from outside must not end its header line.
std::string one_line(std::string_view value) {
  std::string out(value);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

}  // namespace

ReplyWriter::ReplyWriter(Connection& connection, std::string request_id, Framing framing,
                         std::chrono::milliseconds write_timeout)
    : connection_(connection),
      request_id_(std::move(request_id)),
      framing_(framing),
      write_timeout_(write_timeout) {}

std::string ReplyWriter::head(const Response& response) const {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nrequest-id: {}\r\n", response.status,
                                reason(response.status), request_id_);
  for (const auto& [name, value] : response.headers) {
    fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, one_line(value));
  }
  if (response.status != 204) {
    fmt::format_to(std::back_inserter(out), "content-type: {}\r\n", response.content_type);
  }
  if (!framing_.keep_alive) out += "connection: close\r\n";
  return out;
}

asio::awaitable<void> ReplyWriter::send(Response response) {
  begun_ = true;
  std::string out = head(response);
  if (response.status != 204) {
    fmt::format_to(std::back_inserter(out), "content-length: {}\r\n", response.body.size());
  }
  out += "\r\n";
  if (!framing_.without_body) out += response.body;
  co_await connection_.write(out, write_timeout_);
  complete_ = true;
}

asio::awaitable<void> ReplyWriter::begin(Response response) {
  begun_ = true;
  if (!framing_.may_chunk) framing_.keep_alive = false;
  std::string out = head(response);
  out += framing_.may_chunk ? "transfer-encoding: chunked\r\n\r\n" : "\r\n";
  append_chunk(out, response.body);
  co_await connection_.write(out, write_timeout_);
}

asio::awaitable<void> ReplyWriter::write(std::string bytes) {
  std::string out;
  append_chunk(out, bytes);
  co_await connection_.write(out, write_timeout_);
}

asio::awaitable<void> ReplyWriter::finish(std::string last_bytes) {
  std::string out;
  append_chunk(out, last_bytes);
  if (framing_.may_chunk && !framing_.without_body) out += "0\r\n\r\n";
  co_await connection_.write(out, write_timeout_);
  complete_ = true;
}

void ReplyWriter::append_chunk(std::string& out, std::string_view bytes) const {
  // An empty chunk would end the body.
  if (bytes.empty() || framing_.without_body) return;
  if (framing_.may_chunk) {
    fmt::format_to(std::back_inserter(out), "{:x}\r\n{}\r\n", bytes.size(), bytes);
  } else {
    out += bytes;
  }
}

}  // namespace incipit::gateway
