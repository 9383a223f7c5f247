// HTTP over libcurl's multi interface. Every exchange has a multi handle to itself, with one
// connection in it, and is driven by the thread that waits for it: none of ours, and no lock while
// bytes move.
#include "incipit/transport.h"
#include "sdk/src/curl_url.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

namespace incipit {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = TransportError::Kind;

constexpr std::size_t most_idle_connections = 100;  // W-47
constexpr int most_redirects = 10;

struct Free {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

using HeaderList = std::unique_ptr<curl_slist, Free>;

// What another attempt would not mend.
[[noreturn]] void refuse(const std::string& message) {
  throw TransportError(Kind::other, message, false);
}

// A line of HTTP must end where it is meant to end.
bool is_token(std::string_view text) {
  return !text.empty()
         && text.find_first_not_of(
                "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
                == std::string_view::npos;
}

void check(const HttpRequest& request) {
  if (!is_token(request.method)) refuse("the method is no HTTP token");
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name))
      refuse("a header's name is empty or holds a character that HTTP forbids there");
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      refuse("header " + name + ": the value holds a line break or a NUL");
    }
  }
}

// Requests without an `accept` or `content-type` get none: libcurl's own would be wrong.
HeaderList header_list(const std::vector<HttpHeader>& headers) {
  HeaderList list;
  const auto add = [&list](const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)list.release();
    list.reset(longer);
  };
  for (const char* own : {"Expect:", "Accept:", "Content-Type:"})
    add(own);
  for (const auto& [name, value] : headers)
    add(value.empty() ? name + ";" : name + ": " + value);
  return list;
}

Kind kind_of(CURLcode code, CURL* easy) {
  long connect_status = 0;  // a proxy's answer to CONNECT
  curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
  if (connect_status >= 300) return Kind::proxy;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return Kind::resolve;
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
      return Kind::connect;  // libcurl's clock runs for that alone
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return Kind::proxy;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
      return Kind::tls;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return Kind::broken;
    default:
      return Kind::other;
  }
}

// A pair of libcurl's handles, which keep a connection alive between exchanges.
struct Connection {
  explicit Connection(std::string to)
      : multi(curl_multi_init()), easy(curl_easy_init()), origin(std::move(to)) {
    if (multi == nullptr || easy == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L);
  }

