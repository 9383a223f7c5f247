// POST /v1/messages over a socket: transcripts, usage, caching, limits.
#include "incipit/json.h"
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using incipit::JsonValue;

namespace {

// The names of a stream's events, in order.
std::vector<std::string> event_names(std::string_view stream) {
  std::vector<std::string> names;
  constexpr std::string_view mark = "event: ";
  for (std::size_t at = 0; (at = stream.find(mark, at)) != std::string_view::npos;) {
    at += mark.size();
    names.emplace_back(stream.substr(at, stream.find('\n', at) - at));
  }
  return names;
}

std::string error_message(const Answer& answer) {
  return JsonValue::parse(answer.body).find("error")->find("message")->as_string();
}

// A request with a marked system text of about `length` tokens (the tiny model's tokens are bytes).
std::string marked(int length, bool stream, std::string_view question = "Why?") {
  return R"({"model":"claude-sonnet-4-6","max_tokens":4,"temperature":0,"stream":)"
         + std::string(stream ? "true" : "false") + R"(,"system":[{"type":"text","text":")"
         + std::string(static_cast<std::size_t>(length), 's')
         + R"(","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":")"
         + std::string(question) + R"("}]})";
}

std::string without_generation(std::string body) {
  for (const std::string_view field :
       {R"("max_tokens":4,)", R"("temperature":0,)", R"("stream":true,)", R"("stream":false,)"}) {
    if (const std::size_t at = body.find(field); at != std::string::npos) {
      body.erase(at, field.size());
    }
  }
  return body;
}

long prompt_sum(const std::string& body) {
  return number_in(body, "input_tokens") + number_in(body, "cache_creation_input_tokens")
         + number_in(body, "cache_read_input_tokens");
}

}  // namespace

TEST_CASE("a whole answer has the provider's shape and adds up") {
  const LoopbackGateway gateway;
  const Answer answer = ask(gateway, post("/v1/messages", message("Hello there", 5, false)));
  CHECK(answer.status == 200);
  CHECK(answer.header("content-type") == "application/json");
  CHECK(answer.header("request-id").starts_with("req_"));
  CHECK(answer.header("anthropic-ratelimit-tokens-limit") != "");
  const JsonValue body = JsonValue::parse(answer.body);
  CHECK(body.find("id")->as_string().starts_with("msg_"));
  CHECK(body.find("model")->as_string() == "claude-sonnet-4-6");
  CHECK(body.find("stop_reason")->as_string() == "max_tokens");
  CHECK(body.find("content")->as_array().size() == 1);
  CHECK(body.find("usage")->find("output_tokens")->as_integer() == 5);
}

TEST_CASE("a stream has its events in the documented order") {
  const LoopbackGateway gateway;
  const Answer answer = ask(gateway, post("/v1/messages", message("Hello there", 3, true)));
  CHECK(answer.status == 200);
  CHECK(answer.complete);
  CHECK(answer.header("content-type") == "text/event-stream; charset=utf-8");
  CHECK(answer.header("cache-control") == "no-cache");
  CHECK(answer.header("transfer-encoding") == "chunked");
  const std::vector<std::string> names = event_names(answer.body);
  REQUIRE(names.size() >= 7);
  CHECK(names[0] == "message_start");
  CHECK(names[1] == "content_block_start");
  CHECK(names[2] == "ping");
  for (std::size_t i = 3; i + 3 < names.size(); ++i)
    CHECK(names[i] == "content_block_delta");
  CHECK(std::vector<std::string>(names.end() - 3, names.end())
        == std::vector<std::string>{"content_block_stop", "message_delta", "message_stop"});
  CHECK(answer.body.find("[DONE]") == std::string::npos);
}

TEST_CASE("a stop sequence ends the answer before it") {
  const LoopbackGateway gateway;
  const auto text_of = [&](const std::string& stops) {
    const std::string body = R"({"model":"claude-sonnet-4-6","max_tokens":12,"temperature":0,)"
                             + stops + R"("messages":[{"role":"user","content":"Hi"}]})";
    return JsonValue::parse(ask(gateway, post("/v1/messages", body)).body);
  };
  const JsonValue whole = text_of("");
  const std::string text = whole.find("content")->as_array()[0].find("text")->as_string();
  REQUIRE(text.size() == 12);
  std::size_t at = 5;  // a character that has not come before, and is not white space
  while (text[at] == ' ' || text.find(text[at]) != at)
    ++at;
  std::string stops = R"("stop_sequences":[)";
  incipit::JsonWriter(stops).string(text.substr(at, 1));
  const JsonValue cut = text_of(stops + "],");
  CHECK(cut.find("stop_reason")->as_string() == "stop_sequence");
  CHECK(cut.find("stop_sequence")->as_string() == text.substr(at, 1));
  CHECK(cut.find("content")->as_array()[0].find("text")->as_string() == text.substr(0, at));
}

