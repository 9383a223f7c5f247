// The endpoints below /v1/messages/batches, with the runner behind them (section 15, C-105).
#include "incipit/json.h"
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using incipit::JsonValue;

namespace {

constexpr std::string_view path = "/v1/messages/batches";

std::string error_message(const Answer& answer) {
  const JsonValue body = JsonValue::parse(answer.body);
  const JsonValue* error = body.find("error");
  return error == nullptr ? "no error: " + answer.body : error->find("message")->as_string();
}

std::string request(const std::string& id, const std::string& params) {
  return R"({"custom_id":")" + id + R"(","params":)" + params + "}";
}

std::string short_params(int max_tokens = 2) {
  return message("Hello", max_tokens, false);
}

std::string batch(const std::string& requests) {
  return "{\"requests\":[" + requests + "]}";
}

// A batch of `count` short requests: r0, r1, …
std::string batch_of(int count, int max_tokens = 2) {
  std::string requests;
  for (int i = 0; i < count; ++i)
    requests += (i > 0 ? "," : "") + request("r" + std::to_string(i), short_params(max_tokens));
  return batch(requests);
}

JsonValue created(const LoopbackGateway& gateway, const std::string& body) {
  const Answer answer = ask(gateway, post(path, body));
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return JsonValue::parse(answer.body);
}

JsonValue shown(const LoopbackGateway& gateway, const std::string& id) {
  const Answer answer = ask(gateway, get(std::string(path) + "/" + id));
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return JsonValue::parse(answer.body);
}

std::string status_of(const JsonValue& batch) {
  return batch.find("processing_status")->as_string();
}

long count(const JsonValue& batch, std::string_view name) {
  return static_cast<long>(*batch.find("request_counts")->find(name)->as_integer());
}

// Polls over one connection until the batch has ended.
JsonValue ended(const LoopbackGateway& gateway, const std::string& id) {
  Client client(gateway);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (true) {
    client.send(get(std::string(path) + "/" + id));
    const JsonValue batch = JsonValue::parse(client.answer().body);
    if (status_of(batch) == "ended") return batch;
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::map<std::string, JsonValue> results(const LoopbackGateway& gateway, const std::string& id) {
  const Answer answer = ask(gateway, get(std::string(path) + "/" + id + "/results"));
  CHECK(answer.status == 200);
  CHECK(answer.header("content-type") == "application/x-jsonl");
  std::map<std::string, JsonValue> found;
  for (std::size_t begin = 0; begin < answer.body.size();) {
    const std::size_t end = answer.body.find('\n', begin);
    REQUIRE(end != std::string::npos);
    const JsonValue line =
        JsonValue::parse(std::string_view(answer.body).substr(begin, end - begin));
    found.emplace(line.find("custom_id")->as_string(), *line.find("result"));
    begin = end + 1;
  }
  return found;
}

std::string type_of(const JsonValue& result) {
  return result.find("type")->as_string();
}

std::string deletion(const std::string& id) {
  return "DELETE " + std::string(path) + "/" + id
         + " HTTP/1.1\r\nhost: a\r\nanthropic-version: 2023-06-01\r\n\r\n";
}

}  // namespace

TEST_CASE("a batch runs to its end; what is wrong with a request is its own result") {
  const LoopbackGateway gateway;
  const JsonValue start = created(
      gateway,
      batch(
          request("good", short_params()) + "," + request("no-tokens", R"({"model":"x"})") + ","
          + request("unknown-model",
                    R"({"model":"gpt","max_tokens":1,"messages":[{"role":"user","content":"a"}]})")
          + "," + request("empty", "{}")));
  const std::string id = start.find("id")->as_string();
  CHECK(id.starts_with("msgbatch_01"));
  CHECK(start.find("type")->as_string() == "message_batch");
  CHECK(status_of(start) == "in_progress");
  CHECK(count(start, "processing") == 4);
  for (const std::string name : {"ended_at", "cancel_initiated_at", "archived_at", "results_url"}) {
    CHECK(start.find(name)->is_null());
  }
  const JsonValue end = ended(gateway, id);
  CHECK(count(end, "processing") == 0);
  CHECK(count(end, "succeeded") == 1);
  CHECK(count(end, "errored") == 3);
  CHECK(end.find("results_url")->as_string()
        == "http://gateway/v1/messages/batches/" + id + "/results");

  const auto result = results(gateway, id);
  CHECK(result.size() == 4);
  const JsonValue& message = *result.at("good").find("message");
  CHECK(message.find("type")->as_string() == "message");
  CHECK(message.find("usage")->find("service_tier")->as_string() == "batch");
  CHECK(message.find("usage")->find("output_tokens")->as_integer() == 2);
  const auto error = [&](const std::string& name) {
    const JsonValue& envelope = *result.at(name).find("error");
    CHECK(type_of(result.at(name)) == "errored");
    CHECK(type_of(envelope) == "error");
    CHECK(envelope.find("request_id")->is_null());
    return *envelope.find("error");
  };
  CHECK(error("no-tokens").find("message")->as_string() == "max_tokens: Field required");
  CHECK(type_of(error("unknown-model")) == "not_found_error");
  CHECK(type_of(error("empty")) == "invalid_request_error");
}

TEST_CASE("the address of the results is the one that was asked, or the one that is configured") {
  GatewaySetup setup;
  setup.public_url = "https://llm.example/api";
  const LoopbackGateway configured(setup);
  const auto url = [](const LoopbackGateway& gateway, const std::string& host) {
    const std::string id = created(gateway, batch_of(1)).find("id")->as_string();
    static_cast<void>(ended(gateway, id));
    const Answer answer = ask(gateway, "GET " + std::string(path) + "/" + id + " HTTP/1.1\r\nhost: "
                                           + host + "\r\nanthropic-version: 2023-06-01\r\n\r\n");
    std::string text = JsonValue::parse(answer.body).find("results_url")->as_string();
    return text.substr(0, text.find("/v1/"));
  };
  CHECK(url(configured, "other:1") == "https://llm.example/api");
  const LoopbackGateway gateway;
  CHECK(url(gateway, "127.0.0.1:8787") == "http://127.0.0.1:8787");
  CHECK(url(gateway, "[::1]:8787") == "http://[::1]:8787");
  CHECK(url(gateway, "evil\"host") == "");  // relative: a client joins it to its own base
}

TEST_CASE("what a batch may not be is refused at once") {
  const LoopbackGateway gateway;
  const auto complaint = [&](const std::string& body) {
    const Answer answer = ask(gateway, post(path, body));
    CHECK(answer.status == 400);
    return error_message(answer);
  };
  CHECK(complaint("{}") == "requests: Field required");
  CHECK(complaint("[]") == "The request body should be a JSON object");
  CHECK(complaint("{\"requests\":{}}") == "requests: Input should be a valid list");
  CHECK(complaint("{\"requests\":[]}")
        == "requests: List should have at least 1 item after validation, not 0");
  CHECK(complaint("{\"requests\":[],\"x\":1}") == "x: Extra inputs are not permitted");
  CHECK(complaint("{\"requests\":[").find("not valid JSON") != std::string::npos);
  CHECK(complaint(batch("{}")) == "requests.0.custom_id: Field required");
  CHECK(complaint(batch(R"({"custom_id":"a"})")) == "requests.0.params: Field required");
  CHECK(complaint(batch(request("a", "1"))).find("requests.0.params: ") == 0);
  CHECK(complaint(batch(R"({"custom_id":"a","params":{},"more":1})"))
        == "requests.0.more: Extra inputs are not permitted");
  for (const std::string& id :
       {std::string(), std::string("a b"), std::string("\u00e9"), std::string(65, 'a')}) {
    CHECK(complaint(batch(request("ok", "{}") + "," + request(id, "{}")))
          == "requests.1.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'");
  }
  CHECK(complaint(batch(request("a", "{}") + "," + request("b", "{}") + "," + request("a", "{}")))
            .find("requests.2.custom_id: 'a' is the custom_id of requests.0 already")
        == 0);
  for (const std::string field : {R"("stream":true)", R"("stream":1)", R"("speed":"standard")",
                                  R"("max_tokens":0)", R"("thread":{})"}) {
    CAPTURE(field);
    const std::string name = field.substr(1, field.find('"', 1) - 1);
    CHECK(complaint(batch(request("a", "{" + field + "}"))).find("requests.0.params." + name) == 0);
  }
  CHECK(ask(gateway, post(path, batch(request("a", R"({"thread":{}})"))))
            .body.find("thread_unsupported_request")
        != std::string::npos);
  std::string many;
  for (int i = 0; i <= 100'000; ++i)
    many += (i > 0 ? "," : "") + request(std::to_string(i), "{}");
  CHECK(complaint(batch(many))
        == "requests: List should have at most 100000 items after validation, not 100001");
}

TEST_CASE("what is harmless in params is taken") {
  const LoopbackGateway gateway;
  const std::string id =
      created(gateway, batch(request("a", R"({"stream":false,"speed":null,"thread":null,)"
                                          R"("model":"claude-sonnet-4-6","max_tokens":1,)"
                                          R"("messages":[{"role":"user","content":"a"}]})")))
          .find("id")
          ->as_string();
  CHECK(count(ended(gateway, id), "succeeded") == 1);
}

TEST_CASE("version and betas of the call hold for its requests") {
  const LoopbackGateway gateway;
  const std::string body =
      batch(request("a", R"({"model":"claude-sonnet-4-6","max_tokens":1,"temperature":0,)"
                         R"("messages":[{"role":"user","content":"a"}]})"));
  const std::string older = created(gateway, body).find("id")->as_string();
  CHECK(count(ended(gateway, older), "succeeded") == 1);
  const std::string newer_request =
      "POST " + std::string(path)
      + " HTTP/1.1\r\nhost: a\r\nanthropic-version: 2026-10-21\r\ncontent-length: "
      + std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string newer =
      JsonValue::parse(ask(gateway, newer_request).body).find("id")->as_string();
  CHECK(count(ended(gateway, newer), "errored") == 1);
}

TEST_CASE("cancelling stops what runs, keeps what is done, and ends the batch") {
  const LoopbackGateway gateway;
  std::string requests = request("short", short_params());
  for (int i = 0; i < 100; ++i)
    requests += "," + request("long-" + std::to_string(i), short_params(3000));
  const std::string id = created(gateway, batch(requests)).find("id")->as_string();
  REQUIRE(eventually([&] {
    const std::vector<std::string> lines = gateway.log_lines();
    return std::ranges::any_of(
        lines, [](const std::string& line) { return line.find("/short\"") != std::string::npos; });
  }));
  const Answer answer = ask(gateway, post(std::string(path) + "/" + id + "/cancel", ""));
  CHECK(answer.status == 200);
  const JsonValue canceling = JsonValue::parse(answer.body);
  CHECK(status_of(canceling) == "canceling");
  CHECK(!canceling.find("cancel_initiated_at")->is_null());
  CHECK(canceling.find("results_url")->is_null());
  const JsonValue end = ended(gateway, id);
  CHECK(count(end, "succeeded") + count(end, "canceled") == 101);
  CHECK(count(end, "canceled") >= 1);
  const auto result = results(gateway, id);
  CHECK(type_of(result.at("short")) == "succeeded");
  CHECK(type_of(result.at("long-99")) == "canceled");
  const Answer again = ask(gateway, post(std::string(path) + "/" + id + "/cancel", ""));
  CHECK(again.status == 400);
  CHECK(error_message(again).find("has ended") != std::string::npos);
}

TEST_CASE("a batch that nothing could run expires") {
  GatewaySetup setup;
  setup.virtual_clock = true;
  const LoopbackGateway gateway(setup);
  const std::string id = created(gateway, batch_of(100, 3000)).find("id")->as_string();
  ask(gateway, post("/incipit/clock", R"({"advance_seconds": 86400})"));
  const JsonValue end = ended(gateway, id);
  CHECK(count(end, "expired") >= 1);
  CHECK(count(end, "succeeded") + count(end, "expired") == 100);
  CHECK(type_of(results(gateway, id).at("r99")) == "expired");
}

TEST_CASE("results are there when the batch has ended, and until it is deleted or archived") {
  GatewaySetup setup;
  setup.virtual_clock = true;
  const LoopbackGateway gateway(setup);
  const std::string id = created(gateway, batch_of(2, 3000)).find("id")->as_string();
  const std::string results_path = std::string(path) + "/" + id + "/results";
  CHECK(ask(gateway, get(results_path)).status == 404);
  const Answer early = ask(gateway, deletion(id));
  CHECK(early.status == 400);
  CHECK(error_message(early).find("has not ended") != std::string::npos);
  static_cast<void>(ended(gateway, id));
  const Answer head =
      ask(gateway,
          "HEAD " + results_path + " HTTP/1.0\r\nhost: a\r\nanthropic-version: 2023-06-01\r\n\r\n");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  ask(gateway, post("/incipit/clock", R"({"advance_seconds": 2505600})"));
  CHECK(ask(gateway, get(results_path)).status == 404);
  const JsonValue archived = shown(gateway, id);
  CHECK(!archived.find("archived_at")->is_null());
  CHECK(archived.find("results_url")->is_null());
  const Answer gone = ask(gateway, deletion(id));
  CHECK(gone.body == "{\"id\":\"" + id + "\",\"type\":\"message_batch_deleted\"}");
  CHECK(ask(gateway, get(std::string(path) + "/" + id)).status == 404);
}

TEST_CASE("lists page in both directions") {
  const LoopbackGateway gateway;
  std::vector<std::string> all;
  for (int i = 0; i < 5; ++i)
    all.insert(all.begin(), created(gateway, batch_of(1)).find("id")->as_string());
  const auto list = [&](const std::string& query) {
    std::vector<std::string> ids;
    const JsonValue page = JsonValue::parse(ask(gateway, get(std::string(path) + query)).body);
    for (const JsonValue& one : page.find("data")->as_array())
      ids.push_back(one.find("id")->as_string());
    return ids;
  };
  CHECK(list("") == all);
  CHECK(list("?limit=2") == std::vector<std::string>(all.begin(), all.begin() + 2));
  CHECK(list("?limit=2&after_id=" + all[1])
        == std::vector<std::string>(all.begin() + 2, all.begin() + 4));
  CHECK(list("?limit=2&before_id=" + all[4])
        == std::vector<std::string>(all.begin() + 2, all.begin() + 4));
  CHECK(ask(gateway, get(std::string(path) + "?after_id=msgbatch_x")).status == 400);
}

TEST_CASE("unknown batches and wrong verbs") {
  const LoopbackGateway gateway;
  for (const std::string& sent :
       {get(std::string(path) + "/msgbatch_x"), get(std::string(path) + "/msgbatch_x/results"),
        post(std::string(path) + "/msgbatch_x/cancel", ""), deletion("msgbatch_x")}) {
    const Answer answer = ask(gateway, sent);
    CHECK(answer.status == 404);
    CHECK(error_message(answer) == "Message batch not found: msgbatch_x");
  }
  CHECK(ask(gateway, get(std::string(path) + "/msgbatch_x/cancel")).status == 405);
  CHECK(ask(gateway, post(std::string(path) + "/msgbatch_x/results", "")).status == 405);
  CHECK(ask(gateway, get(std::string(path) + "/a/b/results")).status == 404);
}

TEST_CASE("batches do not use up the limits of messages") {
  GatewaySetup setup;
  setup.limits.requests = 1;
  setup.limits.output_tokens = 10;
  const LoopbackGateway gateway(setup);
  const std::string id = created(gateway, batch_of(5, 20)).find("id")->as_string();
  CHECK(count(ended(gateway, id), "succeeded") == 5);
  CHECK(ask(gateway, post("/v1/messages", message("Hi", 1, false))).status == 200);
}

TEST_CASE("live requests go first: a batch waits for room in the engine instead of failing") {
  GatewaySetup setup;
  setup.engine.max_running = 1;
  setup.engine.max_queue = 0;
  const LoopbackGateway gateway(setup);
  Client live(gateway);
  live.send(post("/v1/messages", message("Hi", 3000, true)));
  REQUIRE(live.wait_for("message_start"));
  const std::string id = created(gateway, batch_of(4)).find("id")->as_string();
  CHECK(count(ended(gateway, id), "succeeded") == 4);
}

TEST_CASE("a gateway that ends with a batch on its way does not hang") {
  const auto begun = std::chrono::steady_clock::now();
  {
    const LoopbackGateway gateway;
    static_cast<void>(created(gateway, batch_of(50, 3000)));
  }
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(15));
}

TEST_CASE("many clients make, cancel, list and delete batches at the same time") {
  const LoopbackGateway gateway;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 5; ++i) {
        const Answer made = ask(gateway, post(path, batch_of(3, 10)));
        const std::string id = JsonValue::parse(made.body).find("id")->as_string();
        if (c % 2 == 0) ask(gateway, post(std::string(path) + "/" + id + "/cancel", ""));
        ask(gateway, get(path));
        static_cast<void>(ended(gateway, id));
        ask(gateway, deletion(id));
      }
    });
  }
  for (std::thread& client : clients)
    client.join();
  CHECK(JsonValue::parse(ask(gateway, get(path)).body).find("data")->as_array().empty());
}
