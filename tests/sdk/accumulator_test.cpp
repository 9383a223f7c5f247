#include "incipit/stream.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

constexpr const char* message_start =
    R"({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":2670,"cache_read_input_tokens":45410,"cache_creation":{"ephemeral_5m_input_tokens":70,"ephemeral_1h_input_tokens":2600},"output_tokens":1,"service_tier":"standard"}}})";

struct Fixture {
  MessageAccumulator accumulator;

  void add(std::string_view event) {
    const auto parsed = parse_stream_event(event);
    REQUIRE(parsed);
    accumulator.add(*parsed);
  }

  void start(std::size_t index, const std::string& block) {
    if (index == 0) add(message_start);
    add(R"({"type":"content_block_start","index":)" + std::to_string(index) + R"(,"content_block":)"
        + block + "}");
  }

  void delta(std::size_t index, const std::string& delta) {
    add(R"({"type":"content_block_delta","index":)" + std::to_string(index) + R"(,"delta":)" + delta
        + "}");
  }

  void input(const std::string& partial_json) {
    std::string delta = R"({"type":"input_json_delta","partial_json":)";
    JsonWriter(delta).string(partial_json);
    this->delta(0, delta + "}");
  }

  void stop(std::size_t index) {
    add(R"({"type":"content_block_stop","index":)" + std::to_string(index) + "}");
  }

  [[nodiscard]] const ContentBlock& block(std::size_t index = 0) const {
    return accumulator.snapshot().content.at(index);
  }

  // What is sent back.
  [[nodiscard]] std::string json(std::size_t index = 0) const {
    std::string out;
    JsonWriter writer(out);
    block(index).write(writer);
    return out;
  }
};

TEST_CASE_FIXTURE(Fixture, "text grows with its deltas and goes back as the start event's object") {
  start(0, R"({"zeta":1.50,"type":"text","text":"","new":{"b":null,"a":[]}})");
  delta(0, R"({"type":"text_delta","text":"Hé"})");
  CHECK(accumulator.snapshot().text() == "Hé");
  CHECK(json() == R"({"type":"text","text":"Hé"})");  // unfinished: no bytes to be faithful to
  delta(0, R"({"type":"text_delta","text":"llo \"\n"})");
  stop(0);
  CHECK(accumulator.snapshot().text() == "Héllo \"\n");
  CHECK(json() == R"({"zeta":1.50,"type":"text","text":"Héllo \"\n","new":{"b":null,"a":[]}})");
  CHECK(block().received().text() == json());
}

TEST_CASE_FIXTURE(Fixture, "a block that came complete keeps its bytes") {
  const std::string redacted = R"({"type":"redacted_thinking", "data":"\u0041bc"})";
  const std::string result =
      R"({"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result", "url":"u","title":"t","encrypted_content":"e"}]})";
  start(0, redacted);
  stop(0);
  start(1, result);
  stop(1);
  CHECK(json(0) == redacted);
  CHECK(json(1) == result);
}

TEST_CASE_FIXTURE(Fixture, "thinking is appended, its signature replaced (W-25)") {
  start(0, R"({"type":"thinking","thinking":"","signature":""})");
  delta(0, R"({"type":"thinking_delta","thinking":"Let me"})");
  delta(0, R"({"type":"thinking_delta","thinking":" see"})");
  delta(0, R"({"type":"signature_delta","signature":"old"})");
  delta(0, R"({"type":"signature_delta","signature":"EqQB"})");
  stop(0);
  REQUIRE(block().is<ThinkingBlock>());
  CHECK(block().get_if<ThinkingBlock>()->thinking == "Let me see");
  CHECK(block().get_if<ThinkingBlock>()->signature == "EqQB");
  CHECK(json() == R"({"type":"thinking","thinking":"Let me see","signature":"EqQB"})");
}

TEST_CASE_FIXTURE(Fixture,
                  "citations are appended, as they came, to the list of their block (W-26)") {
  const std::string first =
      R"({"type":"char_location","cited_text":"a","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null})";
  const std::string second = R"({"type":"of_the_future","cited_text":"b"})";
  SUBCASE("that was empty") {
    start(0, R"({"citations":[],"type":"text","text":""})");
  }
  SUBCASE("that was absent") {
    start(0, R"({"type":"text","text":""})");
  }
  delta(0, R"({"type":"citations_delta","citation":)" + first + "}");
  delta(0, R"({"type":"text_delta","text":"t"})");
  delta(0, R"({"type":"citations_delta","citation":)" + second + "}");
  stop(0);
  REQUIRE(block().get_if<TextBlock>()->citations.size() == 2);
  CHECK(block().get_if<TextBlock>()->citations[0].end == 1);
  const std::string citations = R"("citations":[)" + first + "," + second + "]";
  const bool absent = json().starts_with(R"({"type")");
  CHECK(json()
        == (absent ? R"({"type":"text","text":"t",)" + citations + "}"
                   : "{" + citations + R"(,"type":"text","text":"t"})"));
}