TEST_CASE("the second of two marked requests reads what the first wrote") {
  LoopbackGateway gateway;
  const std::string body = marked(2000, false);
  const Answer count = ask(gateway, post("/v1/messages/count_tokens", without_generation(body)));
  const long prompt = number_in(count.body, "input_tokens");
  CHECK(prompt > 2000);

  const Answer first = ask(gateway, post("/v1/messages", body));
  CHECK(number_in(first.body, "cache_read_input_tokens") == 0);
  const long written = number_in(first.body, "cache_creation_input_tokens");
  CHECK(written >= 2000);
  CHECK(number_in(first.body, "ephemeral_5m_input_tokens") == written);
  CHECK(prompt_sum(first.body) == prompt);

  const Answer second = ask(gateway, post("/v1/messages", body));
  CHECK(number_in(second.body, "cache_read_input_tokens") == written);
  CHECK(number_in(second.body, "cache_creation_input_tokens") == 0);
  CHECK(prompt_sum(second.body) == prompt);
  CHECK(JsonValue::parse(first.body).find("content")->minified()
        == JsonValue::parse(second.body).find("content")->minified());

  const Answer stream = ask(gateway, post("/v1/messages", marked(2000, true)));
  CHECK(number_in(stream.body, "cache_read_input_tokens") == written);
  const std::string plain = std::to_string(prompt - written);
  CHECK(second.header("incipit-cache")
            .starts_with("model=claude-sonnet-4-6; prompt=" + std::to_string(prompt)
                         + "; read=" + std::to_string(written)
                         + "; written-5m=0; written-1h=0; plain=" + plain + "; reused="));

  const Answer entries = ask(gateway, get("/incipit/entries"));
  CHECK(number_in(entries.body, "tokens") == written);
  CHECK(number_in(entries.body, "hits") == 2);
  CHECK(entries.body.find(R"("ttl":"5m")") != std::string::npos);
}

TEST_CASE("a prompt marked to its very end is read to its very end") {
  const LoopbackGateway gateway;
  const std::string body =
      R"({"model":"claude-sonnet-4-6","max_tokens":1,"cache_control":{"type":"ephemeral"},)"
      R"("messages":[{"role":"user","content":")"
      + std::string(1500, 'u') + R"("}]})";
  const Answer first = ask(gateway, post("/v1/messages", body));
  const long written = number_in(first.body, "cache_creation_input_tokens");
  CHECK(written > 1500);
  CHECK(number_in(first.body, "input_tokens") == 0);
  const Answer second = ask(gateway, post("/v1/messages", body));
  CHECK(number_in(second.body, "cache_read_input_tokens") == written);
  CHECK(number_in(second.body, "cache_creation_input_tokens") == 0);
  CHECK(ask(gateway, get("/metrics")).body.find("incipit_entries_lost_total 0\n")
        != std::string::npos);
}

TEST_CASE(
    "an entry is gone after five minutes of the virtual clock, and shared only in its workspace") {
  GatewaySetup setup;
  setup.virtual_clock = true;
  setup.keys = R"({"key":"alice","organization":"org-1","workspace":"ws-1"}
{"key":"bob","organization":"org-1","workspace":"ws-1"}
{"key":"carol","organization":"org-1","workspace":"ws-2"})";
  const LoopbackGateway gateway(setup);
  const auto read = [&](const std::string& key) {
    return number_in(
        ask(gateway, post("/v1/messages", marked(2000, false), "x-api-key: " + key + "\r\n")).body,
        "cache_read_input_tokens");
  };
  const auto advance = [&](int seconds) {
    return ask(gateway,
               post("/incipit/clock", "{\"advance_seconds\":" + std::to_string(seconds) + "}",
                    "x-api-key: alice\r\n"))
        .status;
  };
  CHECK(read("alice") == 0);
  CHECK(advance(299) == 200);
  CHECK(read("bob") > 2000);
  CHECK(read("carol") == 0);
  CHECK(advance(301) == 200);
  CHECK(read("alice") == 0);
}

TEST_CASE("max_tokens 0 prepares the cache and answers nothing") {
  const LoopbackGateway gateway;
  std::string body = marked(2000, false);
  body.replace(body.find(R"("max_tokens":4)"), 14, R"("max_tokens":0)");
  const Answer warmed = ask(gateway, post("/v1/messages", body));
  CHECK(warmed.status == 200);
  const JsonValue answer = JsonValue::parse(warmed.body);
  CHECK(answer.find("content")->as_array().empty());
  CHECK(answer.find("stop_reason")->as_string() == "max_tokens");
  CHECK(answer.find("usage")->find("output_tokens")->as_integer() == 0);
  CHECK(number_in(warmed.body, "cache_creation_input_tokens") > 2000);
  CHECK(number_in(ask(gateway, post("/v1/messages", marked(2000, false))).body,
                  "cache_read_input_tokens")
        > 2000);
}

