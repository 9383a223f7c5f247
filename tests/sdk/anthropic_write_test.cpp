// Bodies as bytes; that they mean the same as the official SDK's is wire_equality_test.cpp.
#include "incipit/anthropic.h"

#include <doctest/doctest.h>

#include <string>

namespace incipit {
namespace {

std::string written(const ContentBlock& block) {
  std::string out;
  JsonWriter writer(out);
  block.write(writer);
  return out;
}

TEST_CASE("the smallest request has model, max_tokens and messages") {
  const MessageRequest request{.model = "m"};
  CHECK(to_json(request) == R"({"model":"m","max_tokens":0,"messages":[]})");
}

TEST_CASE("keys come in a fixed order, the prompt in the order of its rendering (C-1)") {
  MessageRequest request{
      .model = "m",
      .max_tokens = 9,
      .tools = {{.name = "t",
                 .description = "d",
                 .input_schema = JsonText(R"({"type":"object", "z":1})"),
                 .input_examples = {JsonText("{}")},
                 .cache_control = CacheControl{Ttl::one_hour},
                 .strict = true,
                 .type = "custom",
                 .options = JsonText(R"({ "a": null })")}},
      .system = {{.text = "s", .cache_control = CacheControl{}}},
      .messages = {{.role = MessageRole::user,
                    .content = {TextBlock{.text = "hi"}},
                    .extra = JsonText(R"({"x": 1})")}},
      .cache_control = CacheControl{},
      .tool_choice = ToolChoice{.type = ToolChoice::Type::none},
      .thinking =
          Thinking{.type = Thinking::Type::enabled, .budget_tokens = 1024, .display = "omitted"},
      .effort = Effort::xhigh,
      .output_format = JsonText(R"({"type":"json_schema"})"),
      .stop_sequences = {"END"},
      .stream = true,
      .user_id = "u",
      .extra = JsonText(R"({"thread":1,"context_management":{"edits":[]},"fallbacks":2})")};
  const std::string prompt =
      R"("tools":[{"type":"custom","name":"t","description":"d",)"
      R"("input_schema":{"type":"object", "z":1},"input_examples":[{}],"a": null,"strict":true,)"
      R"("cache_control":{"type":"ephemeral","ttl":"1h"}}],)"
      R"("system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],)"
      R"("messages":[{"role":"user","content":[{"type":"text","text":"hi"}],"x": 1}],)"
      R"("cache_control":{"type":"ephemeral"},"tool_choice":{"type":"none"},)"
      R"("thinking":{"type":"enabled","budget_tokens":1024,"display":"omitted"},)"
      R"("output_config":{"effort":"xhigh","format":{"type":"json_schema"}})";
  const std::string json =
      R"({"model":"m","max_tokens":9,)" + prompt
      + R"(,"stop_sequences":["END"],"metadata":{"user_id":"u"},"stream":true,)"
        R"("thread":1,"context_management":{"edits":[]},"fallbacks":2})";
  CHECK(to_json(request) == json);
  CHECK(to_json(parse_message_request(json)) == json);
  // Without what that endpoint does not take (section 13).
  CHECK(count_tokens_json(request)
        == R"({"model":"m",)" + prompt + R"(,"context_management":{"edits":[]}})");
}

TEST_CASE("what should be an object and is none is refused, not sent as broken JSON") {
  CHECK_THROWS_AS((void)to_json({.model = "m", .extra = JsonText("[1]")}), PromptError);
  CHECK_THROWS_AS((void)to_json({.model = "m", .tools = {{.options = JsonText("1")}}}),
                  PromptError);
}

TEST_CASE("a received block is sent back byte for byte, a marker put before its last brace") {
  const std::string json = R"({ "type":"tool_use", "id":"toolu_1","name":"f",)"
                           R"("input":{"b":1.50, "a":[ ]},"caller":null })";
  ContentBlock block = ContentBlock::parse(JsonText(json));
  CHECK(block.received().text() == json);
  CHECK(written(block) == json);

  CHECK(block.mark(CacheControl{Ttl::one_hour}));
  CHECK(written(block)
        == R"({ "type":"tool_use", "id":"toolu_1","name":"f",)"
           R"("input":{"b":1.50, "a":[ ]},"caller":null ,)"
           R"("cache_control":{"type":"ephemeral","ttl":"1h"}})");
  CHECK(block.received().text() == json);
  CHECK(block.mark(std::nullopt));
  CHECK(written(block) == json);
}

TEST_CASE("thinking cannot be marked (E-6)") {
  ContentBlock block = ThinkingBlock{.thinking = "t", .signature = "s"};
  CHECK_FALSE(block.mark(CacheControl{}));
  CHECK(written(block) == R"({"type":"thinking","thinking":"t","signature":"s"})");
}

TEST_CASE("an empty tool input is an empty object (W-23)") {
  CHECK(written(ToolUseBlock{.id = "i", .name = "n"})
        == R"({"type":"tool_use","id":"i","name":"n","input":{}})");
}

TEST_CASE("a block of an unknown kind is its JSON") {
  const UnknownBlock block{
      .type = "x", .json = JsonText(R"({"type":"x", "n":1e3})"), .cache_control = CacheControl{}};
  CHECK(written(block) == R"({"type":"x", "n":1e3,"cache_control":{"type":"ephemeral"}})");
}

}  // namespace
}  // namespace incipit
