#include "incipit/client.h"

#include "incipit/fingerprint.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace incipit {
namespace {

using testing::Environment;
using testing::FakeTransport;
using testing::header;

std::string reply(std::int64_t cache_read = 0, std::int64_t cache_creation = 0) {
  return R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1,"cache_read_input_tokens":)"
         + std::to_string(cache_read) + R"(,"cache_creation_input_tokens":)"
         + std::to_string(cache_creation) + "}}";
}

std::string streamed_reply(std::int64_t cache_read = 0) {
  return "event: message_start\n"
         R"(data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1,"cache_read_input_tokens":)"
         + std::to_string(cache_read)
         + "}}}\n\nevent: message_delta\n"
           R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"output_tokens":1}})"
           "\n\nevent: message_stop\n"
           R"(data: {"type":"message_stop"})"
           "\n\n";
}

MessageRequest prompt(std::string system = {}) {
  MessageRequest request;
  request.model = "claude-opus-5-5";
  request.max_tokens = 100;
  if (!system.empty()) request.system.push_back({std::move(system), CacheControl{}});
  request.messages.push_back({MessageRole::user, {TextBlock{"Hello"}}});
  return request;
}

struct Fixture {
  Environment environment;
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  testing::PaperTime time;

  [[nodiscard]] ClientOptions options() {
    return {.api_key = "key", .transport = transport, .waiting = time.waiting()};
  }
};

template <class Action>
PromptError prompt_error(Action action) {
  try {
    action();
  } catch (const PromptError& error) {
    return error;
  }
  return {"(none)", {}, "nothing was thrown"};
}

JsonValue body_of(const HttpRequest& request) {
  return JsonValue::parse(*request.body);
}

TEST_CASE_FIXTURE(Fixture, "send posts the request and reads the message, with its request id") {
  transport->answer(200, reply(), {{"request-id", "req_1"}});
  const Client client(options());
  const Message message = client.send(prompt());
  CHECK(message.text() == "Hi");
  CHECK(message.request_id == "req_1");
  CHECK(message.usage.input_tokens == 3);
  CHECK_FALSE(message.cache_miss);
  CHECK(transport->request().method == "POST");
  CHECK(transport->request().url == "https://api.anthropic.com/v1/messages");
  CHECK(*transport->request().body == to_json(prompt()));
}

TEST_CASE_FIXTURE(Fixture, "send does not stream, stream does, whatever the request says") {
  transport->answer(200, reply()).answer(200, streamed_reply(), {{"request-id", "req_2"}});
  const Client client(options());
  MessageRequest request = prompt();
  request.stream = true;
  (void)client.send(request);
  CHECK(body_of(transport->request(0)).find("stream") == nullptr);
  request.stream = false;
  MessageStream stream = client.stream(request);
  CHECK(body_of(transport->request(1)).find("stream")->as_boolean());
  CHECK(stream.message().request_id == "req_2");
}

TEST_CASE_FIXTURE(Fixture, "errors of a streaming call come before the stream") {
  transport->answer(404,
                    R"({"type":"error","error":{"type":"not_found_error","message":"model: x"}})");
  try {
    (void)Client(options()).stream(prompt());
    FAIL("nothing was thrown");
  } catch (const ApiError& error) {
    CHECK(error.status == 404);
    CHECK(error.type == ErrorType::not_found_error);
    CHECK(error.message == "model: x");
  }
  transport->answer(200, reply(), {{"content-type", "application/json"}});
  CHECK_THROWS_AS((void)Client(options()).stream(prompt()), ParseError);
}

TEST_CASE_FIXTURE(Fixture, "an impossible prompt is not sent, and the version counts (W-4)") {
  MessageRequest request = prompt();
  request.temperature = 0.5;
  CHECK(prompt_error([&] { (void)Client(options()).send(request); }).rule == "W-4");
  CHECK(prompt_error([&] { (void)Client(options()).stream(request); }).rule == "W-4");
  CHECK(prompt_error([&] { (void)Client(options()).count_tokens(request); }).rule == "W-4");
  CHECK(transport->requests().empty());
  transport->answer(200, reply());
  ClientOptions old = options();
  old.version = "2023-06-01";
  (void)Client(old).send(request);
  CHECK(header(transport->request(), "anthropic-version") == "2023-06-01");
}

TEST_CASE_FIXTURE(Fixture, "an unreadable reply is a ParseError") {
  transport->answer(200, "<html>").answer(200, R"({"id":7})");
  CHECK_THROWS_AS((void)Client(options()).send(prompt()), ParseError);
  CHECK_THROWS_AS((void)Client(options()).send(prompt()), ParseError);
}

