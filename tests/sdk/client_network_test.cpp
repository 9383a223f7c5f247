// The client over real sockets, against a server that misbehaves.
#include "incipit/client.h"
#include "tests/support/fake_transport.h"
#include "tests/support/fault_server.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

namespace incipit {
namespace {

using std::chrono::milliseconds;
using testing::Fault;
using testing::FaultServer;
using testing::Reply;
using Kind = TransportError::Kind;

constexpr const char* message =
    R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}})";

const std::string stream_start =
    "event: message_start\n"
    R"(data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}})"
    "\n\n";

const std::string stream_end =
    "event: message_delta\n"
    R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"output_tokens":1}})"
    "\n\nevent: message_stop\n"
    R"(data: {"type":"message_stop"})"
    "\n\n";

MessageRequest prompt() {
  MessageRequest request;
  request.model = "m";
  request.max_tokens = 100;
  request.messages.push_back({MessageRole::user, {TextBlock{"Hello"}}});
  return request;
}

struct Fixture {
  testing::PaperTime time;

  Client client(const FaultServer& server, std::optional<milliseconds> timeout = std::nullopt) {
    return Client({.api_key = "key",
                   .base_url = server.base_url(),
                   .timeout = timeout,
                   .curl = {.proxy = ""},
                   .waiting = time.waiting()});
  }
};

template <class Action>
std::optional<Kind> failure(Action action) {
  try {
    action();
  } catch (const TransportError& error) {
    return error.kind;
  }
  return std::nullopt;
}

TEST_CASE_FIXTURE(Fixture, "over the network: a message is sent and its reply read") {
  FaultServer server({testing::json_reply(message)});
  CHECK(client(server).send(prompt()).text() == "Hi");
  const auto request = server.request(0);
  CHECK(request.method == "POST");
  CHECK(request.target == "/v1/messages");
  CHECK(request.body == to_json(prompt()));
  CHECK(request.header("x-api-key") == "key");
  CHECK(request.header("content-type") == "application/json");
  CHECK(request.header("anthropic-version") == "2026-10-21");
}

TEST_CASE_FIXTURE(Fixture, "over the network: 529 with retry-after is waited for and tried again") {
  Reply overloaded = testing::json_reply("{}", 529);
  overloaded.headers.push_back({"retry-after", "3"});
  FaultServer server({overloaded, testing::json_reply(message)});
  CHECK(client(server).send(prompt()).text() == "Hi");
  CHECK(time.waits == std::vector{3000});
  CHECK(server.request(1).header("x-stainless-retry-count") == "1");
  CHECK(server.request(1).connection == server.request(0).connection);  // the error body was read
}

TEST_CASE_FIXTURE(Fixture,
                  "over the network: a connection that is cut before the headers is tried again") {
  FaultServer server({Reply{.fault = Fault::no_reply}, testing::json_reply(message)});
  CHECK(client(server).send(prompt()).text() == "Hi");
  CHECK(time.waits == std::vector{500});
}