TEST_CASE("a prompt beyond the context is refused with both numbers") {
  GatewaySetup setup;
  setup.context = 512;
  const LoopbackGateway gateway(setup);
  const auto count = [&](const std::string& text) {
    return number_in(
        ask(gateway, post("/v1/messages/count_tokens",
                          R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":")"
                              + text + R"("}]})"))
            .body,
        "input_tokens");
  };
  const long frame = count("x") - 1;  // what the template adds
  const auto refusal = [&](long tokens) {
    const std::string text(static_cast<std::size_t>(tokens - frame), 'x');
    REQUIRE(count(text) == tokens);
    return ask(gateway, post("/v1/messages", message(text, 1, false)));
  };
  const Answer over = refusal(513);
  CHECK(over.status == 400);
  CHECK(error_message(over) == "prompt is too long: 513 tokens > 512 maximum");
  CHECK(refusal(512).status == 400);
  CHECK(refusal(511).status == 200);
}

TEST_CASE("an answer that meets the end of the context says so") {
  GatewaySetup setup;
  setup.context = 128;
  const LoopbackGateway gateway(setup);
  const Answer answer = ask(gateway, post("/v1/messages", message("Hi", 4000, false)));
  CHECK(answer.status == 200);
  CHECK(JsonValue::parse(answer.body).find("stop_reason")->as_string()
        == "model_context_window_exceeded");
}

TEST_CASE("broken JSON and unknown models are told as the hosted API tells them") {
  const LoopbackGateway gateway;
  const Answer broken = ask(gateway, post("/v1/messages", R"({"model":)"));
  CHECK(broken.status == 400);
  CHECK(error_message(broken).starts_with("The request body is not valid JSON"));
  CHECK(broken.header("x-should-retry") == "false");
  CHECK(ask(gateway, post("/v1/messages", "")).status == 400);
  std::string body = message("Hi", 1, false);
  body.replace(body.find("claude-sonnet-4-6"), 17, "gpt-4o");
  const Answer unknown = ask(gateway, post("/v1/messages", body));
  CHECK(unknown.status == 404);
  CHECK(error_message(unknown) == "model: gpt-4o");
}

TEST_CASE("each request leaves one line in the log with the numbers of its usage") {
  const LoopbackGateway gateway;
  const Answer answer = ask(gateway, post("/v1/messages", marked(2000, true)));
  // A line is written when the answer is out, so the next one could come before it.
  REQUIRE(eventually([&] { return gateway.log_lines().size() == 1; }));
  ask(gateway, get("/v1/nothing"));
  ask(gateway, get("/health"));  // polled by monitors: not logged
  REQUIRE(eventually([&] { return gateway.log_lines().size() == 2; }));
  const JsonValue line = JsonValue::parse(gateway.log_lines()[0]);
  CHECK(line.find("request_id")->as_string() == answer.header("request-id"));
  CHECK(line.find("status")->as_integer() == 200);
  CHECK(line.find("model")->as_string() == "claude-sonnet-4-6");
  CHECK(line.find("written_5m")->as_integer()
        == number_in(answer.body, "cache_creation_input_tokens"));
  CHECK(line.find("written_1h")->as_integer() == 0);
  CHECK(line.find("read")->as_integer() == 0);
  CHECK(line.find("plain")->as_integer() == number_in(answer.body, "input_tokens"));
  CHECK(line.find("prompt_tokens")->as_integer() == prompt_sum(answer.body));
  CHECK(line.find("output")->as_integer() == 4);
  CHECK(line.find("kv_reused")->as_integer() == 0);
  CHECK(line.find("ttft_ms")->as_double().value() > 0);
  CHECK(line.find("tokens_per_second")->as_double().value() > 0);
  CHECK(line.find("time")->as_string().size() == 20);
  CHECK(JsonValue::parse(gateway.log_lines()[1]).find("status")->as_integer() == 404);
}

TEST_CASE("a billing line is kept out of the prompt and counted in the log") {
  const LoopbackGateway gateway;
  const auto body = [](std::string_view system) {
    return R"({"model":"claude-sonnet-4-6","max_tokens":1,"system":[)" + std::string(system)
           + R"({"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"Hi"}]})";
  };
  const Answer plain = ask(gateway, post("/v1/messages", body("")));
  REQUIRE(eventually([&] { return gateway.log_lines().size() == 1; }));
  const Answer billed = ask(
      gateway,
      post("/v1/messages",
           body(R"({"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=1f"},)")));
  CHECK(number_in(plain.body, "input_tokens") == number_in(billed.body, "input_tokens"));
  REQUIRE(eventually([&] { return gateway.log_lines().size() == 2; }));
  CHECK(number_in(gateway.log_lines().at(1), "dropped_billing_lines") == 1);
}