TEST_CASE_FIXTURE(Fixture, "tool input is the concatenation of its pieces, byte for byte (W-23)") {
  start(0,
        R"({"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}})");
  CHECK(accumulator.partial_input(0) == JsonValue::parse("{}"));
  input("");
  CHECK(accumulator.partial_input(0) == JsonValue::parse("{}"));
  input(R"({"city": "Os)");
  CHECK(accumulator.partial_input(0) == JsonValue::parse(R"({"city":"Os"})"));
  CHECK(block().get_if<ToolUseBlock>()->input.text() == "{}");
  input(R"(lo",  "n": 1.0})");
  stop(0);
  CHECK(block().get_if<ToolUseBlock>()->input.text() == R"({"city": "Oslo",  "n": 1.0})");
  CHECK(
      json()
      == R"({"type":"tool_use","id":"toolu_1","name":"f","input":{"city": "Oslo",  "n": 1.0},"caller":{"type":"direct"}})");
  CHECK(accumulator.partial_input(0) == JsonValue::parse(R"({"city": "Oslo", "n": 1.0})"));
}

TEST_CASE_FIXTURE(Fixture, "input without any piece is an empty object (W-23)") {
  const std::string call = R"({"type":"tool_use","id":"toolu_1","name":"f","input":{}})";
  start(0, call);
  SUBCASE("no delta") {}
  SUBCASE("an empty one") {
    input("");
  }
  SUBCASE("an empty object") {
    input("{}");
  }
  stop(0);
  CHECK(block().get_if<ToolUseBlock>()->input.text() == "{}");
  CHECK(json() == call);
}

TEST_CASE_FIXTURE(Fixture,
                  "input that was cut off is left empty and can still be looked at (W-24)") {
  const std::string call = R"({"type":"tool_use","id":"toolu_1","name":"f","input":{}})";
  start(0, call);
  SUBCASE("in the middle of a string") {
    input(R"({"a":1,"b":"begin)");
    stop(0);
    CHECK(accumulator.partial_input(0) == JsonValue::parse(R"({"a":1,"b":"begin"})"));
  }
  SUBCASE("no object") {
    input("[1]");
    stop(0);
  }
  SUBCASE("nonsense") {
    input("{]");
    stop(0);
    CHECK_THROWS_AS((void)accumulator.partial_input(0), ParseError);
  }
  CHECK(block().get_if<ToolUseBlock>()->input.text() == "{}");
  CHECK(json() == call);
}

TEST_CASE_FIXTURE(Fixture,
                  "input of a server tool and of an unknown kind of call is put together too") {
  for (const std::string kind : {"server_tool_use", "mcp_tool_use"}) {
    accumulator = {};
    start(0,
          R"({"type":")" + kind + R"(","id":"x_1","name":"web_search","input":{},"server":"s"})");
    input(R"({"query": "q"})");
    stop(0);
    CHECK(block().type() == kind);
    CHECK(json()
          == R"({"type":")" + kind
                 + R"(","id":"x_1","name":"web_search","input":{"query": "q"},"server":"s"})");
  }
}

TEST_CASE_FIXTURE(Fixture, "unknown deltas and events change nothing (W-28)") {
  const std::string text = R"({"type":"text","text":"t"})";
  start(0, text);
  delta(0, R"({"type":"glow_delta","glow":1})");
  add(R"({"type":"weather","sunny":true})");
  delta(0, R"({"type":"thinking_delta","thinking":"not here"})");
  stop(0);
  CHECK(json() == text);
}

TEST_CASE_FIXTURE(Fixture, "a compaction block gets what its delta brings") {
  start(0, R"({"type":"compaction","content":null})");
  delta(0, R"({"type":"compaction_delta","content":"Summary","encrypted_content":"xyz"})");
  stop(0);
  CHECK(json() == R"({"type":"compaction","content":"Summary","encrypted_content":"xyz"})");
}

