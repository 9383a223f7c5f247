// Events of a stream. Data: the trace of anthropic-wire section 10, and streams after its sections
// 5 and 10.
#include "incipit/stream.h"
#include "sdk/src/sse_parser.h"
#include "tests/support/test_data.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace incipit {
namespace {

std::vector<StreamEvent> events_of(const std::string& name) {
  std::vector<StreamEvent> events;
  const std::string body = test_data("wire/" + name + ".sse");
  SseParser parser;
  parser.feed(body);
  while (const auto frame = parser.next()) {
    if (auto event = parse_stream_event(frame->data)) events.push_back(std::move(*event));
  }
  return events;
}

Message message_of(const std::string& name) {
  MessageAccumulator accumulator;
  for (const StreamEvent& event : events_of(name))
    accumulator.add(event);
  REQUIRE(accumulator.complete());
  return accumulator.snapshot();
}

TEST_CASE("the trace of a tool call in section 10") {
  const auto events = events_of("sdk_stream_tool");
  REQUIRE(events.size() == 7);  // the ping is not among them
  const Message& start = events[0].get_if<MessageStartEvent>()->message;
  CHECK(start.id == "msg_1");
  CHECK_FALSE(start.stop_reason);
  CHECK(start.usage
        == Usage{.input_tokens = 6,
                 .cache_creation_5m = 2670,
                 .cache_read_input_tokens = 45410,
                 .output_tokens = 1});
  const auto* block = events[1].get_if<ContentBlockStartEvent>();
  REQUIRE(block != nullptr);
  CHECK(block->index == 0);
  CHECK(block->content_block.get_if<ToolUseBlock>()->name == "get_weather");
  CHECK(block->content_block.get_if<ToolUseBlock>()->input.text() == "{}");
  REQUIRE(events[2].input_json() != nullptr);
  CHECK(events[2].input_json()->empty());
  REQUIRE(events[3].input_json() != nullptr);
  CHECK(*events[3].input_json() == R"({"city": "Oslo"})");
  CHECK(events[3].text() == nullptr);
  CHECK(events[3].thinking() == nullptr);
  CHECK(events[4].get_if<ContentBlockStopEvent>()->index == 0);
  const auto* end = events[5].get_if<MessageDeltaEvent>();
  REQUIRE(end != nullptr);
  CHECK(end->stop_reason == Word<StopReason>{StopReason::tool_use, "tool_use"});
  CHECK_FALSE(end->stop_sequence);
  CHECK(end->stop_details.empty());
  CHECK(end->container.empty());
  CHECK(end->usage.input_tokens == 6);
  CHECK(end->usage.cache_creation_input_tokens == 2670);
  CHECK(end->usage.cache_read_input_tokens == 45410);
  CHECK(end->usage.output_tokens == 92);
  CHECK(end->usage.thinking_tokens == 0);
  CHECK_FALSE(end->usage.web_search_requests);
  CHECK(events[6].get_if<MessageStopEvent>() != nullptr);

  CHECK(message_of("sdk_stream_tool").content.at(0).get_if<ToolUseBlock>()->input.text()
        == R"({"city": "Oslo"})");
}

TEST_CASE("thinking, omitted thinking (W-25), redacted thinking, and a stop sequence") {
  const auto events = events_of("sdk_stream_thinking");
  REQUIRE(events[2].thinking() != nullptr);
  CHECK(*events[2].thinking() == "Let me ");
  const auto* signature = events[4].get_if<ContentBlockDeltaEvent>();
  CHECK(std::get<SignatureDelta>(signature->delta).signature == "c2ln");
  REQUIRE(events[7].thinking() != nullptr);
  CHECK(events[7].thinking()->empty());

  const Message message = message_of("sdk_stream_thinking");
  REQUIRE(message.content.size() == 4);
  CHECK(message.content[0].get_if<ThinkingBlock>()->thinking == "Let me see.");
  CHECK(message.content[1].get_if<ThinkingBlock>()->thinking.empty());
  CHECK(message.content[1].get_if<ThinkingBlock>()->signature == "b21pdHRlZA==");
  CHECK(message.content[2].get_if<RedactedThinkingBlock>()->data == "cmVk");
  CHECK(message.text() == "1 2 3 4 é");
  CHECK(message.stop_reason == StopReason::stop_sequence);
  CHECK(message.stop_sequence == "5");
  CHECK(message.usage.output_tokens == 21);
  CHECK(message.usage.thinking_tokens == 8);
}

TEST_CASE("a server tool, its result, citations, counters that grow (W-20, W-21)") {
  const auto events = events_of("sdk_stream_server_tools");
  const auto* citation = events[8].get_if<ContentBlockDeltaEvent>();
  REQUIRE(citation != nullptr);
  CHECK(std::get<CitationsDelta>(citation->delta).citation.cited_text == "Deep.");
  const auto* end = events[11].get_if<MessageDeltaEvent>();
  REQUIRE(end != nullptr);
  CHECK(end->usage.web_search_requests == 1);
  CHECK(end->usage.web_fetch_requests == 0);
  CHECK_FALSE(end->usage.thinking_tokens);
  CHECK(end->container.text() == R"({"id":"container_1","expires_at":"2026-12-01T00:00:00Z"})");

  const Message message = message_of("sdk_stream_server_tools");
  REQUIRE(message.content.size() == 3);
  CHECK(message.content[0].get_if<ServerToolUseBlock>()->input.text() == R"({"query": "fjords"})");
  CHECK(message.content[1].type() == "web_search_tool_result");
  CHECK(message.content[2].get_if<TextBlock>()->citations.size() == 1);
  CHECK(message.stop_reason == StopReason::pause_turn);
  CHECK(message.usage.prompt_tokens() == 700 + 300 + 4000);
  CHECK(message.usage.inference_geo == "us");
}

TEST_CASE("unknown events, deltas, blocks and stop reasons are kept as they came (W-28)") {
  const auto events = events_of("sdk_stream_unknown");
  CHECK(events[1].get_if<ContentBlockStartEvent>()->content_block.type() == "fallback");
  const auto* delta = events[4].get_if<ContentBlockDeltaEvent>();
  REQUIRE(delta != nullptr);
  const auto& unknown = std::get<UnknownDelta>(delta->delta);
  CHECK(unknown.type == "compaction_delta");
  CHECK(unknown.json.text()
        == R"({"type":"compaction_delta","content":"Summary","encrypted_content":"ZW5j"})");
  CHECK(events[4].text() == nullptr);
  const auto* event = events[6].get_if<UnknownEvent>();
  REQUIRE(event != nullptr);
  CHECK(event->type == "weather_report");
  CHECK(event->json.text() == R"({"type":"weather_report","sky":"blue", "degrees":21.50})");
  const auto* end = events[7].get_if<MessageDeltaEvent>();
  REQUIRE(end != nullptr);
  CHECK(end->stop_reason == Word<StopReason>{StopReason::unknown, "bored"});
  CHECK(end->usage.output_tokens == 7);
  CHECK_FALSE(end->usage.input_tokens);
}

TEST_CASE("an error in a stream is thrown, without a status") {
  try {
    (void)events_of("sdk_stream_error");
    FAIL("not thrown");
  } catch (const ApiError& error) {
    CHECK(error.status == 0);
    CHECK(error.type == ErrorType::overloaded_error);
    CHECK(error.message == "Overloaded");
    CHECK(error.request_id == "req_7");
  }
}

TEST_CASE("what is no event is refused with path and offset") {
  const auto refused = [](const std::string& json) {
    try {
      (void)parse_stream_event(json);
    } catch (const ParseError& error) {
      return error.path + " " + std::to_string(error.offset);
    }
    return std::string("was not refused");
  };
  CHECK(refused("") == " 0");
  CHECK(refused("[DONE]") == " 1");
  CHECK(refused("[]") == " 0");
  CHECK(refused("{}") == "type 0");
  CHECK(refused(R"({"type":7})") == "type 8");
  CHECK(refused(R"({"type":"content_block_stop"})") == "index 0");
  CHECK(refused(R"({"type":"content_block_stop","index":-1})") == "index 37");
  CHECK(refused(R"({"type":"content_block_stop","index":"0"})") == "index 37");
  CHECK(refused(R"({"type":"content_block_stop","index":99999999999999999999})") == "index 37");
  CHECK(refused(R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}})")
        == "delta.text 48");
  CHECK(refused(R"({"type":"message_start","message":{"id":1}})") == "message.id 40");
}

TEST_CASE("names and words are the same when they are written with escapes") {
  const auto event = parse_stream_event(
      R"({ "\u0074ype" : "content\u005fblock_delta" , "index" : 2.0 , "delta" : )"
      R"({ "type" : "text_delta" , "text" : "\ud83d\ude00 \"a\\" } } )");
  REQUIRE(event);
  CHECK(event->get_if<ContentBlockDeltaEvent>()->index == 2);
  CHECK(*event->text() == "😀 \"a\\");
}

}  // namespace
}  // namespace incipit
