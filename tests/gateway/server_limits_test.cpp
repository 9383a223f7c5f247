// Each limit of the HTTP server, exceeded.
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using std::chrono::milliseconds;

namespace {

// The provider's envelope, with the id that the header names, and the type.
void check_envelope(const Answer& answer, std::string_view type) {
  const std::string id = answer.header("request-id");
  CHECK(id.starts_with("req_"));
  CHECK(answer.body.starts_with(R"({"type":"error","error":{"type":")" + std::string(type) + '"'));
  CHECK(answer.body.find("\"request_id\":\"" + id + '"') != std::string::npos);
  CHECK(answer.header("content-type") == "application/json");
}

GatewaySetup short_times() {
  GatewaySetup setup;
  setup.server.head_timeout = milliseconds(60);
  setup.server.body_timeout = milliseconds(60);
  setup.server.idle_timeout = milliseconds(60);
  setup.server.write_timeout = milliseconds(100);
  setup.server.linger = milliseconds(200);
  return setup;
}

}  // namespace

TEST_CASE("too many header lines are answered 431 in the provider's envelope") {
  const LoopbackGateway gateway;
  std::string headers;
  for (int i = 0; i < 101; ++i)
    headers += "x-line-" + std::to_string(i) + ": 1\r\n";
  Client client(gateway);
  client.send(get("/health", headers));
  const Answer answer = client.answer();
  CHECK(answer.status == 431);
  check_envelope(answer, "invalid_request_error");
  CHECK(answer.body.find("100 request headers") != std::string::npos);
  CHECK(answer.header("x-should-retry") == "false");
  CHECK(client.is_closed());
}

TEST_CASE("a head larger than its limit is answered 431") {
  const LoopbackGateway gateway;
  Client client(gateway);
  client.send(get("/health", "x-long: " + std::string(70'000, 'a') + "\r\n"));
  const Answer answer = client.answer();
  CHECK(answer.status == 431);
  check_envelope(answer, "invalid_request_error");
  CHECK(answer.body.find("65536 bytes") != std::string::npos);
}

TEST_CASE("a head just within its limit is served") {
  const LoopbackGateway gateway;
  CHECK(ask(gateway, get("/health", "x-long: " + std::string(64'000, 'a') + "\r\n")).status == 200);
}

TEST_CASE("a body whose announced length is over the limit is refused before it is sent") {
  GatewaySetup setup;
  setup.server.body_limits.message = 1000;
  const LoopbackGateway gateway(setup);
  Client client(gateway);
  client.send(
      "POST /v1/messages HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: "
      "1001\r\n\r\n");
  const Answer answer = client.answer();
  CHECK(answer.status == 413);
  check_envelope(answer, "request_too_large");
  CHECK(answer.header("x-should-retry") == "false");
}

TEST_CASE("a chunked body is refused when it grows over the limit") {
  GatewaySetup setup;
  setup.server.body_limits.message = 1000;
  const LoopbackGateway gateway(setup);
  Client client(gateway);
  client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i)
    client.send("190\r\n" + std::string(400, 'x') + "\r\n");
  CHECK(client.answer().status == 413);
  CHECK(client.is_closed());
}

TEST_CASE("a body exactly at the limit is read") {
  GatewaySetup setup;
  setup.server.body_limits.message = 1000;
  const LoopbackGateway gateway(setup);
  const Answer answer = ask(gateway, post("/v1/messages", std::string(1000, 'x')));
  CHECK(answer.status == 400);
  CHECK(answer.body.find("not valid JSON") != std::string::npos);
}

TEST_CASE("a client that never says a word is closed") {
  const LoopbackGateway gateway(short_times());
  Client client(gateway);
  CHECK(client.is_closed());
}

TEST_CASE("a head that comes too slowly is answered 408 and closed") {
  const LoopbackGateway gateway(short_times());
  Client client(gateway);
  client.send("GET /health HT");
  const Answer answer = client.answer();
  CHECK(answer.status == 408);
  check_envelope(answer, "timeout_error");
  CHECK(answer.header("x-should-retry").empty());
  CHECK(client.is_closed());
}

TEST_CASE("a body that stops half-way is answered 408 and closed") {
  const LoopbackGateway gateway(short_times());
  Client client(gateway);
  client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\n{\"model\":");
  const Answer answer = client.answer();
  CHECK(answer.status == 408);
  check_envelope(answer, "timeout_error");
  CHECK(client.is_closed());
}

TEST_CASE("a body that trickles for longer than a whole body may take is answered 408") {
  GatewaySetup setup = short_times();
  setup.server.body_timeout = milliseconds(10'000);
  setup.server.body_total = milliseconds(80);
  const LoopbackGateway gateway(setup);
  Client client(gateway);
  client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\n{\"model\":");
  CHECK(client.answer().status == 408);
}

TEST_CASE("a kept-alive connection that stays silent is closed without a word") {
  const LoopbackGateway gateway(short_times());
  Client client(gateway);
  client.send(get("/health"));
  CHECK(client.answer().status == 200);
  CHECK(client.is_closed());
}

TEST_CASE("what is not HTTP is answered 400 and closed") {
  const LoopbackGateway gateway;
  for (const std::string_view bytes : {
           "hello there\r\n\r\n",
           "GET /health HTTP/9.9\r\nhost: a\r\n\r\n",
           "GET /health HTTP/1.1\r\nno colon\r\n\r\n",
           "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: many\r\n\r\n",
           "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: "
           "6\r\n\r\n",
           "POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
           "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n"
           "transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
           "GET health HTTP/1.1\r\nhost: a\r\n\r\n",
           "GET /health HTTP/1.1\r\n\r\n",
           "GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
       }) {
    CAPTURE(bytes);
    Client client(gateway);
    client.send(bytes);
    const Answer answer = client.answer();
    CHECK(answer.status == 400);
    check_envelope(answer, "invalid_request_error");
    CHECK(answer.body.find("malformed HTTP request") != std::string::npos);
    CHECK(client.is_closed());
  }
}

TEST_CASE("an expectation other than 100-continue is answered 417") {
  const LoopbackGateway gateway;
  CHECK(ask(gateway, post("/v1/messages", "{}", "expect: a miracle\r\n")).status == 417);
}

TEST_CASE("one connection too many is answered 529 with retry-after, and its place is free again") {
  GatewaySetup setup;
  setup.server.max_connections = 2;
  setup.server.linger = milliseconds(50);
  LoopbackGateway gateway(setup);
  Client first(gateway);
  Client second(gateway);
  first.send(get("/health"));
  second.send(get("/health"));
  CHECK(first.answer().status == 200);
  CHECK(second.answer().status == 200);
  Client third(gateway);
  const Answer refused = third.answer();
  CHECK(refused.status == 529);
  check_envelope(refused, "overloaded_error");
  CHECK(refused.header("retry-after") == "2");
  CHECK(third.is_closed());
  third.close();
  first.close();
  CHECK(eventually([&] { return gateway.server().connections() == 1; }));
  CHECK(ask(gateway, get("/health")).status == 200);
}

TEST_CASE("a reader that takes nothing any more is dropped") {
  LoopbackGateway gateway(short_times());
  Client client(gateway, Client::Kind::narrow);
  // Answers of some 20 kB each pile up until no buffer takes more.
  std::string requests;
  for (int i = 0; i < 600; ++i)
    requests += get("/v1/models?limit=100");
  client.send(requests);
  CHECK(eventually([&] { return gateway.server().connections() == 0; }));
}

TEST_CASE("a client that hangs up in the middle of its request does no harm") {
  LoopbackGateway gateway;
  for (const std::string_view part :
       {"", "G", "GET /health HTTP/1.1\r\nho",
        "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12",
        "POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"}) {
    Client client(gateway);
    client.send(part);
  }
  CHECK(eventually([&] { return gateway.server().connections() == 0; }));
  CHECK(ask(gateway, get("/health")).status == 200);
}

TEST_CASE("a server that may only be reached from this machine refuses another address") {
  ServerOptions options;
  options.port = 0;
  options.host = "0.0.0.0";
  CHECK_THROWS_WITH_AS(Server{options}, doctest::Contains("--keys"), std::runtime_error);
  options.loopback_only = false;
  CHECK_NOTHROW(Server{options});
}

TEST_CASE("a port in use is named") {
  LoopbackGateway gateway;
  ServerOptions options;
  options.port = gateway.port();
  const std::string expected = "port " + std::to_string(gateway.port());
  CHECK_THROWS_WITH_AS(Server{options}, doctest::Contains(expected.c_str()), std::runtime_error);
  CHECK_THROWS_WITH_AS(Server{options}, doctest::Contains("in use"), std::runtime_error);
}
