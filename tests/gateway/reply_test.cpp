// The answer against the captured bodies and streams of anthropic-wire sections 9 to 11.
#include "gateway/api/anthropic_reply.h"
#include "gateway/api/signature.h"

#include <incipit/json.h>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using incipit::JsonValue;
using incipit::Usage;
using incipit::gateway::AnthropicReply;
using incipit::gateway::ApiError;
using incipit::gateway::error_body;
using incipit::gateway::invalid_request;
using incipit::gateway::make_id;
using incipit::gateway::Piece;

namespace {

struct Event {
  std::string name;
  std::string data;
};

// Strict: "event: NAME\ndata: JSON\n\n" and nothing else (section 10.1).
std::vector<Event> events_of(std::string_view bytes) {
  std::vector<Event> events;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find("\n\n");
    REQUIRE(end != std::string_view::npos);
    const std::string_view frame = bytes.substr(0, end);
    bytes.remove_prefix(end + 2);
    const std::size_t line = frame.find('\n');
    REQUIRE(line != std::string_view::npos);
    REQUIRE(frame.starts_with("event: "));
    REQUIRE(frame.substr(line + 1).starts_with("data: "));
    REQUIRE(frame.find('\n', line + 1) == std::string_view::npos);
    events.push_back({std::string(frame.substr(7, line - 7)), std::string(frame.substr(line + 7))});
  }
  return events;
}

std::vector<std::string> names_of(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const Event& event : events)
    names.push_back(event.name);
  return names;
}

std::string string_at(const JsonValue& value, std::vector<std::string_view> path) {
  const JsonValue* at = &value;
  for (const std::string_view name : path) {
    at = at->find(name);
    REQUIRE_MESSAGE(at != nullptr, std::string(name));
  }
  return at->as_string();
}

// Puts "ID" where a random tool id stands, so that a transcript can be compared as text.
std::string without_tool_id(std::string text) {
  const std::size_t at = text.find("toolu_01");
  REQUIRE(at != std::string::npos);
  return text.replace(at, 30, "ID");
}

Piece text_start() {
  return {Piece::Kind::text_start, "", ""};
}

Piece text(std::string more) {
  return {Piece::Kind::text, std::move(more), ""};
}

Piece tool_start(std::string name) {
  return {Piece::Kind::tool_start, "", std::move(name)};
}

Piece tool_input(std::string more) {
  return {Piece::Kind::tool_input, std::move(more), ""};
}

Piece stop() {
  return {Piece::Kind::stop, "", ""};
}

Usage trace_usage() {
  Usage usage;
  usage.input_tokens = 6;
  usage.cache_creation_5m = 2670;
  usage.cache_read_input_tokens = 45410;
  return usage;
}

}  // namespace

TEST_CASE("a whole body has the keys and the order of the captured one") {
  Usage usage;
  usage.input_tokens = 80;
  AnthropicReply reply(
      {.model = "claude-sonnet-5-5", .message_id = "msg_011CfXSzxsmp4XSw2RKxyW3e", .usage = usage});
  reply.collect({text_start(), text("Hi there! "), text("How can I"), stop()});
  // Section 9, as captured.
  CHECK(
      reply.body({"max_tokens", ""}, {.all = 8})
      == R"({"model":"claude-sonnet-5-5","id":"msg_011CfXSzxsmp4XSw2RKxyW3e","type":"message",)"
         R"("role":"assistant","content":[{"type":"text","text":"Hi there! How can I"}],)"
         R"("container":null,"stop_reason":"max_tokens","stop_sequence":null,"stop_details":null,)"
         R"("usage":{"input_tokens":80,"cache_creation_input_tokens":0,)"
         R"("cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,)"
         R"("ephemeral_1h_input_tokens":0},"output_tokens":8,)"
         R"("output_tokens_details":{"thinking_tokens":0},"service_tier":"standard",)"
         R"("inference_geo":"global"},"diagnostics":null})");
}

