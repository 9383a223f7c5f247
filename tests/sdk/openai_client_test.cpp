#include "incipit/openai.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace incipit::openai {
namespace {

using incipit::testing::Environment;
using incipit::testing::FakeTransport;
using incipit::testing::header;
using incipit::testing::PaperTime;

const std::string key = "sk-secret-of-this-test";
const std::string completion =
    R"({"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]})";

struct Setup {
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  PaperTime time;
  std::string log;

  Client client(const std::optional<std::string>& api_key = key) {
    ClientOptions options;
    options.api_key = api_key;
    options.transport = transport;
    options.waiting = time.waiting();
    options.log = [this](LogLevel, std::string_view line) { log += std::string(line) + "\n"; };
    return Client(options);
  }
};

ChatRequest greeting() {
  ChatRequest request;
  request.model = "gpt-5.6-terra";
  request.messages = {{.role = "user", .content = "Hi"}};
  return request;
}

template <class Call>
ApiError refusal(const Call& call) {
  try {
    (void)call();
  } catch (const ApiError& error) {
    return error;
  }
  FAIL("no ApiError");
  return ApiError("");
}

TEST_CASE("a chat request goes to /v1/chat/completions with a bearer token") {
  const Environment none;
  Setup setup;
  setup.transport->answer(200, completion, {{"x-request-id", "req_7"}});
  const ChatCompletion got = setup.client().chat(greeting());
  CHECK(got.text() == "Hi");
  CHECK(got.request_id == "req_7");
  const HttpRequest& sent = setup.transport->request();
  CHECK(sent.method == "POST");
  CHECK(sent.url == "https://api.openai.com/v1/chat/completions");
  CHECK(*sent.body == to_json(greeting()));
  CHECK(header(sent, "Authorization") == "Bearer " + key);
  CHECK(header(sent, "Content-Type") == "application/json");
  for (const char* name : {"x-api-key", "anthropic-version", "anthropic-beta",
                           "OpenAI-Organization", "OpenAI-Project"}) {
    CAPTURE(name);
    CHECK(header(sent, name) == "(none)");
  }
}

TEST_CASE("the environment gives key, address, organisation, project and headers") {
  const Environment set({{"OPENAI_API_KEY", " env-key "},
                         {"OPENAI_BASE_URL", "http://127.0.0.1:8080/v1/"},
                         {"OPENAI_ORG_ID", "org-1"},
                         {"OPENAI_PROJECT_ID", "proj-1"},
                         {"OPENAI_CUSTOM_HEADERS", "X-Team: docs"},
                         {"ANTHROPIC_API_KEY", "another"}});
  Setup setup;
  setup.transport->answer(200, completion);
  (void)setup.client(std::nullopt).chat(greeting());
  const HttpRequest& sent = setup.transport->request();
  CHECK(sent.url == "http://127.0.0.1:8080/v1/chat/completions");
  CHECK(header(sent, "authorization") == "Bearer env-key");
  CHECK(header(sent, "openai-organization") == "org-1");
  CHECK(header(sent, "openai-project") == "proj-1");
  CHECK(header(sent, "x-team") == "docs");
}

TEST_CASE("without a key there is no client, and the message says which variable is missing") {
  const Environment other({{"ANTHROPIC_API_KEY", "another"}});
  Setup setup;
  try {
    (void)setup.client(std::nullopt);
    FAIL("a client without a key");
  } catch (const PromptError& error) {
    CHECK(std::string(error.what()).find("OPENAI_API_KEY") != std::string::npos);
  }
}

TEST_CASE("overload is tried again as the Messages API's is, then answered") {
  const Environment none;
  Setup setup;
  const std::string slow =
      R"({"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}})";
  setup.transport->answer(429, slow, {{"retry-after-ms", "1500"}})
      .answer(503, slow)
      .answer(200, completion);
  CHECK(setup.client().chat(greeting()).text() == "Hi");
  CHECK(setup.time.waits == std::vector<int>{1500, 1000});
  REQUIRE(setup.transport->requests().size() == 3);
  CHECK(*setup.transport->request(2).body == to_json(greeting()));
}

