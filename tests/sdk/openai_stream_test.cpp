#include "incipit/openai.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace incipit::openai {
namespace {

using testing::ScriptedBody;

static_assert(std::ranges::input_range<ChatStream> && std::ranges::input_range<ResponseStream>);

// Transcripts of openai-wire sections 2.3 and 2.6.
std::string transcript(const char* name) {
  std::ifstream file(std::string(INCIPIT_TEST_DATA "/wire/") + name, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

HttpResponse reply(std::vector<std::string> pieces, std::shared_ptr<bool> closed = nullptr) {
  return {200,
          {{"X-Request-Id", "req_1"}},
          std::make_unique<ScriptedBody>(std::move(pieces), std::nullopt, std::move(closed))};
}

HttpResponse byte_by_byte(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text)
    pieces.emplace_back(1, c);
  return reply(std::move(pieces));
}

std::string chunk(const std::string& choices, const std::string& usage = "null") {
  return R"(data: {"id":"c","created":5,"model":"m","choices":[)" + choices + R"(],"usage":)"
         + usage + "}\n\n";
}

std::string delta(const std::string& delta, const std::string& finish_reason = "null") {
  return chunk(R"({"index":0,"delta":)" + delta + R"(,"finish_reason":)" + finish_reason + "}");
}

const std::string done = "data: [DONE]\n\n";

// Everything that a completion says but the exact JSON of its first chunk.
std::string digest(const ChatCompletion& completion) {
  std::string all = completion.id + "|" + completion.model;
  for (const ChatChoice& choice : completion.choices) {
    all += "|" + std::to_string(choice.index) + choice.message.role
           + choice.message.content.value_or("(null)") + choice.finish_reason;
    for (const ToolCall& call : choice.message.tool_calls)
      all += "," + call.id + call.type + call.name + call.arguments;
  }
  return all;
}

template <class Stream>
ApiError failure(Stream& stream) {
  try {
    while (stream.next()) {
    }
  } catch (const ApiError& error) {
    CHECK(!stream.next());
    return error;
  }
  FAIL("no ApiError");
  return ApiError("");
}

TEST_CASE("the transcript of a chat stream gives its tool call and its usage") {
  ChatStream stream(reply({transcript("openai_chat_stream.sse")}));
  std::vector<ChatChunk> chunks;
  for (const ChatChunk& one : stream)
    chunks.push_back(one);
  REQUIRE(chunks.size() == 4);
  REQUIRE(chunks[1].tool_calls.size() == 1);
  CHECK(chunks[1].tool_calls[0].arguments == R"({"a":1})");
  CHECK(chunks[1].tool_call_indexes == std::vector<std::int64_t>{0});
  CHECK(chunks[2].finish_reason == "tool_calls");
  CHECK(chunks[3].json.is_object());
  REQUIRE(chunks[3].usage);

  const ChatCompletion& completion = stream.completion();
  CHECK(completion.id == "chatcmpl-1");
  CHECK(completion.created == 1790000000);
  CHECK(completion.model == "m");
  CHECK(completion.request_id == "req_1");
  CHECK(completion.json.text() == chunks[0].json.text());
  REQUIRE(completion.choices.size() == 1);
  const ChatMessage& message = completion.choices[0].message;
  CHECK(message.role == "assistant");
  CHECK(!message.content);
  REQUIRE(message.tool_calls.size() == 1);
  CHECK(message.tool_calls[0].id == "call_1");
  CHECK(message.tool_calls[0].name == "get_x");
  CHECK(message.tool_calls[0].arguments == R"({"a":1})");
  REQUIRE(completion.usage);
  CHECK(completion.usage->input_tokens == 1300);
  CHECK(completion.usage->cached_tokens == 0);
  CHECK(completion.usage->cache_write_tokens == 1300);
}

TEST_CASE("every split of a chat stream gives the same completion") {
  const std::string text = delta(R"({"role":"assistant","content":""})")
                           + delta("{\"content\":\"Gr\u00fc\u00dfe \U0001f30d\"}")
                           + ": ping\r\n\r\n" + delta(R"({"content":" \ud83d\ude00"})")
                           + delta("{}", R"("stop")") + done;
  const std::string expected = "c|m|0assistantGr\u00fc\u00dfe \U0001f30d \U0001f600stop";
  CHECK(digest(ChatStream(byte_by_byte(text)).completion()) == expected);
  for (std::size_t at = 0; at <= text.size(); ++at) {
    std::vector<std::string> pieces;
    if (at > 0) pieces.push_back(text.substr(0, at));
    if (at < text.size()) pieces.push_back(text.substr(at));
    ChatStream stream(reply(std::move(pieces)));
    REQUIRE(digest(stream.completion()) == expected);
  }
  const std::string calls = transcript("openai_chat_stream.sse");
  CHECK(digest(ChatStream(byte_by_byte(calls)).completion())
        == digest(ChatStream(reply({calls})).completion()));
}

TEST_CASE("parallel calls and several choices are put together by their indexes") {
  const auto call = [](int index, const std::string& rest) {
    return delta(R"({"tool_calls":[{"index":)" + std::to_string(index) + "," + rest + "}]}");
  };
  ChatStream stream(reply(
      {call(0, R"("id":"a","type":"function","function":{"name":"f","arguments":""})")
       + call(0, R"("function":{"arguments":"{\"x\":"})")
       + call(1, R"("id":"b","type":"custom","custom":{"name":"g","input":"l"})")
       + call(0, R"("id":"a","function":{"name":"f","arguments":"1}"})")  // names sent again
       + call(1, R"("custom":{"input":"s"})")
       + chunk(R"({"index":1,"delta":{"role":"assistant","content":"B"},"finish_reason":null},)"
               R"({"index":0,"delta":{"role":"assistant"},"finish_reason":"tool_calls"})")
       + chunk(R"({"index":1,"delta":{"content":"C"},"finish_reason":"stop"})") + done}));
  CHECK(digest(stream.completion())
        == "c|m|0assistant(null)tool_calls,afunctionf{\"x\":1},bcustomgls|1assistantBCstop");
}

TEST_CASE("a chunk with two choices comes as two, its usage on the second") {
  ChatStream stream(reply({chunk(R"({"index":0,"delta":{"content":"a"},"finish_reason":"stop"},)"
                                 R"({"index":1,"delta":{"content":"b"},"finish_reason":"stop"})",
                                 R"({"prompt_tokens":3,"completion_tokens":2})")}));
  const auto first = stream.next();
  const auto second = stream.next();
  REQUIRE((first && second));
  CHECK(first->content == "a");
  CHECK(!first->usage);
  CHECK(second->choice == 1);
  CHECK(second->content == "b");
  REQUIRE(second->usage);
  CHECK(second->json == first->json);
  CHECK(!stream.next());
}

TEST_CASE("refusals add up") {
  ChatStream stream(reply({delta(R"({"role":"assistant","refusal":"I "})")
                           + delta(R"({"refusal":"won't."})", R"("stop")") + done}));
  CHECK(stream.completion().choices.at(0).message.refusal == "I won't.");
  CHECK(!stream.completion().choices.at(0).message.content);
}

TEST_CASE("usage is taken from any chunk, and a chunk without it takes nothing away") {
  ChatStream stream(reply({chunk("", R"({"prompt_tokens":9})") + delta(R"({"content":"x"})")
                           + chunk("", R"({"prompt_tokens":10,"completion_tokens":1})")
                           + delta("{}", R"("stop")") + done}));
  const ChatCompletion& completion = stream.completion();
  REQUIRE(completion.usage);
  CHECK(completion.usage->input_tokens == 10);
  CHECK(!completion.usage->cached_tokens);
}

TEST_CASE("a stream may end after its finish_reason without [DONE] and without a blank line") {
  std::string text = delta(R"({"content":"x"})") + delta("{}", R"("stop")");
  text.resize(text.size() - 2);
  CHECK(ChatStream(reply({text})).completion().text() == "x");
}

TEST_CASE("line ends, comments, spaces and text behind [DONE] are what the server likes") {
  const std::string text =
      ": hello\r\n\r\ndata:{\"choices\":\r\ndata: [{\"delta\":{\"content\":\"x\"}}]}\r\n\r\n"
      "data: [DONE] bye\r\n\r\ndata: not JSON\r\n\r\n";
  CHECK(ChatStream(byte_by_byte(text)).completion().text() == "x");
}

TEST_CASE("a stream that ends before a finish_reason of each choice is an error") {
  for (const std::string& text :
       {std::string(), delta(R"({"content":"x"})"), std::string("{\"choices\":[]}"),
        delta("{}", R"("stop")") + chunk(R"({"index":1,"delta":{"content":"x"}})")}) {
    CAPTURE(text);
    ChatStream stream(text.empty() ? reply({}) : reply({text}));
    CHECK_THROWS_AS((void)stream.completion(), ParseError);
    CHECK(!stream.next());
    CHECK_THROWS_AS((void)stream.completion(), ParseError);
  }
}

TEST_CASE("chunks that are none are refused with their path") {
  const auto path = [](const std::string& text) {
    ChatStream stream(reply({text}));
    try {
      (void)stream.completion();
    } catch (const ParseError& error) {
      return error.path;
    }
    return std::string("accepted");
  };
  CHECK(path("data: {\n\n").empty());
  CHECK(path("data: 7\n\n").empty());
  CHECK(path(delta(R"({"content":7})")) == "choices.0.delta.content");
  CHECK(path(delta(R"({"tool_calls":[{"function":{"arguments":""}}]})"))
        == "choices.0.delta.tool_calls.0.index");
}

TEST_CASE("an error chunk is thrown with type, code and request id, and ends the stream") {
  auto closed = std::make_shared<bool>(false);
  ChatStream stream(reply(
      {delta(R"({"content":"x"})"),
       R"(data: {"error":{"message":"Broken.","type":"server_error","param":null,"code":null}})"
       "\n\n",
       delta("{}", R"("stop")")},
      closed));
  const ApiError error = failure(stream);
  CHECK(error.status == 0);
  CHECK(error.type == ErrorType::api_error);
  CHECK(error.type.text == "server_error");
  CHECK(error.message == "Broken.");
  CHECK(error.request_id == "req_1");
  CHECK(*closed);
  CHECK(stream.snapshot().text() == "x");
  CHECK_THROWS_AS((void)stream.completion(), ParseError);
}

TEST_CASE("errors of other servers are errors too, and a null is none") {
  ChatStream flat(
      reply({"data: {\"object\":\"error\",\"message\":\"Too long\",\"code\":400}\n\n"}));
  CHECK(failure(flat).error_code == "400");
  ChatStream word(reply({"data: {\"error\":\"out of memory\"}\n\n"}));
  CHECK(failure(word).message == "out of memory");
  ChatStream fine(reply({"data: {\"error\":null,\"choices\":[]}\n\n" + done}));
  CHECK(fine.completion().choices.empty());
}

TEST_CASE("a broken connection is what the transport says, whatever has come") {
  HttpResponse response{
      200,
      {},
      std::make_unique<ScriptedBody>(std::vector{delta(R"({"content":"x"})")},
                                     TransportError(TransportError::Kind::broken, "gone", false))};
  ChatStream stream(std::move(response));
  CHECK(stream.next()->content == "x");
  CHECK_THROWS_AS((void)stream.next(), TransportError);
  CHECK(!stream.next());
}

TEST_CASE("closing or destroying a stream closes the connection") {
  auto closed = std::make_shared<bool>(false);
  ChatStream stream(reply({delta(R"({"content":"x"})"), done}, closed));
  CHECK(stream.next());
  CHECK(!*closed);
  stream.close();
  CHECK(*closed);
  CHECK(!stream.next());
  CHECK_THROWS_AS((void)stream.completion(), ParseError);

  *closed = false;
  { const ResponseStream other(reply({"x"}, closed)); }
  CHECK(*closed);
}

TEST_CASE("[DONE] closes the connection without waiting for the server to do so") {
  auto closed = std::make_shared<bool>(false);
  ChatStream stream(reply({delta("{}", R"("stop")") + done, "more"}, closed));
  CHECK(stream.next());
  CHECK(!stream.next());
  CHECK(*closed);
  CHECK(stream.completion().choices.size() == 1);
}

TEST_CASE("the transcript of a response stream gives its events and the final object") {
  ResponseStream stream(byte_by_byte(transcript("openai_response_stream.sse")));
  std::vector<ResponseEvent> events;
  for (const ResponseEvent& event : stream)
    events.push_back(event);
  REQUIRE(events.size() == 7);
  for (std::size_t i = 0; i < events.size(); ++i)
    CHECK(events[i].sequence_number == static_cast<std::int64_t>(i));
  CHECK(events[0].type == "response.created");
  CHECK(events[3].type == "response.function_call_arguments.delta");
  CHECK(events[3].delta == R"({"a":1})");
  const Response& response = stream.response();
  CHECK(response.status == "completed");
  CHECK(response.request_id == "req_1");
  REQUIRE(response.output.size() == 1);
  CHECK(response.output[0].call.id == "call_1");
  CHECK(response.output[0].json.text()
        == R"({"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"a\":1}",)"
           R"("call_id":"call_1","name":"get_x"})");
  REQUIRE(response.usage);
  CHECK(response.usage->cached_tokens == 2000);
}

TEST_CASE("an incomplete and a failed response end their streams and are returned") {
  ResponseStream incomplete(
      reply({"data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
             "\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[]}}\n\n"}));
  CHECK(incomplete.response().incomplete_reason == "max_output_tokens");

  ResponseStream failed(reply(
      {"event: response.failed\ndata: {\"response\":{\"status\":\"failed\",\"error\":{\"code\":"
       "\"server_error\",\"message\":\"It broke.\"},\"output\":[]}}\n\n"}));
  const auto event = failed.next();
  REQUIRE(event);
  CHECK(event->type == "response.failed");
  CHECK(failed.response().status == "failed");
  CHECK(failed.response().error_message == "It broke.");
}

TEST_CASE("both shapes of the error event are thrown") {
  const std::string fields =
      R"("code":"rate_limit_exceeded","message":"Slow down.","param":"input")";
  const std::string shapes[] = {
      R"({"type":"error",)" + fields + R"(,"sequence_number":3})",
      R"({"type":"error","error":{"type":"requests",)" + fields + R"(},"sequence_number":3})"};
  for (const std::string& shape : shapes) {
    CAPTURE(shape);
    ResponseStream stream(reply({"event: error\ndata: " + shape + "\n\n"}));
    const ApiError error = failure(stream);
    CHECK(error.type == ErrorType::rate_limit_error);
    CHECK(error.error_code == "rate_limit_exceeded");
    CHECK(error.message == "Slow down.");
    CHECK(error.param == "input");
    CHECK(error.body == shape);
    CHECK_THROWS_AS((void)stream.response(), ParseError);
  }
  ResponseStream named(reply({"event: error\ndata: {\"message\":\"m\"}\n\n"}));
  CHECK(failure(named).message == "m");
}

TEST_CASE("a response stream without an end is an error, with [DONE] or without") {
  const std::string event = "data: {\"type\":\"response.in_progress\"}\n\n";
  for (const std::string& text : {event, event + done}) {
    ResponseStream stream(reply({text}));
    CHECK(stream.next());
    CHECK_THROWS_AS((void)stream.next(), ParseError);
    CHECK(!stream.next());
    CHECK_THROWS_AS((void)stream.response(), ParseError);
  }
}

}  // namespace
}  // namespace incipit::openai