TEST_CASE("a whole body reports both write classes and their sum") {
  Usage usage;
  usage.input_tokens = 5;
  usage.cache_creation_5m = 148;
  usage.cache_creation_1h = 100;
  usage.cache_read_input_tokens = 1800;
  const AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = usage});
  const JsonValue body = JsonValue::parse(reply.body({"end_turn", ""}, {.all = 1}));
  const JsonValue& shown = *body.find("usage");
  CHECK(shown.find("cache_creation_input_tokens")->as_integer() == 248);
  CHECK(shown.find("cache_read_input_tokens")->as_integer() == 1800);
  const JsonValue& split = *shown.find("cache_creation");
  CHECK(split.find("ephemeral_5m_input_tokens")->as_integer() == 148);
  CHECK(split.find("ephemeral_1h_input_tokens")->as_integer() == 100);
}

TEST_CASE("an answer that ends before any text has empty content") {
  const AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = Usage{}});
  const JsonValue body = JsonValue::parse(reply.body({"max_tokens", ""}, {.all = 0}));
  CHECK(body.find("content")->as_array().empty());
  CHECK(body.find("stop_sequence")->is_null());
}

TEST_CASE("a matched stop sequence is named") {
  AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = Usage{}});
  const JsonValue body = JsonValue::parse(reply.body({"stop_sequence", "\n5"}, {.all = 21}));
  CHECK(string_at(body, {"stop_sequence"}) == "\n5");
  const auto events = events_of(reply.end({"stop_sequence", "\n5"}, {.all = 21}));
  CHECK(string_at(JsonValue::parse(events.at(0).data), {"delta", "stop_sequence"}) == "\n5");
}

TEST_CASE("a whole tool call keeps the model's bytes and has a direct caller") {
  AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = Usage{}});
  reply.collect(
      {tool_start("get_weather"), tool_input("{\"b\": 1,"), tool_input(" \"a\":2}"), stop()});
  const std::string body = without_tool_id(reply.body({"tool_use", ""}, {.all = 9}));
  CHECK(body.find(R"("content":[{"type":"tool_use","id":"ID","name":"get_weather",)"
                  R"("input":{"b": 1, "a":2},"caller":{"type":"direct"}}])")
        != std::string::npos);
}

TEST_CASE("a tool input that is no JSON object does not break the body") {
  for (const char* input : {"", "{\"city\": \"Os", "[1]", "{} {}", "{\"a\":\x80}"}) {
    CAPTURE(input);
    AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = Usage{}});
    reply.collect({tool_start("f"), tool_input(input), stop()});
    const JsonValue body = JsonValue::parse(reply.body({"max_tokens", ""}, {.all = 9}));
    CHECK(body.find("content")->as_array().at(0).find("input")->minified() == "{}");
  }
}

TEST_CASE("a streamed tool call is the trace of the specification, event by event") {
  AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = trace_usage()});
  std::string bytes = reply.begin(1);
  bytes += reply.pieces({tool_start("get_weather")});
  bytes += reply.pieces({tool_input("{\"city\": \"Oslo\"}"), stop()});
  bytes += reply.end({"tool_use", ""}, {.all = 92});
  const std::vector<Event> events = events_of(bytes);
  REQUIRE(names_of(events)
          == std::vector<std::string>{"message_start", "content_block_start", "ping",
                                      "content_block_delta", "content_block_delta",
                                      "content_block_stop", "message_delta", "message_stop"});
  CHECK(events[0].data
        == R"({"type":"message_start","message":{"model":"m","id":"msg_1","type":"message",)"
           R"("role":"assistant","content":[],"container":null,"stop_reason":null,)"
           R"("stop_sequence":null,"stop_details":null,"usage":{"input_tokens":6,)"
           R"("cache_creation_input_tokens":2670,"cache_read_input_tokens":45410,)"
           R"("cache_creation":{"ephemeral_5m_input_tokens":2670,"ephemeral_1h_input_tokens":0},)"
           R"("output_tokens":1,"service_tier":"standard","inference_geo":"global"},)"
           R"("diagnostics":null}})");
  CHECK(without_tool_id(events[1].data)
        == R"({"type":"content_block_start","index":0,"content_block":{"type":"tool_use",)"
           R"("id":"ID","name":"get_weather","input":{},"caller":{"type":"direct"}}})");
  CHECK(events[2].data == R"({"type": "ping"})");
  CHECK(events[3].data
        == R"({"type":"content_block_delta","index":0,)"
           R"("delta":{"type":"input_json_delta","partial_json":""}})");
  CHECK(events[4].data
        == R"({"type":"content_block_delta","index":0,)"
           R"("delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Oslo\"}"}})");
  CHECK(events[5].data == R"({"type":"content_block_stop","index":0})");
  CHECK(events[6].data
        == R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,)"
           R"("stop_details":null,"container":null},"usage":{"input_tokens":6,)"
           R"("cache_creation_input_tokens":2670,"cache_read_input_tokens":45410,)"
           R"("output_tokens":92,"output_tokens_details":{"thinking_tokens":0}}})");
  CHECK(events[7].data == R"({"type":"message_stop"})");
}