TEST_CASE_FIXTURE(Fixture,
                  "an answer of more than ten minutes must be streamed, or have a timeout (W-46)") {
  MessageRequest request = prompt();
  request.max_tokens = 21'334;  // 3600 s * 21 334 / 128 000 = 600.02 s
  const PromptError error = prompt_error([&] { (void)Client(options()).send(request); });
  CHECK(error.rule == "W-46");
  CHECK(error.path == "max_tokens");
  transport->always([](const HttpRequest&) { return testing::response(200, reply()); });
  const std::chrono::milliseconds timeout = std::chrono::minutes(30);
  CHECK_NOTHROW((void)Client(options()).send(request, {.timeout = timeout}));
  ClientOptions patient = options();
  patient.timeout = timeout;
  CHECK_NOTHROW((void)Client(patient).send(request));
  request.max_tokens = 21'333;  // 599.99 s
  CHECK_NOTHROW((void)Client(options()).send(request));
  request.max_tokens = 128'000;
  transport->answer(200, streamed_reply());
  CHECK_NOTHROW((void)Client(options()).stream(request));
}

TEST_CASE_FIXTURE(Fixture, "count_tokens sends what the endpoint takes (C-114)") {
  transport->answer(200, R"({"input_tokens":2095})").answer(200, R"({"tokens":1})");
  MessageRequest request = prompt();
  request.max_tokens = 0;
  request.thinking =
      Thinking{Thinking::Type::enabled, 2048, {}};  // not C-90: max_tokens is not sent
  CHECK(Client(options()).count_tokens(request) == 2095);
  CHECK(transport->request().url.ends_with("/v1/messages/count_tokens"));
  CHECK(*transport->request().body == count_tokens_json(request));
  CHECK_THROWS_AS((void)Client(options()).count_tokens(request), ParseError);
}

TEST_CASE_FIXTURE(
    Fixture, "prewarm asks for no tokens, with a placeholder where no message is (C-88, C-91)") {
  transport->always([](const HttpRequest&) { return testing::response(200, reply()); });
  MessageRequest request = prompt("A long system prompt");
  (void)Client(options()).prewarm(request);
  MessageRequest expected = request;
  expected.max_tokens = 0;
  CHECK(*transport->request(0).body == to_json(expected));

  request.messages.clear();
  request.cache_control = CacheControl{};
  (void)Client(options()).prewarm(request);
  const JsonValue body = body_of(transport->request(1));
  CHECK(body.find("max_tokens")->as_integer() == 0);
  CHECK(body.find("messages")->as_array().size() == 1);
  CHECK(body.find("cache_control") == nullptr);  // it would write the placeholder as well
}

TEST_CASE_FIXTURE(Fixture, "prewarm needs an explicit marker, and nothing that C-90 forbids") {
  MessageRequest request = prompt();
  request.cache_control = CacheControl{};
  CHECK(prompt_error([&] { (void)Client(options()).prewarm(request); }).rule == "C-30");
  request = prompt("system");
  request.thinking = Thinking{Thinking::Type::enabled, 2048, {}};
  CHECK(prompt_error([&] { (void)Client(options()).prewarm(request); }).rule == "C-90");
  request = prompt();
  request.messages[0].content[0].mark(CacheControl{});
  transport->answer(200, reply());
  CHECK_NOTHROW((void)Client(options()).prewarm(request));
}

TEST_CASE_FIXTURE(Fixture, "one model is asked for by id or alias") {
  const std::string model =
      R"({"id":"claude-opus-5-5","type":"model","display_name":"Claude Opus 5.5","created_at":"2026-09-01T00:00:00Z","lifecycle":"active","max_input_tokens":1000000,"max_tokens":null,"capabilities":{"batch":{"supported":true}}})";
  transport->answer(200, model).answer(200, R"({"id":"m","type":"model"})");
  const Client client(options());
  const ModelInfo info = client.model("claude-opus/5");
  CHECK(transport->request().url == "https://api.anthropic.com/v1/models/claude-opus%2F5");
  CHECK(info.id == "claude-opus-5-5");
  CHECK(info.display_name == "Claude Opus 5.5");
  CHECK(info.created_at == "2026-09-01T00:00:00Z");
  CHECK(info.lifecycle == "active");
  CHECK(info.max_input_tokens == 1'000'000);
  CHECK_FALSE(info.max_tokens);
  CHECK(info.json.text() == model);
  CHECK(client.model("m").lifecycle.empty());
  CHECK_THROWS_AS((void)client.model(".."), PromptError);
}

TEST_CASE_FIXTURE(Fixture, "any other endpoint can be called, raw or with its body unread") {
  transport->answer(201, "created", {{"x-a", "1"}}).answer(200, "open").answer(404, "no");
  const Client client(options());
  const RawResponse response =
      client.call("PUT", "/v1/skills/1?beta=true", "{}", {.betas = {"skills-2025-10-02"}});
  CHECK(response.status == 201);
  CHECK(response.body == "created");
  CHECK(response.headers.at(0).value == "1");
  CHECK(transport->request(0).method == "PUT");
  CHECK(transport->request(0).url == "https://api.anthropic.com/v1/skills/1?beta=true");
  CHECK(header(transport->request(0), "anthropic-beta") == "skills-2025-10-02");
  HttpResponse opened = client.open("GET", "/v1/skills");
  CHECK(opened.text() == "open");
  CHECK_FALSE(transport->request(1).body);
  CHECK_THROWS_AS((void)client.call("GET", "/nothing"), ApiError);
}

