#include "incipit/stream.h"

#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

using testing::ScriptedBody;

// The trace of anthropic-wire section 10.
constexpr const char* trace =
    R"(event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":2670,"cache_read_input_tokens":45410,"cache_creation":{"ephemeral_5m_input_tokens":2670,"ephemeral_1h_input_tokens":0},"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{},"caller":{"type":"direct"}}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Oslo\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":6,"cache_creation_input_tokens":2670,"cache_read_input_tokens":45410,"output_tokens":92,"output_tokens_details":{"thinking_tokens":0}}}

event: message_stop
data: {"type":"message_stop"}

)";

// The same reply, not streamed.
constexpr const char* whole =
    R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city": "Oslo"},"caller":{"type":"direct"}}],"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"container":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":2670,"cache_read_input_tokens":45410,"cache_creation":{"ephemeral_5m_input_tokens":2670,"ephemeral_1h_input_tokens":0},"output_tokens":92,"output_tokens_details":{"thinking_tokens":0}}})";

constexpr const char* start_of_text =
    "event: message_start\n"
    R"(data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}})"
    "\n\nevent: content_block_start\n"
    R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
    "\n\nevent: content_block_delta\n"
    R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}})"
    "\n\n";

HttpResponse reply(std::vector<std::string> pieces, std::shared_ptr<bool> closed = nullptr,
                   std::optional<TransportError> failure = std::nullopt) {
  return {200,
          {{"Content-Type", "text/event-stream; charset=utf-8"}, {"Request-Id", "req_7"}},
          std::make_unique<ScriptedBody>(std::move(pieces), std::move(failure), std::move(closed))};
}

std::string blocks_of(const Message& message) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_array();
  for (const ContentBlock& block : message.content)
    block.write(writer);
  writer.end_array();
  return out;
}

std::string parse_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const ParseError& error) {
    return error.what();
  }
  return "(none)";
}

TEST_CASE("a streamed reply equals the same one that was not streamed") {
  const Message expected = parse_message(whole);
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
    std::vector<std::string> pieces;
    for (std::string_view rest = trace; !rest.empty();
         rest.remove_prefix(std::min(size, rest.size())))
      pieces.emplace_back(rest.substr(0, size));
    MessageStream stream(reply(pieces));
    const Message& message = stream.message();
    CHECK(message.id == expected.id);
    CHECK(message.model == expected.model);
    CHECK(message.stop_reason == expected.stop_reason);
    CHECK(message.stop_sequence == expected.stop_sequence);
    CHECK(message.usage == expected.usage);
    CHECK(blocks_of(message) == blocks_of(expected));
    CHECK(message.content.at(0).get_if<ToolUseBlock>()->input.text() == R"({"city": "Oslo"})");
    CHECK(message.request_id == "req_7");
  }
}

TEST_CASE("a loop sees every event but pings, and the message afterwards") {
  MessageStream stream(reply({trace}));
  std::string kinds;
  std::string input;
  for (const StreamEvent& event : stream) {
    kinds += std::to_string(event.value.index());
    if (const std::string* piece = event.input_json()) input += *piece;
    if (event.get_if<MessageStartEvent>() != nullptr)
      CHECK(event.get_if<MessageStartEvent>()->message.request_id == "req_7");
  }
  CHECK(kinds == "0122345");
  CHECK(input == R"({"city": "Oslo"})");
  CHECK(stream.message().id == "msg_1");
  CHECK(stream.request_id() == "req_7");
  CHECK(stream.headers().size() == 2);
  CHECK_FALSE(stream.next());
}

TEST_CASE("snapshots show the message as far as it has come") {
  MessageStream stream(reply({start_of_text}));
  (void)stream.next();
  CHECK(stream.snapshot().content.empty());
  (void)stream.next();
  (void)stream.next();
  CHECK(stream.snapshot().text() == "Hello");
  CHECK_FALSE(stream.snapshot().stop_reason);
  CHECK(stream.partial_input(0).is_null());
  CHECK(stream.partial_input(9).is_null());
}

TEST_CASE("`finished` sees the final message before anybody else, and may add to it") {
  int calls = 0;
  MessageStream stream(reply({trace}), [&](Message& message) {
    ++calls;
    CHECK(message.usage.output_tokens == 92);
    message.request_id += "!";
  });
  while (const auto event = stream.next())
    if (event->get_if<MessageStopEvent>() != nullptr)
      CHECK(stream.snapshot().request_id == "req_7!");
  CHECK(stream.message().request_id == "req_7!");
  CHECK(calls == 1);
}