TEST_CASE("a thought streams as deltas, one signature and the end of its block") {
  for (const bool shown : {true, false}) {
    CAPTURE(shown);
    const incipit::gateway::PrefixKey bound{1, 2};
    const incipit::gateway::ReplyFacts facts{.model = "m",
                                             .message_id = "msg_1",
                                             .usage = Usage{},
                                             .bound_to = bound,
                                             .shows_thinking = shown};
    const std::vector<Piece> thought = {{Piece::Kind::thinking_start, "", ""},
                                        {Piece::Kind::thinking, "h", ""},
                                        {Piece::Kind::thinking, "m", ""},
                                        stop()};
    AnthropicReply reply(facts);
    std::string bytes = reply.begin(1);
    for (const Piece& piece : thought)
      bytes += reply.pieces({piece});
    bytes += reply.pieces({text_start(), text("A"), stop()});
    bytes += reply.end({"end_turn", ""}, {.all = 9, .thinking = 6});
    const std::vector<Event> events = events_of(bytes);
    // W-25: where the display is omitted, one empty delta, as captured.
    std::vector<std::string> names = {"message_start", "content_block_start", "ping"};
    names.insert(names.end(), shown ? 3 : 2, "content_block_delta");
    for (const char* name : {"content_block_stop", "content_block_start", "content_block_delta",
                             "content_block_stop", "message_delta", "message_stop"}) {
      names.emplace_back(name);
    }
    REQUIRE(names_of(events) == names);
    CHECK(events[1].data
          == R"({"type":"content_block_start","index":0,)"
             R"("content_block":{"type":"thinking","thinking":"","signature":""}})");
    CHECK(events[3].data
          == R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",)"
             R"("thinking":")"
                 + std::string(shown ? "h" : "") + R"("}})");
    const JsonValue signature = JsonValue::parse(events[shown ? 5 : 4].data);
    CHECK(string_at(signature, {"delta", "type"}) == "signature_delta");
    const std::string& signed_text = string_at(signature, {"delta", "signature"});
    const auto read = incipit::gateway::read_signature(signed_text);
    REQUIRE(read);
    CHECK(read->thought == "hm");
    CHECK(read->bound_to == bound);
    CHECK(events[events.size() - 2].data.find(R"("output_tokens_details":{"thinking_tokens":6})")
          != std::string::npos);

    AnthropicReply whole(facts);
    whole.collect(thought);
    const JsonValue body =
        JsonValue::parse(whole.body({"end_turn", ""}, {.all = 9, .thinking = 6}));
    const JsonValue& block = body.find("content")->as_array().at(0);
    CHECK(string_at(block, {"thinking"}) == (shown ? "hm" : ""));
    CHECK(string_at(block, {"signature"}) == signed_text);
  }
}

