#include "incipit/transport.h"

#include "tests/support/fault_server.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace incipit {
namespace {

using namespace std::chrono_literals;
using testing::Fault;
using testing::FaultServer;
using testing::Reply;
using Kind = TransportError::Kind;
using Clock = std::chrono::steady_clock;

// Whatever the environment of the tests says of proxies, these go straight.
std::shared_ptr<Transport> direct() {
  return curl_transport({.proxy = ""});
}

HttpRequest get(const std::string& url) {
  return {.method = "GET", .url = url, .timeout = 5s};
}

HttpRequest post(const std::string& url, std::string body) {
  HttpRequest request = get(url);
  request.method = "POST";
  request.headers = {{"content-type", "application/json"}, {"x-api-key", "sk-secret"}};
  request.body = std::make_shared<const std::string>(std::move(body));
  return request;
}

// What the call throws; a test fails when it throws nothing.
template <typename Call>
TransportError failure(Call call) {
  try {
    call();
  } catch (const TransportError& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw 0;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  unsigned state = 1;
  for (char& c : text)
    c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24);
  return text;
}

const FaultServer::Script echo = [](const FaultServer::Request& request) {
  return Reply{.body = request.method + " " + request.target + " " + request.body};
};

TEST_CASE("a header is set in its place, whatever its case, and null removes it") {
  HttpRequest request;
  request.headers = {{"A", "1"}, {"X-Key", "2"}, {"B", "3"}, {"x-key", "4"}};
  request.set_header("x-KEY", "5");
  REQUIRE(request.headers.size() == 3);
  CHECK(request.headers[1].name == "X-Key");
  CHECK(request.headers[1].value == "5");
  request.set_header("c", "6");
  CHECK(request.headers.back().name == "c");
  request.set_header("a", std::nullopt);
  request.set_header("none", std::nullopt);
  CHECK(request.headers.size() == 3);
  CHECK(request.headers.front().name == "X-Key");
}

TEST_CASE("a response finds its headers without case, the first of a name") {
  HttpResponse response;
  response.headers = {{"Retry-After", "1"}, {"retry-after", "2"}};
  REQUIRE(response.header("RETRY-after") != nullptr);
  CHECK(*response.header("RETRY-after") == "1");
  CHECK(response.header("retry") == nullptr);
  CHECK(response.text() == "");
  response.body = whole_body("all of it");
  CHECK(response.text() == "all of it");
  CHECK(response.text() == "");
}

TEST_CASE("request and response go over the wire as they are, nothing added but host and length") {
  FaultServer server({{.status = 207,
                       .headers = {{"X-Two", "  a: b \t"},
                                   {"Set-Cookie", "1"},
                                   {"Set-Cookie", "2"},
                                   {"X-Empty", ""}},
                       .body = "reply"}});
  HttpRequest request = post(server.base_url() + "/v1/x?beta=true", "{\"a\":1}");
  request.headers.push_back({"X-Empty", ""});
  HttpResponse response = direct()->start(request);
  CHECK(response.status == 207);
  REQUIRE(response.header("x-two") != nullptr);
  CHECK(*response.header("x-two") == "a: b");
  CHECK(*response.header("x-empty") == "");
  CHECK(std::count_if(response.headers.begin(), response.headers.end(),
                      [](const HttpHeader& header) { return header.name == "Set-Cookie"; })
        == 2);
  CHECK(response.text() == "reply");
  CHECK(response.body->read() == "");

  const auto seen = server.request(0);
  CHECK(seen.method == "POST");
  CHECK(seen.target == "/v1/x?beta=true");
  CHECK(seen.body == "{\"a\":1}");
  CHECK(seen.header("x-api-key") == "sk-secret");
  CHECK(seen.has_header("x-empty"));
  std::set<std::string> names;
  for (const HttpHeader& header : seen.headers)
    names.insert(header.name);
  CHECK(names
        == std::set<std::string>{"Host", "content-type", "x-api-key", "X-Empty", "Content-Length"});
}

TEST_CASE("every method is sent, with or without a body") {
  FaultServer server(echo);
  const auto transport = direct();
  const std::string url = server.base_url() + "/";
  for (const char* method : {"GET", "POST", "DELETE", "PUT", "PATCH"}) {
    HttpRequest request = get(url);
    request.method = method;
    CHECK(transport->start(request).text() == std::string(method) + " / ");
    request.body = std::make_shared<const std::string>("body");
    CHECK(transport->start(request).text() == std::string(method) + " / body");
  }
  CHECK_FALSE(server.request(0).has_header("content-length"));
  CHECK(server.request(2).header("content-length") == "0");
  CHECK_FALSE(server.request(3).has_header("content-type"));
  CHECK_FALSE(server.request(4).has_header("content-length"));
  CHECK(server.requests().back().connection == 0);
}

TEST_CASE("32 MB go either way, whole, with a length or in chunks") {
  const std::string big = pattern(32U * 1024 * 1024);
  for (const std::size_t chunk : {0, 100'000}) {
    FaultServer server([&](const FaultServer::Request& request) {
      return Reply{.body = request.body, .chunk = chunk};
    });
    HttpResponse response = direct()->start(post(server.base_url(), big));
    CHECK(response.text() == big);
    CHECK(server.request(0).body == big);
  }
}

TEST_CASE("informational responses, trailers and a closed connection's end are understood") {
  FaultServer server(
      {{.raw =
            "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
       {.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Late: "
               "1\r\n\r\n"},
       {.raw = "HTTP/1.0 200 OK\r\n\r\nuntil the end"},
       {.status = 204}});
  const auto transport = direct();
  HttpResponse response = transport->start(get(server.base_url()));
  CHECK(response.status == 200);
  CHECK(response.header("x-early") == nullptr);
  CHECK(response.headers.size() == 1);
  CHECK(response.text() == "ok");

  response = transport->start(get(server.base_url()));
  CHECK(response.text() == "ok");
  CHECK(response.header("x-late") == nullptr);
  CHECK(transport->start(get(server.base_url())).text() == "until the end");
  CHECK(transport->start(get(server.base_url())).text() == "");
}

TEST_CASE("bytes are handed out as soon as they are there") {
  FaultServer server({{.body = "firstsecond", .chunk = 5, .fault = Fault::stall, .at = 5}});
  HttpResponse response = direct()->start(get(server.base_url()));
  CHECK(response.body->read() == "first");
  server.release();
  CHECK(response.text() == "second");
}

// ---- Connections

TEST_CASE("requests one after another share a connection, whichever thread sends them") {
  FaultServer server(echo);
  const auto transport = direct();
  for (int i = 0; i < 3; ++i) {
    CHECK(transport->start(get(server.base_url() + "/a")).text() == "GET /a ");
    std::jthread(
        [&] { CHECK(transport->start(get(server.base_url() + "/b")).text() == "GET /b "); });
  }
  CHECK(server.requests().size() == 6);
  for (const auto& request : server.requests())
    CHECK(request.connection == 0);
}

TEST_CASE("a connection is free when the last byte is, not when somebody asks for more") {
  FaultServer server(echo);
  const auto transport = direct();
  const HttpResponse first = transport->start(get(server.base_url()));
  CHECK(first.body->read() == "GET / ");
  (void)transport->start(get(server.base_url())).text();
  CHECK(server.request(1).connection == 0);
}

TEST_CASE("a response without a body frees its connection at once") {
  FaultServer server({{.status = 204}, {.body = "x"}});
  const auto transport = direct();
  const HttpResponse first = transport->start(get(server.base_url()));
  (void)transport->start(get(server.base_url())).text();
  CHECK(server.request(1).connection == 0);
}

TEST_CASE("exchanges at the same time have connections of their own, which then serve the next") {
  FaultServer server([](const FaultServer::Request&) {
    return Reply{.body = std::string(100'000, 'x'), .fault = Fault::stall, .at = 10};
  });
  const auto transport = direct();
  std::vector<HttpResponse> open;
  for (int i = 0; i < 3; ++i)
    open.push_back(transport->start(get(server.base_url())));
  for (HttpResponse& response : open) {
    server.release();
    (void)response;
  }
  for (HttpResponse& response : open)
    CHECK(response.text().size() == 100'000);
  open.clear();
  for (int i = 0; i < 3; ++i)
    open.push_back(transport->start(get(server.base_url())));
  std::set<int> connections;
  for (const auto& request : server.requests())
    connections.insert(request.connection);
  CHECK(connections == std::set<int>{0, 1, 2});
}

TEST_CASE("a body that is given up closes its connection, and the server notices") {
  FaultServer server(
      {{.body = "0123456789", .chunk = 5, .fault = Fault::stall, .at = 5}, {.body = "next"}});
  const auto transport = direct();
  {
    const HttpResponse response = transport->start(get(server.base_url()));
    CHECK(response.body->read() == "01234");
  }
  CHECK(server.wait_until_client_closed());
  CHECK(transport->start(get(server.base_url())).text() == "next");
  CHECK(server.request(1).connection == 1);
}

TEST_CASE("a connection that the server has closed meanwhile is replaced without an error") {
  FaultServer server({{.body = "one", .close = true}, {.body = "two"}});
  const auto transport = direct();
  CHECK(transport->start(post(server.base_url(), "{}")).text() == "one");
  CHECK(transport->start(post(server.base_url(), "{}")).text() == "two");
  CHECK(server.request(1).connection == 1);
}

TEST_CASE("a body may outlive its transport") {
  FaultServer server({{.body = "abcdef", .fault = Fault::stall, .at = 3}});
  HttpResponse response = direct()->start(get(server.base_url()));
  server.release();
  CHECK(response.text() == "abcdef");
}

TEST_CASE("eight threads send fifty requests each over eight connections at most") {
  FaultServer server(echo);
  const auto transport = direct();
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const std::string body = std::to_string(t) + "/" + std::to_string(i);
          right += transport->start(post(server.base_url(), body)).text() == "POST / " + body;
        }
      });
    }
  }
  CHECK(right == 400);
  int highest = 0;
  for (const auto& request : server.requests())
    highest = std::max(highest, request.connection);
  CHECK(highest < 8);
}

TEST_CASE("who does not read makes the server wait: little is held in memory") {
  FaultServer server({{.body = std::string(64U * 1024 * 1024, 'x'), .chunk = 60'000}});
  HttpResponse response = direct()->start(get(server.base_url()));
  const std::size_t read = response.body->read().size();
  CHECK(read < 2U * 1024 * 1024);
  std::size_t before = 0;
  do {  // until the sockets' buffers are full
    before = server.body_bytes_sent();
    std::this_thread::sleep_for(20ms);
  } while (server.body_bytes_sent() != before);
  CHECK(before < 16U * 1024 * 1024);
  CHECK(read + response.text().size() == 64U * 1024 * 1024);
}

// ---- What goes wrong

TEST_CASE("every fault has its kind, and says whether a part of the reply had come") {
  struct Case {
    Reply reply;
    Kind kind;
    bool in_body;
    bool retry_is_safe;
  };

  const std::vector<Case> cases = {
      {{.fault = Fault::no_reply}, Kind::broken, false, true},
      {{.fault = Fault::no_reply, .reset = true}, Kind::broken, false, true},
      {{.fault = Fault::cut_headers}, Kind::broken, false, false},
      {{.raw = "HTTP/1.1 100 Continue\r\n\r\n"}, Kind::broken, false, true},
      {{.body = "abcdef", .fault = Fault::cut, .at = 0}, Kind::broken, true, false},
      {{.body = "abcdef", .fault = Fault::cut, .at = 3}, Kind::broken, true, false},
      {{.body = "abcdef", .fault = Fault::cut, .at = 3, .reset = true}, Kind::broken, true, false},
      {{.body = "abcdef", .chunk = 4, .fault = Fault::cut, .at = 2}, Kind::broken, true, false},
      {{.body = "abcdef", .chunk = 3, .fault = Fault::cut, .at = 3}, Kind::broken, true, false},
      {{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"},
       Kind::broken,
       true,
       false},
      {{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n"},
       Kind::broken,
       true,
       false},
      {{.raw = "SSH-2.0-OpenSSH\r\n"}, Kind::other, false, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    FaultServer server({cases[i].reply});
    const auto transport = direct();
    HttpResponse response;
    const auto start = [&] {
      response = transport->start(post(server.base_url() + "/v1?key=sk-secret", "{}"));
    };
    const auto check = [&](const TransportError& thrown) {
      CHECK(thrown.kind == cases[i].kind);
      CHECK(thrown.retry_is_safe == cases[i].retry_is_safe);
      CHECK(contains(thrown.what(), server.base_url()));
      CHECK_FALSE(contains(thrown.what(), "sk-secret"));
    };
    if (!cases[i].in_body) {
      check(failure(start));
      continue;
    }
    start();
    CHECK(response.status == 200);
    check(failure([&] { (void)response.text(); }));
    check(failure([&] { (void)response.body->read(); }));  // once broken, always broken
  }
}

TEST_CASE("what had come before a cut is handed out first") {
  FaultServer server({{.body = "abcdef", .fault = Fault::cut, .at = 3},
                      {.body = "abcdef", .chunk = 6, .fault = Fault::cut, .at = 3}});
  const auto transport = direct();
  for (int i = 0; i < 2; ++i) {
    const HttpResponse response = transport->start(get(server.base_url()));
    CHECK(response.body->read() == "abc");
    CHECK(failure([&] { (void)response.body->read(); }).kind == Kind::broken);
  }
}

TEST_CASE("nobody listens: connect; no such name: resolve; no TLS there: tls") {
  int port = 0;
  { port = FaultServer(std::vector<Reply>{}).port(); }
  const TransportError refused =
      failure([&] { (void)direct()->start(get("http://127.0.0.1:" + std::to_string(port))); });
  CHECK(refused.kind == Kind::connect);
  CHECK(refused.retry_is_safe);
  CHECK(contains(refused.what(), "127.0.0.1:" + std::to_string(port)));

  const TransportError unknown =
      failure([] { (void)direct()->start(get("https://nowhere.invalid/v1?key=sk-secret")); });
  CHECK(unknown.kind == Kind::resolve);
  CHECK(unknown.retry_is_safe);
  CHECK(contains(unknown.what(), "https://nowhere.invalid:443"));
  CHECK_FALSE(contains(unknown.what(), "sk-secret"));

  FaultServer server({{.raw = "HTTP/1.1 400 Bad\r\n\r\n"}});
  const TransportError plain = failure(
      [&] { (void)direct()->start(get("https://127.0.0.1:" + std::to_string(server.port()))); });
  CHECK(plain.kind == Kind::tls);
  const TransportError no_file = failure([&] {
    (void)curl_transport({.proxy = "", .ca_file = "/nowhere/ca.pem"})
        ->start(get("https://127.0.0.1:" + std::to_string(server.port())));
  });
  CHECK(no_file.kind == Kind::tls);
}

TEST_CASE("silence ends with the timeout, before the headers and between bytes") {
  FaultServer server(
      {{.fault = Fault::silence}, {.body = "abcdef", .fault = Fault::stall, .at = 3}});
  const auto transport = direct();
  HttpRequest request = get(server.base_url() + "/?key=sk-secret");
  request.timeout = 100ms;
  auto start = Clock::now();
  const TransportError before = failure([&] { (void)transport->start(request); });
  CHECK(before.kind == Kind::timeout);
  CHECK(before.retry_is_safe);
  CHECK(std::string(before.what()) == server.base_url() + ": no response within 100 ms");
  CHECK(Clock::now() - start >= 100ms);
  CHECK(Clock::now() - start < 1s);
  CHECK(server.wait_until_client_closed(0));

  const HttpResponse response = transport->start(request);
  CHECK(response.body->read() == "abc");
  start = Clock::now();
  const TransportError between = failure([&] { (void)response.body->read(); });
  CHECK(between.kind == Kind::timeout);
  CHECK_FALSE(between.retry_is_safe);
  CHECK(Clock::now() - start >= 100ms);
  CHECK(Clock::now() - start < 1s);
  CHECK(server.wait_until_client_closed(1));
}

TEST_CASE("the timeout counts from the last bytes on: a body may take longer than it") {
  FaultServer server({{.body = "abc", .chunk = 1, .fault = Fault::stall, .at = 1}});
  HttpRequest request = get(server.base_url());
  request.timeout = 150ms;
  const auto start = Clock::now();
  const HttpResponse response = direct()->start(request);
  CHECK(response.body->read() == "a");
  std::this_thread::sleep_for(160ms);  // the reader's own time does not count
  server.release();
  std::string rest;
  for (std::string_view bytes = response.body->read(); !bytes.empty();
       bytes = response.body->read())
    rest += bytes;
  CHECK(rest == "bc");
  CHECK(Clock::now() - start > 150ms);
}

TEST_CASE("another thread's stop ends the wait for headers or for bytes at once") {
  FaultServer server(
      {{.fault = Fault::silence}, {.body = "abcdef", .fault = Fault::stall, .at = 3}});
  const auto transport = direct();
  for (const bool in_body : {false, true}) {
    std::stop_source source;
    HttpRequest request = get(server.base_url());
    request.stop = source.get_token();
    HttpResponse response;
    if (in_body) {
      response = transport->start(request);
      CHECK(response.body->read() == "abc");
    }
    Clock::time_point stopped;
    std::jthread stopper([&] {
      server.wait_for_requests(in_body ? 2 : 1);
      std::this_thread::sleep_for(20ms);
      stopped = Clock::now();
      source.request_stop();
    });
    const TransportError error = failure([&] {
      if (in_body) {
        (void)response.body->read();
      } else {
        (void)transport->start(request);
      }
    });
    const auto ended = Clock::now();
    stopper.join();
    CHECK(error.kind == Kind::cancelled);
    CHECK_FALSE(error.retry_is_safe);
    CHECK(ended - stopped < 1s);
    CHECK(server.wait_until_client_closed(in_body ? 1 : 0));
  }
}

TEST_CASE("a stop before the start sends nothing; one after the end changes nothing") {
  FaultServer server(echo);
  const auto transport = direct();
  std::stop_source source;
  HttpRequest request = get(server.base_url());
  request.stop = source.get_token();
  const HttpResponse response = transport->start(request);
  CHECK(response.body->read() == "GET / ");
  source.request_stop();
  CHECK(response.body->read() == "");
  CHECK(failure([&] { (void)transport->start(request); }).kind == Kind::cancelled);
  CHECK(server.requests().size() == 1);
}

TEST_CASE("what is no HTTP is refused before anything is sent, and no value is quoted") {
  FaultServer server(echo);
  const auto transport = direct();
  const auto refusal = [&](HttpRequest request) {
    const TransportError error = failure([&] { (void)transport->start(request); });
    CHECK(error.kind == Kind::other);
    CHECK_FALSE(error.retry_is_safe);
    CHECK_FALSE(contains(error.what(), "sk-secret"));
    return std::string(error.what());
  };
  for (const char* value : {"sk-secret\n", "sk-secret\r\nx-admin: 1", "\rsk-secret"}) {
    HttpRequest request = get(server.base_url());
    request.headers = {{"x-api-key", value}};
    CHECK(contains(refusal(request), "header x-api-key"));
    request.headers = {{value, "1"}};
    refusal(request);
    request = get(server.base_url());
    request.method = value;
    refusal(request);
  }
  HttpRequest request = get(server.base_url());
  request.headers = {{"x-api-key", std::string("sk-secret\0", 10)}};
  refusal(request);
  request.headers = {{"", "1"}};
  refusal(request);
  for (const char* url : {"", "sk-secret", "ftp://127.0.0.1/sk-secret", "file:///sk-secret",
                          "http://a b/sk-secret", "http://127.0.0.1:99999/sk-secret"}) {
    CAPTURE(url);
    refusal(get(url));
  }
  CHECK(server.requests().empty());
}

TEST_CASE("headers without end are no reason to fill the memory") {
  std::string head = "HTTP/1.1 200 OK\r\n";
  while (head.size() < 2U * 1024 * 1024)
    head += "X-More: " + std::string(1000, 'x') + "\r\n";
  FaultServer server({{.raw = head}});
  const TransportError error = failure([&] { (void)direct()->start(get(server.base_url())); });
  CHECK(contains(error.what(), "headers"));
}

// ---- Proxies and redirects

TEST_CASE("a proxy is asked for the whole URL, and is asked to open a tunnel without the key") {
  FaultServer proxy({{.body = "from the proxy"}, {.status = 403}});
  const auto transport = curl_transport({.proxy = proxy.base_url()});
  CHECK(transport->start(post("http://api.invalid/v1/messages", "{}")).text() == "from the proxy");
  CHECK(proxy.request(0).method == "POST");
  CHECK(proxy.request(0).target == "http://api.invalid/v1/messages");
  CHECK(proxy.request(0).header("host") == "api.invalid");

  const TransportError error =
      failure([&] { (void)transport->start(post("https://api.invalid/v1/messages", "{}")); });
  CHECK(error.kind == Kind::proxy);
  CHECK(error.retry_is_safe);
  CHECK(proxy.request(1).method == "CONNECT");
  CHECK(proxy.request(1).target == "api.invalid:443");
  CHECK_FALSE(proxy.request(1).has_header("x-api-key"));
}

TEST_CASE("no message tells a proxy's password") {
  for (const char* proxy :
       {"http://user:sk-secret@proxy.invalid:1", "gopher://user:sk-secret@127.0.0.1",
        "http://user:sk-secret@127.0.0.1:1", "http://user:sk-secret@[::1"}) {
    CAPTURE(proxy);
    const TransportError error =
        failure([&] { (void)curl_transport({.proxy = proxy})->start(get("http://127.0.0.1:1")); });
    CHECK_FALSE(contains(error.what(), "sk-secret"));
  }
  CHECK(failure([] {
          (void)curl_transport({.proxy = "http://proxy.invalid"})->start(get("http://127.0.0.1:1"));
        }).kind
        == Kind::proxy);
}

TEST_CASE("a redirect is followed: 307 and 308 repeat the request, the others ask with GET") {
  for (const int status : {301, 302, 303, 307, 308}) {
    CAPTURE(status);
    FaultServer server([status](const FaultServer::Request& request) {
      if (request.target == "/old/a?b")
        return Reply{.status = status, .headers = {{"Location", "../new?c=d"}}, .body = "moved"};
      return echo(request);
    });
    const bool repeated = status >= 307;
    HttpResponse response = direct()->start(post(server.base_url() + "/old/a?b", "{}"));
    CHECK(response.status == 200);
    CHECK(response.header("location") == nullptr);
    CHECK(response.text() == (repeated ? "POST /new?c=d {}" : "GET /new?c=d "));
    CHECK(server.request(1).header("x-api-key") == "sk-secret");  // the same origin
    CHECK(server.request(1).has_header("content-type") == repeated);
  }
}

TEST_CASE("a redirect to another origin does not take keys along") {
  FaultServer other(echo);
  FaultServer server([&](const FaultServer::Request&) {
    return Reply{.status = 307, .headers = {{"Location", other.base_url() + "/there"}}};
  });
  HttpRequest request = post(server.base_url(), "{}");
  request.headers = {{"X-API-Key", "1"},     {"authorization", "2"}, {"cookie", "3"},
                     {"x-gateway-key", "4"}, {"Content-Type", "5"},  {"anthropic-version", "6"},
                     {"User-Agent", "7"}};
  CHECK(direct()->start(request).text() == "POST /there {}");
  CHECK(server.request(0).header("x-api-key") == "1");
  const auto seen = other.request(0);
  for (const char* name : {"x-api-key", "authorization", "cookie", "x-gateway-key"}) {
    CAPTURE(name);
    CHECK_FALSE(seen.has_header(name));
  }
  CHECK(seen.header("content-type") == "5");
  CHECK(seen.header("anthropic-version") == "6");
  CHECK(seen.header("user-agent") == "7");
}

TEST_CASE("redirects end: after ten of them, at a foreign scheme, without a target") {
  FaultServer circle([](const FaultServer::Request&) {
    return Reply{.status = 302, .headers = {{"Location", "/"}}};
  });
  const TransportError error = failure([&] { (void)direct()->start(get(circle.base_url())); });
  CHECK(error.kind == Kind::other);
  CHECK(circle.requests().size() == 11);

  FaultServer server({{.status = 302, .headers = {{"Location", "file:///etc/passwd"}}},
                      {.status = 302, .body = "where to?"},
                      {.status = 304}});
  const auto transport = direct();
  CHECK(failure([&] { (void)transport->start(get(server.base_url())); }).kind == Kind::other);
  CHECK(transport->start(get(server.base_url())).text() == "where to?");
  CHECK(transport->start(get(server.base_url())).status == 304);
}

TEST_CASE("all redirects together have one timeout") {
  FaultServer server([](const FaultServer::Request&) {
    return Reply{.status = 302, .headers = {{"Location", "/"}}, .delay = 40ms};
  });
  HttpRequest request = get(server.base_url());
  request.timeout = 100ms;
  CHECK(failure([&] { (void)direct()->start(request); }).kind == Kind::timeout);
}

}  // namespace
}  // namespace incipit
