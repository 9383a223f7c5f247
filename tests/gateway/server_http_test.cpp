// How requests are told apart and answers are framed.
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;

TEST_CASE("one connection carries many requests") {
  const LoopbackGateway gateway;
  Client client(gateway);
  std::string last_id;
  for (int i = 0; i < 5; ++i) {
    client.send(
        post("/v1/messages/count_tokens",
             R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"Hi"}]})"));
    const Answer answer = client.answer();
    CHECK(answer.status == 200);
    CHECK(answer.header("connection").empty());
    CHECK(answer.header("request-id") != last_id);
    last_id = answer.header("request-id");
  }
}

TEST_CASE("requests sent without waiting are answered in their order") {
  const LoopbackGateway gateway;
  Client client(gateway);
  client.send(get("/health") + post("/v1/messages", message("Hi", 3, true)) + get("/v1/nothing")
              + post("/v1/messages", message("Hi", 2, false)) + get("/health"));
  CHECK(client.answer().body == R"({"status":"ok"})");
  const Answer stream = client.answer();
  CHECK(stream.body.find("event: message_stop") != std::string::npos);
  CHECK(client.answer().status == 404);
  CHECK(number_in(client.answer().body, "output_tokens") == 2);
  CHECK(client.answer().body == R"({"status":"ok"})");
}

TEST_CASE("a pipelined body larger than the read-ahead is kept whole") {
  const LoopbackGateway gateway;
  Client client(gateway);
  const std::string spaces(300'000, ' ');
  client.send(post("/v1/messages", message("Hi", 20, false)));
  client.send(post("/v1/messages", spaces + message("Hi", 1, false)));
  CHECK(client.answer().status == 200);
  CHECK(client.answer().status == 200);
}

TEST_CASE("a body in chunks, arriving byte by byte, is the same body") {
  const LoopbackGateway gateway;
  const std::string body = message("Hi", 1, false);
  std::string bytes =
      "POST /v1/messages HTTP/1.1\r\nhost: a\r\nanthropic-version: 2023-06-01\r\n"
      "transfer-encoding: chunked\r\n\r\n";
  for (const char c : body)
    bytes += std::string("1\r\n") + c + "\r\n";
  bytes += "0\r\n\r\n";
  Client client(gateway);
  for (std::size_t i = 0; i < bytes.size(); i += 7)
    client.send(bytes.substr(i, 7));
  CHECK(client.answer().status == 200);
}

TEST_CASE("a client that waits for 100 Continue gets it, then its answer") {
  const LoopbackGateway gateway;
  const std::string body = message("Hi", 1, false);
  Client client(gateway);
  client.send(
      "POST /v1/messages HTTP/1.1\r\nhost: a\r\nanthropic-version: 2023-06-01\r\n"
      "Expect: 100-Continue\r\ncontent-length: "
      + std::to_string(body.size()) + "\r\n\r\n");
  CHECK(client.answer().status == 100);
  client.send(body);
  CHECK(client.answer().status == 200);
}

TEST_CASE("HEAD has the head of GET and no body") {
  const LoopbackGateway gateway;
  Client client(gateway);
  client.send("HEAD /health HTTP/1.1\r\nhost: a\r\n\r\nGET /health HTTP/1.1\r\nhost: a\r\n\r\n");
  CHECK(client.wait_for("\r\n\r\nHTTP/1.1 200"));
  const std::string head = client.receive();
  CHECK(head.find("content-length: 15\r\n") != std::string::npos);
}

TEST_CASE("OPTIONS names the verbs of a path") {
  const LoopbackGateway gateway;
  const Answer answer = ask(gateway, "OPTIONS /v1/messages HTTP/1.1\r\nhost: a\r\n\r\n");
  CHECK(answer.status == 204);
  CHECK(answer.header("allow") == "POST, OPTIONS");
  CHECK(answer.header("content-length").empty());
}

TEST_CASE("a client that asks to close is closed after its answer") {
  const LoopbackGateway gateway;
  Client client(gateway);
  client.send(get("/health", "connection: close\r\n"));
  const Answer answer = client.answer();
  CHECK(answer.status == 200);
  CHECK(answer.header("connection") == "close");
  CHECK(client.is_closed());
}

TEST_CASE("an HTTP/1.0 client gets a stream without chunks that ends with the connection") {
  const LoopbackGateway gateway;
  const std::string body = message("Hi", 2, true);
  const Answer answer =
      ask(gateway, "POST /v1/messages HTTP/1.0\r\nanthropic-version: 2023-06-01\r\ncontent-length: "
                       + std::to_string(body.size()) + "\r\n\r\n" + body);
  CHECK(answer.status == 200);
  CHECK(answer.header("transfer-encoding").empty());
  CHECK(answer.body.starts_with("event: message_start\n"));
  CHECK(answer.body.ends_with("\n\n"));
}

TEST_CASE("a target that a proxy wrote in full is its path") {
  const LoopbackGateway gateway;
  CHECK(ask(gateway, "GET http://localhost:8787/health HTTP/1.1\r\nhost: a\r\n\r\n").status == 200);
}

TEST_CASE("percent-decoding keeps what is no escape") {
  CHECK(percent_decoded("a%20b+c") == "a b+c");
  CHECK(percent_decoded("lifecycle%5B%5d") == "lifecycle[]");
  CHECK(percent_decoded("100%") == "100%");
  CHECK(percent_decoded("%zz%4") == "%zz%4");
}