TEST_CASE("text and two tool calls stream in sequence with one ping after the first start") {
  AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = Usage{}});
  std::string bytes = reply.begin(1);
  bytes += reply.pieces({text_start(), text("Let me"), text(""), text(" look."), stop()});
  bytes += reply.pieces({tool_start("a"), tool_input("{}"), stop(), tool_start("b"), stop()});
  bytes += reply.end({"tool_use", ""}, {.all = 12});
  const std::vector<Event> events = events_of(bytes);
  const std::vector<std::string> expected = {
      "message_start",       "content_block_start", "ping",
      "content_block_delta", "content_block_delta", "content_block_stop",
      "content_block_start", "content_block_delta", "content_block_delta",
      "content_block_stop",  "content_block_start", "content_block_delta",
      "content_block_stop",  "message_delta",       "message_stop"};
  REQUIRE(names_of(events) == expected);
  CHECK(events[1].data
        == R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})");
  CHECK(
      events[3].data
      == R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me"}})");
  std::vector<std::int64_t> indices;
  std::set<std::string> ids;
  for (const Event& event : events) {
    const JsonValue data = JsonValue::parse(event.data);
    CHECK(string_at(data, {"type"}) == event.name);
    if (const JsonValue* index = data.find("index")) indices.push_back(*index->as_integer());
    if (event.name == "content_block_start" && indices.back() > 0) {
      ids.insert(string_at(data, {"content_block", "id"}));
    }
  }
  CHECK(indices == std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2});
  CHECK(ids.size() == 2);
}

TEST_CASE("a streamed answer without content has no blocks and no ping") {
  AnthropicReply reply({.model = "m", .message_id = "msg_1", .usage = Usage{}});
  CHECK(names_of(
            events_of(reply.begin(1) + reply.pieces({}) + reply.end({"end_turn", ""}, {.all = 1})))
        == std::vector<std::string>{"message_start", "message_delta", "message_stop"});
}

TEST_CASE("whatever the model says, every event stays one line of valid JSON") {
  const std::string nasty = std::string("a\nb\r\n\"\\\t\0", 9) + "\xe2\x80\xa8 \xff event: x\n\n";
  AnthropicReply reply({.model = "m\n", .message_id = "msg_1", .usage = Usage{}});
  std::string bytes = reply.pieces({text_start(), text(nasty), stop(), tool_start("n\n\nx")});
  bytes += reply.end({"stop_sequence", "\n\ndata: x"}, {.all = 3});
  bytes += AnthropicReply::error(invalid_request("line\n\nline"), "req_1");
  for (const Event& event : events_of(bytes))
    CHECK_NOTHROW((void)JsonValue::parse(event.data));
}

TEST_CASE("an error in the stream has the envelope and the request id") {
  const std::vector<Event> events =
      events_of(AnthropicReply::error({529, "overloaded_error", "Overloaded"}, "req_1"));
  REQUIRE(events.size() == 1);
  CHECK(events[0].name == "error");
  CHECK(events[0].data
        == R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},)"
           R"("request_id":"req_1"})");
}

TEST_CASE("an error body carries its code only when it has one") {
  ApiError error = invalid_request("threads are not served");
  CHECK(error_body(error, "req_1")
        == R"({"type":"error","error":{"type":"invalid_request_error",)"
           R"("message":"threads are not served"},"request_id":"req_1"})");
  error.error_code = "thread_unsupported_request";
  CHECK(error_body(error, "")
        == R"({"type":"error","error":{"type":"invalid_request_error",)"
           R"("message":"threads are not served",)"
           R"("details":{"error_code":"thread_unsupported_request"}},"request_id":null})");
}

TEST_CASE("ids have their prefix, 22 base58 characters and no repeats, across threads too") {
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 1000; ++i)
        mine.push_back(make_id("msg_01"));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::set<std::string> all;
  std::set<char> letters;
  for (const auto& mine : made) {
    for (const std::string& id : mine) {
      CHECK(id.size() == 28);
      CHECK(id.starts_with("msg_01"));
      all.insert(id);
      letters.insert(id.begin() + 6, id.end());
    }
  }
  CHECK(all.size() == 4000);
  CHECK(letters.size() == 58);
  for (const char missing : {'0', 'O', 'I', 'l'})
    CHECK(letters.count(missing) == 0);
}