TEST_CASE_FIXTURE(Fixture,
                  "a client with other options keeps the connections, and the old one its own") {
  transport->always([](const HttpRequest&) { return testing::response(200, reply()); });
  const Client client(options());
  const Client other = client.with([](ClientOptions& changed) {
    CHECK(changed.api_key == "key");
    changed.api_key = "other";
    changed.headers.push_back({"x-team", "a"});
  });
  (void)other.send(prompt());
  (void)client.send(prompt());
  CHECK(header(transport->request(0), "x-api-key") == "other");
  CHECK(header(transport->request(0), "x-team") == "a");
  CHECK(header(transport->request(1), "x-api-key") == "key");
  CHECK(header(transport->request(1), "x-team") == "(none)");

  const auto elsewhere = std::make_shared<FakeTransport>();
  elsewhere->answer(200, reply());
  (void)other.with([&](ClientOptions& changed) { changed.transport = elsewhere; }).send(prompt());
  CHECK(elsewhere->requests().size() == 1);
  CHECK_THROWS_AS((void)client.with([](ClientOptions& changed) { changed.auth_token = "both"; }),
                  PromptError);
}

TEST_CASE("a key of the environment gives way to a token set by `with`") {
  const Environment environment({{"ANTHROPIC_API_KEY", "env"}});
  const auto transport = std::make_shared<FakeTransport>();
  transport->answer(200, reply());
  const Client client({.transport = transport});
  (void)client.with([](ClientOptions& changed) { changed.auth_token = "token"; }).send(prompt());
  CHECK(header(transport->request(), "authorization") == "Bearer token");
  CHECK(header(transport->request(), "x-api-key") == "(none)");
}

TEST_CASE_FIXTURE(Fixture, "models near their end are named in the log, with the date") {
  std::vector<std::string> warnings;
  ClientOptions noisy = options();
  noisy.log = [&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warn) warnings.emplace_back(line);
  };
  transport->always([](const HttpRequest&) { return testing::response(200, reply()); });
  const Client client(noisy);
  for (const char* model : {"claude-opus-4-5-20251101", "claude-sonnet-4-5", "claude-opus-4-6",
                            "claude-opus-5-5", "claude-opus-4-55"}) {
    MessageRequest request = prompt();
    request.model = model;
    request.max_tokens = 4096;
    request.thinking = Thinking{Thinking::Type::enabled, 2048, {}};
    (void)client.send(request);
  }
  CHECK(warnings
        == std::vector<std::string>{"claude-opus-4-5-20251101 is deprecated; its end is 2027-01-22",
                                    "claude-sonnet-4-5 is deprecated; its end is 2026-11-30",
                                    "thinking of type enabled is deprecated on claude-opus-4-6; "
                                    "use adaptive with an effort"});
}

TEST_CASE_FIXTURE(Fixture,
                  "a conversation's cache miss is explained, streamed or not, through copies too") {
  // The first request leaves 5000 tokens in the cache; the second changes the system prompt.
  const RequestOptions named{.conversation = "c"};
  for (const bool streamed : {false, true}) {
    CAPTURE(streamed);
    const Client client(options());
    transport->answer(200, reply(0, 5000));
    CHECK_FALSE(client.send(prompt("You are A."), named).cache_miss);
    transport->answer(200, streamed ? streamed_reply() : reply());
    const Client copy = client.with([](ClientOptions& changed) { changed.max_retries = 0; });
    const Message message = streamed ? copy.stream(prompt("You are B."), named).message()
                                     : copy.send(prompt("You are B."), named);
    REQUIRE(message.cache_miss);
    CHECK(message.cache_miss->reason == MissReason::system_changed);
    CHECK(message.cache_miss->path == "system.0.text");
    // Without a name nothing is kept or said.
    transport->answer(200, reply());
    CHECK_FALSE(client.send(prompt("You are C.")).cache_miss);
  }
}

TEST_CASE_FIXTURE(Fixture, "eight threads use one client at once") {
  transport->always([](const HttpRequest& request) {
    if (request.body && request.body->find("\"stream\":true") != std::string::npos)
      return testing::response(200, streamed_reply());
    return testing::response(request.attempt == 0 ? 529 : 200, reply());
  });
  std::atomic<int> lines = 0;
  ClientOptions shared = options();
  shared.waiting = {.wait = [](std::chrono::milliseconds, const std::stop_token&) { return true; }};
  shared.log = [&](LogLevel, std::string_view) { ++lines; };
  shared.api_key.reset();
  shared.token_provider = [](bool) { return "token"; };
  const Client client(shared);
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread)
      threads.emplace_back([&, thread] {
        const RequestOptions named{.conversation = std::to_string(thread % 2)};
        for (int round = 0; round < 20; ++round) {
          if (client.send(prompt("system"), named).text() == "Hi") ++done;
          if (client.stream(prompt("system"), named).message().id == "msg_1") ++done;
        }
      });
  }
  CHECK(done == 8 * 20 * 2);
  CHECK(lines == 8 * 20 * 3);  // 529, 200, and the stream's 200
}

}  // namespace
}  // namespace incipit
