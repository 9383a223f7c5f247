// The seam between the client and the network: tests, proxies and other HTTP stacks put their own
// here.
#pragma once

#include "incipit/error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

struct HttpHeader {
  std::string name = {};
  std::string value = {};
};

// One attempt. A middleware may change all of it.
struct HttpRequest {
  std::string method = {};
  std::string url = {};  // absolute, query included
  std::vector<HttpHeader> headers = {};
  std::shared_ptr<const std::string> body = {};  // shared by all attempts; may be null
  std::chrono::milliseconds timeout{600'000};    // until the headers, then for each wait for bytes
  std::chrono::milliseconds connect_timeout{5'000};  // a part of `timeout`
  std::stop_token stop = {};
  int attempt = 0;  // 0 for the first

  // Sets the header, in the place of one of that name (compared without case); null removes it.
  void set_header(std::string_view name, std::optional<std::string> value);
};

// The rest of a response. Destroying it closes the exchange: a connection whose body was not read
// to its end is not used again. Belongs to one thread at a time.
class HttpBody {
 public:
  virtual ~HttpBody() = default;

  // The next bytes, valid until the next call; empty at the end. Throws TransportError.
  virtual std::string_view read() = 0;
};

struct HttpResponse {
  int status = 0;
  std::vector<HttpHeader> headers = {};  // of the last response, after redirects
  std::unique_ptr<HttpBody> body;

  // The value of the first header of that name (compared without case), or null.
  [[nodiscard]] const std::string* header(std::string_view name) const;

  // The whole body, read to its end. Throws TransportError.
  [[nodiscard]] std::string text();
};

// Starts exchanges. Called from several threads at once.
class Transport {
 public:
  virtual ~Transport() = default;

  // Returns when the response's headers are there. Throws TransportError.
  [[nodiscard]] virtual HttpResponse start(const HttpRequest& request) = 0;
};

struct CurlOptions {
  std::optional<std::string> proxy = {};  // "http://…", "socks5://…"; "" for none; unset: the
                                          // environment's http_proxy, https_proxy, no_proxy
  std::string ca_file = {};               // certificates to trust; empty: the system's
};

// libcurl: TLS, proxies, HTTP/2 where the server has it, keep-alive; connections are reused,
// whichever thread asks. No thread of its own: a body is read while `read()` is called, so the
// caller's pace is the server's (TCP back-pressure).
[[nodiscard]] std::shared_ptr<Transport> curl_transport(CurlOptions options = {});

// A body that is there already, for middleware and tests.
[[nodiscard]] std::unique_ptr<HttpBody> whole_body(std::string bytes);

// Wraps one attempt: may change the request, call `next` or not, replace the response, or throw
// RetryableError. Client-wide ones are called first, outermost first.
using NextAttempt = std::function<HttpResponse(HttpRequest&)>;
using Middleware = std::function<HttpResponse(HttpRequest&, const NextAttempt& next)>;

}  // namespace incipit