TEST_CASE_FIXTURE(Fixture,
                  "over the network: nobody listening is a TransportError after three attempts") {
  std::string address;
  {
    const FaultServer server(std::vector<Reply>{});
    address = server.base_url();
  }
  const Client lonely(
      {.api_key = "key", .base_url = address, .curl = {.proxy = ""}, .waiting = time.waiting()});
  CHECK(failure([&] { (void)lonely.send(prompt()); }) == Kind::connect);
  CHECK(time.waits.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "over the network: silence is a timeout, and tried again (W-45)") {
  FaultServer server({Reply{.fault = Fault::silence}, testing::json_reply(message)});
  CHECK(client(server, milliseconds(100)).send(prompt()).text() == "Hi");
  CHECK(time.waits == std::vector{500});
  server.release();
}

TEST_CASE_FIXTURE(
    Fixture, "over the network: a reply that is cut is a TransportError, and not tried again") {
  Reply reply = testing::json_reply(message);
  reply.fault = Fault::cut;
  reply.at = 40;
  FaultServer server({reply, testing::json_reply(message)});
  CHECK(failure([&] { (void)client(server).send(prompt()); }) == Kind::broken);
  CHECK(server.requests().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "over the network: a stream is read, and its connection used again") {
  FaultServer server({testing::sse_reply(stream_start + stream_end), testing::json_reply(message)});
  const Client talker = client(server);
  MessageStream stream = talker.stream(prompt());
  CHECK(stream.message().id == "msg_1");
  CHECK(talker.send(prompt()).text() == "Hi");
  CHECK(server.request(0).body.find("\"stream\":true") != std::string::npos);
  CHECK(server.request(1).connection == server.request(0).connection);
}

TEST_CASE_FIXTURE(
    Fixture,
    "over the network: a stream that is cut is a TransportError, and not tried again (W-43)") {
  Reply reply = testing::sse_reply(stream_start + stream_end);
  reply.fault = Fault::cut;
  reply.at = stream_start.size() + 20;
  FaultServer server({reply, testing::sse_reply(stream_start + stream_end)});
  MessageStream stream = client(server).stream(prompt());
  CHECK(stream.next());
  CHECK(failure([&] { (void)stream.next(); }) == Kind::broken);
  CHECK_FALSE(stream.next());
  CHECK(server.requests().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "over the network: a stream that falls silent is a timeout") {
  Reply reply = testing::sse_reply(stream_start + stream_end);
  reply.fault = Fault::stall;
  reply.at = stream_start.size();
  FaultServer server({reply});
  MessageStream stream = client(server, milliseconds(100)).stream(prompt());
  CHECK(stream.next());
  CHECK(failure([&] { (void)stream.next(); }) == Kind::timeout);
  server.release();
}

TEST_CASE_FIXTURE(Fixture, "over the network: the server sees that a stream was abandoned") {
  Reply reply = testing::sse_reply(stream_start + stream_end);
  reply.fault = Fault::stall;
  reply.at = stream_start.size();
  FaultServer server({reply});
  const Client talker = client(server);
  {
    MessageStream stream = talker.stream(prompt());
    CHECK(stream.next());
  }
  CHECK(server.wait_until_client_closed());
  server.release();
}

TEST_CASE_FIXTURE(
    Fixture,
    "over the network: cancelling ends a stream, a wait for headers, and a backoff at once") {
  std::stop_source stop;
  const RequestOptions options{.stop = stop.get_token()};
  const auto cancel_soon = [&] {
    return std::jthread([&] {
      std::this_thread::sleep_for(milliseconds(20));
      stop.request_stop();
    });
  };
  const auto start = std::chrono::steady_clock::now();
  SUBCASE("stream") {
    Reply reply = testing::sse_reply(stream_start + stream_end);
    reply.fault = Fault::stall;
    reply.at = stream_start.size();
    FaultServer server({reply});
    MessageStream stream = client(server).stream(prompt(), options);
    CHECK(stream.next());
    const std::jthread canceller = cancel_soon();
    CHECK(failure([&] { (void)stream.next(); }) == Kind::cancelled);
    CHECK(server.wait_until_client_closed());
    server.release();
  }
  SUBCASE("headers") {
    FaultServer server({Reply{.fault = Fault::silence}});
    const std::jthread canceller = cancel_soon();
    CHECK(failure([&] { (void)client(server).send(prompt(), options); }) == Kind::cancelled);
    server.release();
  }
  SUBCASE("backoff") {
    Reply overloaded = testing::json_reply("{}", 529);
    overloaded.headers.push_back({"retry-after", "60"});
    FaultServer server({overloaded});
    const Client patient({.api_key = "key", .base_url = server.base_url(), .curl = {.proxy = ""}});
    const std::jthread canceller = cancel_soon();
    CHECK(failure([&] { (void)patient.send(prompt(), options); }) == Kind::cancelled);
    CHECK(server.requests().size() == 1);
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE_FIXTURE(Fixture, "over the network: results of a batch come line by line") {
  const std::string line = R"({"custom_id":"a","result":{"type":"canceled"}})";
  Reply reply{
      .body = line + "\n" + line + "\n", .chunk = 10, .fault = Fault::stall, .at = line.size() + 1};
  FaultServer server({reply});
  MessageBatch batch;
  batch.results_url = server.base_url() + "/v1/messages/batches/b/results";
  const Client reader = client(server);
  Sequence<BatchResult> results = reader.batches().results(batch);
  CHECK(results.next()->custom_id == "a");  // while the second line has not been sent
  server.release();
  CHECK(results.next()->custom_id == "a");
  CHECK_FALSE(results.next());
}

}  // namespace
}  // namespace incipit