TEST_CASE_FIXTURE(Fixture, "blocks are addressed by their index, whichever order they end in") {
  start(0, R"({"type":"text","text":""})");
  start(1, R"({"type":"text","text":""})");
  delta(1, R"({"type":"text_delta","text":"b"})");
  delta(0, R"({"type":"text_delta","text":"a"})");
  stop(1);
  add(R"({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"output_tokens":2}})");
  add(R"({"type":"message_stop"})");  // ends block 0 as well
  CHECK(accumulator.snapshot().text() == "ab");
  CHECK(json(0) == R"({"type":"text","text":"a"})");
  CHECK(block(0).received().text() == json(0));
  CHECK(accumulator.complete());
}

TEST_CASE_FIXTURE(Fixture, "usage of a message_delta replaces what it repeats (W-20, W-21)") {
  add(message_start);
  const Usage& usage = accumulator.snapshot().usage;
  CHECK(usage.cache_creation_1h == 2600);
  add(R"({"type":"message_delta","delta":{"stop_reason":null,"stop_sequence":null,"stop_details":null},"usage":{"output_tokens":5}})");
  CHECK(usage.output_tokens == 5);
  CHECK(usage.input_tokens == 6);
  add(R"({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":7,"cache_creation_input_tokens":2690,"cache_read_input_tokens":45000,"output_tokens":92,"output_tokens_details":{"thinking_tokens":11},"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}})");
  CHECK(usage.input_tokens == 7);
  CHECK(usage.cache_creation_5m == 90);
  CHECK(usage.cache_creation_1h == 2600);
  CHECK(usage.cache_read_input_tokens == 45000);
  CHECK(usage.output_tokens == 92);
  CHECK(usage.thinking_tokens == 11);
  CHECK(usage.web_search_requests == 2);
  CHECK(usage.web_fetch_requests == 1);
  CHECK(usage.service_tier == "standard");
  add(R"({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"cache_creation_input_tokens":600,"output_tokens":92}})");
  CHECK(usage.cache_creation_1h == 600);
  CHECK(usage.cache_creation_5m == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "stop reason, sequence and details are those of the last message_delta (W-22)") {
  add(message_start);
  add(R"({"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END","stop_details":{"type":"refusal"},"container":{"id":"c"}},"usage":{"output_tokens":2}})");
  const Message& message = accumulator.snapshot();
  CHECK(*message.stop_reason == StopReason::stop_sequence);
  CHECK(message.stop_sequence == "END");
  CHECK(message.stop_details.text() == R"({"type":"refusal"})");
  add(R"({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"container":null},"usage":{"output_tokens":2}})");
  CHECK(*message.stop_reason == StopReason::end_turn);
  CHECK_FALSE(message.stop_sequence);
  CHECK(message.stop_details.empty());
  CHECK(message.container.text() == R"({"id":"c"})");  // only when it is not null
}

TEST_CASE_FIXTURE(Fixture, "events out of order are refused") {
  const std::string text = R"({"type":"text","text":""})";
  const std::string words = R"({"type":"text_delta","text":"x"})";
  SUBCASE("anything before message_start") {
    CHECK_THROWS_AS(stop(0), ParseError);
  }
  SUBCASE("a second message_start") {
    add(message_start);
    CHECK_THROWS_AS(add(message_start), ParseError);
  }
  SUBCASE("a delta for a block that is not there, or has ended") {
    start(0, text);
    CHECK_THROWS_AS(delta(1, words), ParseError);
    stop(0);
    CHECK_THROWS_AS(delta(0, words), ParseError);
    CHECK_THROWS_AS(stop(0), ParseError);
  }
  SUBCASE("a block that leaves a gap, or starts again") {
    start(0, text);
    CHECK_THROWS_AS(start(2, text), ParseError);
    CHECK_THROWS_AS(
        add(R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"),
        ParseError);
  }
  SUBCASE("anything after message_stop") {
    add(message_start);
    add(R"({"type":"message_stop"})");
    CHECK_THROWS_AS(add(R"({"type":"message_stop"})"), ParseError);
  }
}

TEST_CASE("events made by hand give blocks that are written by their type") {
  MessageAccumulator accumulator;
  accumulator.add({MessageStartEvent{}});
  accumulator.add({ContentBlockStartEvent{0, TextBlock{"a"}}});
  accumulator.add({ContentBlockDeltaEvent{0, TextDelta{"b"}}});
  accumulator.add({ContentBlockStopEvent{0}});
  CHECK(accumulator.snapshot().text() == "ab");
  CHECK(accumulator.snapshot().content[0].received().empty());
}

}  // namespace
}  // namespace incipit
