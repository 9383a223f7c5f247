// Many clients, clients that leave, clients that do not read, and the end of the server.
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

#include <thread>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using std::chrono::milliseconds;

namespace {

// Steps of few rows, so that a long prompt takes many of them.
GatewaySetup small_steps() {
  GatewaySetup setup;
  setup.context = 32'000;
  setup.engine.kv_memory = 0;
  setup.engine.max_running = 8;
  setup.engine.token_budget = 16;
  return setup;
}

bool is_free(const EngineStats& stats) {
  return stats.running == 0 && stats.waiting == 0 && stats.blocks_in_use == 0;
}

}  // namespace

TEST_CASE("a client that leaves during prefill frees its work") {
  LoopbackGateway gateway(small_steps());
  {
    Client client(gateway);
    client.send(post("/v1/messages", message(std::string(25'000, 'x'), 10, true)));
    CHECK(eventually([&] { return gateway.engine().stats().steps > 5; }));
    CHECK(gateway.engine().stats().running == 1);
  }
  CHECK(eventually([&] { return is_free(gateway.engine().stats()); }));
  const EngineStats stats = gateway.engine().stats();
  CHECK(stats.cancelled == 1);
  CHECK(stats.steps < 25'000 / 16);  // it was not computed to its end
  REQUIRE(eventually([&] { return gateway.log_lines().size() == 1; }));
  CHECK(number_in(gateway.log_lines().at(0), "status") == 499);
}

TEST_CASE("a client that leaves in the middle of a whole answer frees its work") {
  LoopbackGateway gateway(small_steps());
  {
    Client client(gateway);
    client.send(post("/v1/messages", message("Hi", 30'000, false)));
    CHECK(eventually([&] { return gateway.engine().stats().output_tokens > 20; }));
  }
  CHECK(eventually([&] { return is_free(gateway.engine().stats()); }));
  CHECK(gateway.engine().stats().cancelled == 1);
}

TEST_CASE("a client that leaves during a stream frees its work") {
  LoopbackGateway gateway(small_steps());
  {
    Client client(gateway);
    client.send(post("/v1/messages", message("Hi", 30'000, true)));
    CHECK(client.wait_for("content_block_delta"));
  }
  CHECK(eventually([&] { return is_free(gateway.engine().stats()); }));
  CHECK(gateway.engine().stats().cancelled == 1);
  CHECK(eventually([&] { return gateway.server().connections() == 0; }));
}

TEST_CASE("a request beyond the queue is answered 529 with retry-after, and later served") {
  GatewaySetup setup = small_steps();
  setup.engine.max_running = 1;
  setup.engine.max_queue = 1;
  LoopbackGateway gateway(setup);
  Client running(gateway);
  running.send(post("/v1/messages", message("Hi", 30'000, true)));
  CHECK(running.wait_for("content_block_delta"));
  Client waiting(gateway);
  waiting.send(post("/v1/messages", message("Hi", 2, false)));
  CHECK(eventually([&] { return gateway.engine().stats().waiting == 1; }));

  const Answer refused = ask(gateway, post("/v1/messages", message("Hi", 2, false)));
  CHECK(refused.status == 529);
  CHECK(refused.body.find("\"type\":\"overloaded_error\"") != std::string::npos);
  CHECK(refused.header("retry-after") == "2");
  CHECK(refused.header("x-should-retry").empty());
  CHECK(ask(gateway, get("/health")).status == 200);

  running.close();
  CHECK(waiting.answer().status == 200);
  CHECK(ask(gateway, post("/v1/messages", message("Hi", 2, false))).status == 200);
}

TEST_CASE("a request that takes longer than allowed is answered 504 and frees its work") {
  GatewaySetup setup = small_steps();
  setup.request_timeout = milliseconds(50);
  LoopbackGateway gateway(setup);
  const Answer whole = ask(gateway, post("/v1/messages", message("Hi", 31'000, false)));
  CHECK(whole.status == 504);
  CHECK(whole.body.find("\"type\":\"timeout_error\"") != std::string::npos);
  CHECK(eventually([&] { return is_free(gateway.engine().stats()); }));

  const Answer stream = ask(gateway, post("/v1/messages", message("Hi", 31'000, true)));
  CHECK(stream.status == 200);
  CHECK(stream.complete);
  const std::size_t error = stream.body.rfind("event: error\n");
  REQUIRE(error != std::string::npos);
  CHECK(stream.body.find("\"type\":\"timeout_error\"", error) != std::string::npos);
  CHECK(stream.body.find("message_stop") == std::string::npos);
  CHECK(eventually([&] { return is_free(gateway.engine().stats()); }));
}

TEST_CASE("sixteen streams at once all come to their end") {
  GatewaySetup setup;
  setup.engine.max_running = 8;  // half of them wait for a place
  LoopbackGateway gateway(setup);
  std::vector<Client> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back(gateway);
    const std::string text(static_cast<std::size_t>(20 * i + 1), 'x');
    clients.back().send(post("/v1/messages", message(text, 20, true)));
  }
  for (Client& client : clients) {
    const Answer answer = client.answer();
    CHECK(answer.status == 200);
    CHECK(answer.complete);
    CHECK(answer.body.find("event: message_stop") != std::string::npos);
    CHECK(answer.body.rfind("\"output_tokens\":20") != std::string::npos);
  }
  CHECK(is_free(gateway.engine().stats()));
}

TEST_CASE("a client that does not read its stream slows nobody") {
  GatewaySetup setup = small_steps();
  LoopbackGateway gateway(setup);
  Client slow(gateway, Client::Kind::narrow);
  slow.send(post("/v1/messages", message("Hi", 1'500, true)));
  CHECK(eventually([&] { return gateway.engine().stats().output_tokens > 0; }));
  // While it reads nothing, others are served, and its own generation goes on to its end.
  CHECK(ask(gateway, post("/v1/messages", message("Hi", 20, false))).status == 200);
  CHECK(eventually([&] { return gateway.engine().stats().output_tokens >= 1'520; }));
  CHECK(is_free(gateway.engine().stats()));
  CHECK(gateway.log_lines().size() <= 1);  // the unread answer is not out yet
  const Answer answer = slow.answer();
  CHECK(answer.complete);
  CHECK(answer.body.rfind("\"output_tokens\":1500") != std::string::npos);
}

TEST_CASE("after stop_accepting the running stream ends properly and nothing new begins") {
  LoopbackGateway gateway;
  Client idle(gateway);
  idle.send(get("/health"));
  CHECK(idle.answer().status == 200);
  Client running(gateway);
  running.send(post("/v1/messages", message("Hi", 400, true)));
  CHECK(running.wait_for("content_block_delta"));
  gateway.server().stop_accepting();
  CHECK(idle.is_closed());
  CHECK(running.wait_for("event: message_stop"));
  CHECK(gateway.server().wait_until_idle(std::chrono::seconds(10)));
  CHECK_THROWS(Client(gateway));
}

TEST_CASE("what still runs when the grace is over is told and ended") {
  LoopbackGateway gateway(small_steps());
  Client streaming(gateway);
  streaming.send(post("/v1/messages", message("Hi", 30'000, true)));
  CHECK(streaming.wait_for("content_block_delta"));
  Client whole(gateway);
  whole.send(post("/v1/messages", message("Hi", 30'000, false)));
  CHECK(eventually([&] { return gateway.engine().stats().running == 2; }));
  gateway.server().stop_accepting();
  CHECK(!gateway.server().wait_until_idle(milliseconds(20)));
  gateway.engine().cancel_all();
  const Answer stream = streaming.answer();
  CHECK(stream.complete);
  CHECK(stream.body.find("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                         "\"overloaded_error\"")
        != std::string::npos);
  const Answer refused = whole.answer();
  CHECK(refused.status == 529);
  CHECK(refused.header("retry-after") == "5");
  streaming.close();
  whole.close();
  CHECK(gateway.server().wait_until_idle(std::chrono::seconds(10)));
}

TEST_CASE("the server can be destroyed at any moment") {
  for (int i = 0; i < 5; ++i) {
    auto gateway = std::make_unique<LoopbackGateway>(small_steps());
    Client prefilling(*gateway);
    prefilling.send(post("/v1/messages", message(std::string(20'000, 'x'), 10, true)));
    Client streaming(*gateway);
    streaming.send(post("/v1/messages", message("Hi", 30'000, true)));
    Client half(*gateway);
    half.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\n");
    std::this_thread::sleep_for(milliseconds(10 * i));  // a different moment each time
    gateway.reset();
    CHECK(half.is_closed());
  }
}