TEST_CASE(
    "the body is read to its end, so that the connection can be used again, and then let go") {
  const auto closed = std::make_shared<bool>(false);

  struct Counting : HttpBody {
    std::vector<std::string> pieces{trace, ": trailing comment\n\n"};
    std::size_t* reads;

    explicit Counting(std::size_t* counter) : reads(counter) {}

    std::string_view read() override {
      const std::size_t at = (*reads)++;
      return at < pieces.size() ? std::string_view(pieces[at]) : std::string_view();
    }
  };

  std::size_t reads = 0;
  MessageStream stream({200, {}, std::make_unique<Counting>(&reads)});
  CHECK(stream.text().empty());
  CHECK(reads == 3);
}

TEST_CASE("what goes wrong behind message_stop is nobody's concern") {
  MessageStream stream(
      reply({trace}, nullptr, TransportError(TransportError::Kind::broken, "cut", false)));
  CHECK(stream.message().id == "msg_1");
}

TEST_CASE("an error event is thrown as the server's refusal, with the request id (W-27)") {
  const std::string error =
      "event: error\n"
      R"(data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})"
      "\n\n";
  const auto closed = std::make_shared<bool>(false);
  MessageStream stream(reply({start_of_text + error, "event: ping\n"}, closed));
  for (int event = 0; event < 3; ++event)
    CHECK(stream.next());
  try {
    (void)stream.next();
    FAIL("nothing was thrown");
  } catch (const ApiError& thrown) {
    CHECK(thrown.type == ErrorType::overloaded_error);
    CHECK(thrown.status == 0);
    CHECK(thrown.message == "Overloaded");
    CHECK(thrown.request_id == "req_7");
  }
  CHECK(*closed);
  CHECK_FALSE(stream.next());
  CHECK(stream.snapshot().text() == "Hello");
  CHECK(parse_error([&] { (void)stream.message(); })
        == "the stream was closed, or failed, before its message was complete");
}

TEST_CASE("a stream that ends too early has no message") {
  CHECK(parse_error([] { (void)MessageStream(reply({})).message(); })
        == "the stream ended without any events");
  CHECK(parse_error([] {
          (void)MessageStream(reply({": comment\n\n", "data: [DONE]\n\n"})).message();
        })
        == "the stream ended without any events");
  CHECK(parse_error([] { (void)MessageStream(reply({start_of_text})).message(); })
        == "the stream ended without message_stop: the message is not complete");
}

TEST_CASE("a last event without its blank line counts") {
  const std::string text = trace;
  MessageStream stream(reply({text.substr(0, text.size() - 2)}));
  CHECK(stream.message().id == "msg_1");
}

TEST_CASE("a connection that breaks in the middle is a TransportError, and nothing follows") {
  const auto closed = std::make_shared<bool>(false);
  MessageStream stream(
      reply({start_of_text}, closed, TransportError(TransportError::Kind::broken, "cut", false)));
  CHECK_THROWS_AS((void)stream.message(), TransportError);
  CHECK(*closed);
  CHECK_FALSE(stream.next());
}

TEST_CASE("what is no event is a ParseError") {
  for (const char* data :
       {"nonsense", "[]", "{}", R"({"type":7})", R"({"type":"message_start"})"}) {
    CAPTURE(data);
    MessageStream stream(reply({std::string("event: message_start\ndata: ") + data + "\n\n"}));
    CHECK_THROWS_AS((void)stream.next(), ParseError);
    CHECK_FALSE(stream.next());
  }
}

TEST_CASE("closing, and leaving, end the exchange") {
  const auto closed = std::make_shared<bool>(false);
  {
    MessageStream stream(reply({start_of_text, trace}, closed));
    CHECK(stream.next());
    MessageStream moved = std::move(stream);
    CHECK(moved.next());
    CHECK_FALSE(*closed);
    SUBCASE("close") {
      moved.close();
      CHECK(*closed);
      CHECK_FALSE(moved.next());
      CHECK_THROWS_AS((void)moved.message(), ParseError);
    }
    SUBCASE("destruction") {}
  }
  CHECK(*closed);
}

TEST_CASE("an answer that is no stream is named as such") {
  for (const char* type : {"application/json", "application/json; charset=utf-8", "text/html"}) {
    const std::string message = parse_error([&] {
      (void)MessageStream(testing::response(200, whole, {{"content-type", type}}));
    });
    CHECK(message.find(type) != std::string::npos);
    CHECK(message.find("text/event-stream") != std::string::npos);
  }
}

TEST_CASE("a recorded body without headers can be replayed") {
  MessageStream stream({200, {}, whole_body(trace)});
  CHECK(stream.message().stop_reason->known == StopReason::tool_use);
}

}  // namespace
}  // namespace incipit