  ~Connection() {
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  CURLM* multi;
  CURL* easy;
  std::string origin;
};

class IdleConnections {
 public:
  std::unique_ptr<Connection> take(const std::string& origin) {
    {
      const std::lock_guard lock(mutex_);
      // The last that came back is the least likely to have been closed.
      const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& connection) {
        return connection->origin == origin;
      });
      if (found != idle_.rend()) {
        auto connection = std::move(*found);
        idle_.erase(std::next(found).base());
        return connection;
      }
    }
    return std::make_unique<Connection>(origin);
  }

  void give_back(std::unique_ptr<Connection> connection) {
    std::unique_ptr<Connection> oldest;  // closed after the lock
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
    if (idle_.size() > most_idle_connections) {
      oldest = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

// One request and its response, without redirects.
class Exchange final : public HttpBody {
 public:
  Exchange(const HttpRequest& request, const CurlOptions& options, const std::string& origin,
           std::shared_ptr<IdleConnections> idle)
      : body_(request.body),
        timeout_(request.timeout),
        stop_(request.stop),
        origin_(origin),
        request_headers_(header_list(request.headers)),
        idle_(std::move(idle)),
        connection_(idle_->take(origin)),
        wake_(std::in_place, stop_, Wake{connection_->multi}) {
    configure(request, options);
    curl_multi_add_handle(connection_->multi, connection_->easy);
  }

  void wait_for_headers(Clock::time_point deadline) {
    drive(deadline, [this] { return headers_complete_; });
  }

  std::string_view read() override {
    if (std::exchange(handed_out_, true)) received_.clear();
    if (received_.empty() && !ended_) {
      drive(after(timeout_), [this] { return !received_.empty(); });
    }
    return received_;
  }

  static Clock::time_point after(std::chrono::milliseconds timeout) {
    return Clock::now() + std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(10'000));
  }

  int status = 0;
  std::vector<HttpHeader> headers;

 private:
  struct Wake {
    void operator()() const noexcept { curl_multi_wakeup(multi); }

    CURLM* multi;
  };

  template <typename Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(connection_->easy, option, value);
    if (code != CURLE_OK) refuse(std::string("libcurl: ") + curl_easy_strerror(code));
  }

  void configure(const HttpRequest& request, const CurlOptions& options) {
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (body_ != nullptr || request.method == "POST") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDS, body_ == nullptr ? "" : body_->data());  // not copied
      set(CURLOPT_POSTFIELDSIZE_LARGE,
          static_cast<curl_off_t>(body_ == nullptr ? 0 : body_->size()));
    }
    set(CURLOPT_HTTPHEADER, request_headers_.get());
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::clamp<std::chrono::milliseconds::rep>(
                                       request.connect_timeout.count(), 1, INT_MAX)));
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_NOSIGNAL,
        1L);  // signals belong to the program; sockets are written with MSG_NOSIGNAL
    set(CURLOPT_QUICK_EXIT, 1L);  // a cancellation does not wait for a name server
    if (options.proxy) set(CURLOPT_PROXY, options.proxy->c_str());
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (!options.ca_file.empty()) {
      set(CURLOPT_CAINFO, options.ca_file.c_str());
      set(CURLOPT_PROXY_CAINFO, options.ca_file.c_str());
    }
    set(CURLOPT_ERRORBUFFER, error_.data());
    set(CURLOPT_HEADERFUNCTION, &take<&Exchange::take_header_line>);
    set(CURLOPT_HEADERDATA, static_cast<void*>(this));
    set(CURLOPT_WRITEFUNCTION, &take<&Exchange::take_body>);
    set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  }

  // What libcurl calls; 0 ends the transfer, for no exception may pass through C.
  template <void (Exchange::*member)(std::string_view)>
  static std::size_t take(char* bytes, std::size_t, std::size_t size, void* self) noexcept {
    try {
      (static_cast<Exchange*>(self)->*member)({bytes, size});
      return size;
    } catch (const std::exception&) {
      return 0;
    }
  }

  void take_body(std::string_view bytes) { received_ += bytes; }

  void take_header_line(std::string_view line) {
    if (headers_complete_) return;  // a trailer
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n'))
      line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {
      headers.clear();
      const std::size_t blank = std::min(line.find(' '), line.size() - 1);
      std::from_chars(line.data() + blank + 1, line.data() + line.size(), status);
    } else if (line.empty()) {
      headers_complete_ = status >= 200;
      if (!headers_complete_) status = 0;  // a 100 Continue: another head follows
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      std::string_view value = line.substr(colon + 1);
      const std::string_view blanks = " \t";
      value.remove_prefix(std::min(value.find_first_not_of(blanks), value.size()));
      value = value.substr(0, value.find_last_not_of(blanks) + 1);
      headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
    }
  }

  // Moves bytes until there is what `ready` asks for or the transfer has ended well. libcurl reads
  // only in here, and 1.6 MB (a hundred of its buffers) at most at a time: all that ever waits in
  // memory. What came before a failure is still handed out.
  template <typename Ready>
  void drive(Clock::time_point deadline, Ready ready) {
    while (!failure_) {
      int running = 0;
      if (stop_.stop_requested()) {
        fail(Kind::cancelled, "cancelled");
      } else if (const CURLMcode code = curl_multi_perform(connection_->multi, &running);
                 code != CURLM_OK) {
        fail(Kind::other, curl_multi_strerror(code));
      } else if (running == 0) {
        end();
      }
      if (ended_ || ready()) return;
      if (!failure_) wait(deadline);
    }
    throw TransportError(*failure_);
  }

  void wait(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left > 0) {
      curl_multi_poll(connection_->multi, nullptr, 0,
                      static_cast<int>(std::min<long long>(left, INT_MAX)), nullptr);
    } else {
      fail(Kind::timeout, (headers_complete_ ? "nothing more came within " : "no response within ")
                              + std::to_string(timeout_.count()) + " ms");
    }
  }

  // The transfer is over. The connection goes back if all went well.
  void end() {
    int waiting = 0;
    const CURLMsg* message = curl_multi_info_read(connection_->multi, &waiting);
    const CURLcode code = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
    if (code != CURLE_OK) {
      // libcurl quotes a proxy that it cannot read, password included.
      const std::string_view text = error_.data();
      const bool quotable = !text.empty() && text.find('@') == std::string_view::npos;
      return fail(kind_of(code, connection_->easy),
                  quotable ? std::string(text) : curl_easy_strerror(code));
    }
    if (!headers_complete_) return fail(Kind::broken, "the connection closed within the headers");
    ended_ = true;
    wake_.reset();
    curl_multi_remove_handle(connection_->multi, connection_->easy);
    curl_easy_reset(connection_->easy);  // nothing in it may point to this exchange any more
    idle_->give_back(std::move(connection_));
  }

  // Closes the connection: now, not when the body is destroyed.
  void fail(Kind kind, const std::string& text) {
    failure_.emplace(kind, origin_ + ": " + text, status == 0 && kind != Kind::cancelled);
    wake_.reset();
    connection_.reset();
  }

  std::shared_ptr<const std::string> body_;
  std::chrono::milliseconds timeout_;
  std::stop_token stop_;
  std::string origin_;
  HeaderList request_headers_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::string received_;
  bool headers_complete_ = false;
  bool handed_out_ = false;
  bool ended_ = false;
  std::optional<TransportError> failure_;
  std::shared_ptr<IdleConnections> idle_;
  std::unique_ptr<Connection> connection_;        // null: given back, or failed
  std::optional<std::stop_callback<Wake>> wake_;  // ends before the connection does
};