TEST_CASE("a refusal is thrown with everything it says, and never shows the key") {
  const Environment none;
  Setup setup;
  const std::string body =
      R"({"error":{"message":"Incorrect API key provided: )" + key
      + R"(","type":"invalid_request_error","param":null,"code":"invalid_api_key"}})";
  setup.transport->answer(401, body, {{"x-request-id", "req_9"}});
  const ApiError error = refusal([&] { return setup.client().chat(greeting()); });
  CHECK(error.status == 401);
  CHECK(error.type == ErrorType::authentication_error);
  CHECK(error.error_code == "invalid_api_key");
  CHECK(error.request_id == "req_9");
  for (const std::string& text :
       {std::string(error.what()), error.message, error.body, setup.log}) {
    CHECK(text.find(key) == std::string::npos);
  }
  CHECK(setup.transport->requests().size() == 1);
}

TEST_CASE("a chat stream asks for usage and reads the events") {
  const Environment none;
  Setup setup;
  setup.transport->answer(
      200,
      "data: "
      "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n"
      "data: [DONE]\n\n",
      {{"content-type", "text/event-stream"}, {"x-request-id", "req_3"}});
  ChatStream stream = setup.client().chat_stream(greeting());
  CHECK(stream.completion().text() == "Hi");
  CHECK(stream.completion().usage->input_tokens == 3);
  CHECK(stream.completion().request_id == "req_3");
  CHECK(*setup.transport->request().body == to_json(greeting(), true));
}

TEST_CASE("the Responses API is reached at /v1/responses, whole and as a stream") {
  const Environment none;
  Setup setup;
  const std::string response =
      R"({"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]})";
  ResponsesRequest request;
  request.model = "gpt-5.6-terra";
  request.input = {message_item("user", "Hi")};
  setup.transport->answer(200, response, {{"x-request-id", "req_4"}})
      .answer(200, "data: {\"type\":\"response.completed\",\"response\":" + response + "}\n\n",
              {{"x-request-id", "req_5"}});
  const Response whole = setup.client().respond(request);
  CHECK(whole.text() == "Hi");
  CHECK(whole.request_id == "req_4");
  ResponseStream stream = setup.client().respond_stream(request);
  CHECK(stream.response().text() == "Hi");
  CHECK(stream.response().request_id == "req_5");
  CHECK(setup.transport->request(0).url == "https://api.openai.com/v1/responses");
  CHECK(*setup.transport->request(0).body == to_json(request));
  CHECK(*setup.transport->request(1).body == to_json(request, true));
}

TEST_CASE("the models are listed by their ids") {
  const Environment none;
  Setup setup;
  setup.transport
      ->answer(200, R"({"object":"list","data":[{"id":"a/b","object":"model"},{"id":"c"}]})")
      .answer(200, R"({"object":"list"})");
  CHECK(setup.client().models() == std::vector<std::string>{"a/b", "c"});
  CHECK(setup.transport->request().method == "GET");
  CHECK(setup.transport->request().url == "https://api.openai.com/v1/models");
  CHECK(setup.transport->request().body == nullptr);
  CHECK_THROWS_AS((void)setup.client().models(), ParseError);
}

TEST_CASE("any other endpoint is called with the client's headers") {
  const Environment none;
  Setup setup;
  setup.transport->answer(200, R"({"input_tokens":5})");
  const RawResponse raw =
      setup.client().call("POST", "/responses/input_tokens", R"({"model":"m"})");
  CHECK(raw.status == 200);
  CHECK(raw.body == R"({"input_tokens":5})");
  CHECK(*setup.transport->request().body == R"({"model":"m"})");
  CHECK(header(setup.transport->request(), "authorization") == "Bearer " + key);
}

TEST_CASE("a reply that is no completion is a ParseError with its path") {
  const Environment none;
  Setup setup;
  setup.transport->answer(200, R"({"object":"list"})");
  CHECK_THROWS_AS((void)setup.client().chat(greeting()), ParseError);
}

}  // namespace
}  // namespace incipit::openai