// Where the response sends the request to; null if nowhere.
const std::string* redirect_of(const HttpResponse& response) {
  switch (response.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return response.header("location");
    default:
      return nullptr;
  }
}

// Another origin gets none but headers that are known to hold no secret: libcurl itself would strip
// Authorization and pass x-api-key on.
void strip_secrets(HttpRequest& request) {
  constexpr std::array harmless = {"accept", "content-type", "user-agent", "anthropic-version",
                                   "anthropic-beta"};
  std::vector<HttpHeader> kept;
  for (HttpHeader& header : request.headers) {
    const auto is_its_name = [&](const char* name) {
      return curl_strequal(name, header.name.c_str()) != 0;
    };
    if (std::any_of(harmless.begin(), harmless.end(), is_its_name))
      kept.push_back(std::move(header));
  }
  request.headers = std::move(kept);
}

// The request for the redirect's target.
HttpRequest redirected(HttpRequest request, int status, const std::string& location) {
  const std::string from = read_url(request.url).origin;
  HttpUrl to = read_url(location, request.url);
  if (from.starts_with("https:") && !to.origin.starts_with("https:")) {
    refuse(from + ": the redirect leads away from https");
  }
  if (from != to.origin) strip_secrets(request);
  request.url = std::move(to.text);
  if ((status == 303 && request.method != "HEAD") || (status < 303 && request.method == "POST")) {
    request.method = "GET";
    request.body = nullptr;
    request.set_header("content-type", std::nullopt);
  }
  return request;
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(CurlOptions options) : options_(std::move(options)) {
    // Counted and safe for threads. Never undone: the program may use libcurl as well.
    if (const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK) {
      refuse(std::string("libcurl: ") + curl_easy_strerror(code));
    }
  }

  HttpResponse start(const HttpRequest& request) override {
    check(request);
    const auto deadline = Exchange::after(request.timeout);
    HttpResponse response = exchange(request, deadline);
    HttpRequest next;
    for (int redirects = 0; const std::string* location = redirect_of(response); ++redirects) {
      if (redirects == most_redirects) refuse("more than 10 redirects");
      next = redirected(redirects == 0 ? request : std::move(next), response.status, *location);
      response = exchange(next, deadline);
    }
    return response;
  }

 private:
  HttpResponse exchange(const HttpRequest& request, Clock::time_point deadline) {
    auto body = std::make_unique<Exchange>(request, options_, read_url(request.url).origin, idle_);
    body->wait_for_headers(deadline);
    return {.status = body->status, .headers = std::move(body->headers), .body = std::move(body)};
  }

  CurlOptions options_;
  std::shared_ptr<IdleConnections> idle_ = std::make_shared<IdleConnections>();
};

}  // namespace

std::shared_ptr<Transport> curl_transport(CurlOptions options) {
  return std::make_shared<CurlTransport>(std::move(options));
}

}  // namespace incipit
