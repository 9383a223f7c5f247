// Replies and requests as received. Data: anthropic-wire sections 5 and 9.
#include "incipit/anthropic.h"
#include "tests/support/test_data.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

std::string written(const ContentBlock& block) {
  std::string out;
  JsonWriter writer(out);
  block.write(writer);
  return out;
}

template <class Parse>
ParseError refusal(Parse parse) {
  try {
    parse();
  } catch (const ParseError& error) {
    return error;
  }
  FAIL("was not refused");
  throw Error("never");
}

ParseError refused_block(const std::string& json) {
  return refusal([&] { (void)ContentBlock::parse(JsonText(json)); });
}

TEST_CASE("the captured reply of section 9") {
  const Message message = parse_message(test_data("wire/sdk_message.json"));
  CHECK(message.id == "msg_011CfXSzxsmp4XSw2RKxyW3e");
  CHECK(message.model == "claude-sonnet-5-5");
  CHECK(message.text() == "Hi there! How can I");
  CHECK(message.stop_reason == Word<StopReason>{StopReason::max_tokens, "max_tokens"});
  CHECK_FALSE(message.stop_sequence);
  CHECK(message.stop_details.empty());
  CHECK(message.container.empty());
  CHECK_FALSE(message.cache_miss_reason);
  CHECK(message.usage
        == Usage{.input_tokens = 80,
                 .output_tokens = 8,
                 .service_tier = "standard",
                 .inference_geo = "global"});
  CHECK(message.json.text().starts_with(R"({"model":"claude-sonnet-5-5","id")"));
}

TEST_CASE("every kind of block of a reply, and all that stands around the blocks") {
  const std::string json = test_data("wire/sdk_message_blocks.json");
  const Message message = parse_message(json);
  REQUIRE(message.content.size() == 12);
  const auto& blocks = message.content;
  CHECK(blocks[0].get_if<ThinkingBlock>()->signature == "c2lnbmF0dXJl");
  CHECK(blocks[0].get_if<ThinkingBlock>()->thinking.empty());
  CHECK(blocks[1].get_if<RedactedThinkingBlock>()->data == "cmVkYWN0ZWQ=");
  CHECK(blocks[2].get_if<ServerToolUseBlock>()->name == "web_search");
  CHECK(blocks[2].get_if<ServerToolUseBlock>()->input.text() == R"({"query":"fjord depth"})");
  const auto* found = blocks[3].get_if<ServerToolResultBlock>();
  REQUIRE(found != nullptr);
  CHECK(found->type == "web_search_tool_result");
  CHECK(found->tool_use_id == "srvtoolu_1");
  CHECK(found->content.value().as_array().size() == 1);
  CHECK(found->error_code.empty());
  CHECK(blocks[5].get_if<ServerToolResultBlock>()->error_code == "url_not_accessible");
  CHECK(blocks[7].type() == "code_execution_tool_result");
  REQUIRE(blocks[8].is<UnknownBlock>());
  CHECK(blocks[8].type() == "fallback");
  CHECK(blocks[10].get_if<ToolUseBlock>()->input.text() == R"({"z": 1.50, "a": []})");
  CHECK(blocks[11].get_if<ContainerUploadBlock>()->file_id == "file_9");
  CHECK(message.text() == "Fjords are deep. Very 😀.");

  const auto& citations = blocks[6].get_if<TextBlock>()->citations;
  REQUIRE(citations.size() == 2);
  CHECK(citations[0].type == "web_search_result_location");
  CHECK(citations[0].url == "https://example.com");
  CHECK(citations[0].title == "Fjords");
  CHECK_FALSE(citations[0].start);
  CHECK(citations[1].document_index == 0);
  CHECK(citations[1].start == 0);
  CHECK(citations[1].end == 5);
  CHECK(citations[1].file_id == "file_1");

  // Each block keeps the very bytes that it came in, which its line of the file shows.
  for (const ContentBlock& block : blocks) {
    CAPTURE(block.type());
    CHECK(json.find("  " + block.received().text()) != json.npos);
    CHECK(written(block) == block.received().text());
  }

  CHECK(message.stop_reason == StopReason::refusal);
  CHECK(message.stop_details.text()
        == R"({"type":"refusal","category":"cyber","explanation":null})");
  CHECK(message.container.value().find("id")->as_string() == "container_1");
  CHECK(message.cache_miss_reason->type == "system_changed");
  CHECK(message.cache_miss_reason->cache_missed_input_tokens == 1200);
  // A total above the split: the rest is of the 5-minute class.
  CHECK(message.usage
        == Usage{.input_tokens = 5,
                 .cache_creation_5m = 500,
                 .cache_creation_1h = 2000,
                 .cache_read_input_tokens = 100,
                 .output_tokens = 50,
                 .thinking_tokens = 20,
                 .web_search_requests = 1,
                 .web_fetch_requests = 1,
                 .service_tier = "priority",
                 .inference_geo = "us",
                 .speed = "fast"});
  CHECK(message.param().role == MessageRole::assistant);
}

TEST_CASE("null counters count nothing (C-49); a total without a split is of the 5-minute class") {
  const auto usage = [](const std::string& json) {
    return parse_message(R"({"id":"i","model":"m","content":[],"usage":)" + json + "}").usage;
  };
  CHECK(usage(R"({"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":null,)"
              R"("cache_read_input_tokens":null,"cache_creation":null,"server_tool_use":null})")
        == Usage{.input_tokens = 1, .output_tokens = 2});
  CHECK(usage(R"({"cache_creation_input_tokens":7})") == Usage{.cache_creation_5m = 7});
  CHECK(usage(R"({"cache_creation":{"ephemeral_1h_input_tokens":7}})")
        == Usage{.cache_creation_1h = 7});
}

TEST_CASE("usage adds up; words that differ become empty") {
  Usage sum{.input_tokens = 1, .output_tokens = 2, .service_tier = "batch", .speed = "fast"};
  sum += Usage{.input_tokens = 10,
               .cache_creation_5m = 20,
               .cache_creation_1h = 30,
               .cache_read_input_tokens = 40,
               .output_tokens = 50,
               .thinking_tokens = 60,
               .web_search_requests = 70,
               .web_fetch_requests = 80,
               .service_tier = "batch",
               .speed = "standard"};
  CHECK(sum
        == Usage{.input_tokens = 11,
                 .cache_creation_5m = 20,
                 .cache_creation_1h = 30,
                 .cache_read_input_tokens = 40,
                 .output_tokens = 52,
                 .thinking_tokens = 60,
                 .web_search_requests = 70,
                 .web_fetch_requests = 80,
                 .service_tier = "batch"});
}

TEST_CASE("a received marker leaves the bytes and becomes the typed value") {
  for (
      const std::string& json : std::vector<std::string>{
          R"({"cache_control" : {"type":"ephemeral","ttl":"1h"}, "type":"x","n":[1, 2]})",
          R"({"type":"x", "cache_control":{"ttl":"1h","type":"ephemeral","scope":"global"},"n":[1, 2]})",
          R"({"type":"x","n":[1, 2],"cache_control":{"type":"ephemeral","ttl":"1h"}})",
          R"({"type":"x","cache\u005fcontrol":null,"n":[1, 2],"cache_control":{"type":"ephemeral","ttl":"1h"}})",
      }) {
    CAPTURE(json);
    const ContentBlock block = ContentBlock::parse(JsonText(json));
    CHECK(block.get_if<UnknownBlock>()->json.text() == R"({"type":"x","n":[1, 2]})");
    CHECK(block.received().text() == R"({"type":"x","n":[1, 2]})");
    CHECK(block.cache_control() == CacheControl{Ttl::one_hour});
  }
  const ContentBlock none =
      ContentBlock::parse(JsonText(R"({"type":"text","text":"t","cache_control":null})"));
  CHECK_FALSE(none.cache_control());
  CHECK(written(none) == R"({"type":"text","text":"t"})");
}

TEST_CASE("nested blocks: typed inside, and the outer block's bytes are sent") {
  const std::string json =
      R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a",)"
      R"("cache_control":{"type":"ephemeral"}},{"type":"tool_reference","tool_name":"n"},)"
      R"({"type":"document","source":{"type":"content","content":"c"},"title":null}],"is_error":true})";
  const ContentBlock block = ContentBlock::parse(JsonText(json));
  const auto* result = block.get_if<ToolResultBlock>();
  REQUIRE(result != nullptr);
  CHECK(result->is_error);
  REQUIRE(result->content.size() == 3);
  CHECK(result->content[0].cache_control() == CacheControl{});
  CHECK(result->content[1].type() == "tool_reference");
  const auto& source = std::get<ContentSource>(result->content[2].get_if<DocumentBlock>()->source);
  CHECK(source.content.at(0).get_if<TextBlock>()->text == "c");
  CHECK_FALSE(block.cache_control());
  CHECK(written(block) == json);
}

TEST_CASE("a source of an unknown kind makes an unknown block, not an error") {
  const ContentBlock block =
      ContentBlock::parse(JsonText(R"({"type":"image","source":{"type":"cloud","id":1}})"));
  REQUIRE(block.is<UnknownBlock>());
  CHECK(block.type() == "image");
}

TEST_CASE("another shape is refused with path and offset") {
  struct Case {
    std::string json, path;
    std::size_t offset;
  };

  for (
      const Case& bad : std::vector<Case>{
          {R"([])", "", 0},
          {R"({"text":"t"})", "type", 0},
          {R"({"type":"text","text":5})", "text", 22},
          {R"({"type":"tool_use","name":"n","input":{}})", "id", 0},
          {R"({"type":"tool_use","id":null,"name":"n","input":{}})", "id", 0},
          {R"({"type":"tool_use","id":"i","name":"n","input":[]})", "input", 47},
          {R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":{}}]})",
           "content.0.text", 73},
          {R"({"type":"image","source":{"type":"url"}})", "source.url", 25},
          {R"({"type":"text","text":"é","cache_control":{"type":"ephemeral","ttl":"2h"}})",
           "cache_control.ttl", 69},
          {R"({"type":"text","text":"","citations":[{"type":"char_location","document_index":1.5}]})",
           "citations.0.document_index", 79},
      }) {
    CAPTURE(bad.json);
    const ParseError error = refused_block(bad.json);
    CHECK(error.path == bad.path);
    CHECK(error.offset == bad.offset);
    if (!bad.path.empty()) CHECK(std::string(error.what()).starts_with(bad.path + ": "));
  }
}

TEST_CASE("the place of a fault counts from the start of the whole document") {
  const std::string json =
      " {\"id\":\"i\",\n\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":1}]}";
  const ParseError error = refusal([&] { (void)parse_message(json); });
  CHECK(error.path == "content.0.text");
  CHECK(error.offset == json.find("1}"));
  CHECK(error.line == 2);
  const ParseError broken = refusal([&] { (void)parse_message(R"({"id":"i",})"); });
  CHECK(broken.offset == 10);
  CHECK(broken.path.empty());
}

TEST_CASE("other bodies of the API are read: strings for blocks, nulls, members without a field") {
  const std::string json =
      R"({"messages":[{"role":"user","content":"hi"},{"role":"system","clear_at":"next_user_message",)"
      R"("content":[{"type":"text","text":"s"}]}],"model":"m","max_tokens":5,"system":"be",)"
      R"("tools":[{"type":"web_search_20260318","name":"web_search","max_uses":3,"strict":null}],)"
      R"("stop_sequences":null,"thread":{"type":"create"},"fallbacks":"default"})";
  const MessageRequest request = parse_message_request(json);
  CHECK(
      to_json(request)
      == R"({"model":"m","max_tokens":5,)"
         R"("tools":[{"type":"web_search_20260318","name":"web_search","max_uses":3,"strict":null}],)"
         R"("system":[{"type":"text","text":"be"}],)"
         R"("messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},)"
         R"({"role":"system","content":[{"type":"text","text":"s"}],"clear_at":"next_user_message"}],)"
         R"("thread":{"type":"create"},"fallbacks":"default"})");
  CHECK(request.extra.text() == R"({"thread":{"type":"create"},"fallbacks":"default"})");
}

TEST_CASE("a setting that says more than its field can hold stays whole in extra") {
  for (const std::string& setting : std::vector<std::string>{
           R"("thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}})",
           R"("thinking":{"type":"lucid"})",
           R"("output_config":{"effort":"high","task_budget":{"tokens":1}})",
           R"("output_config":{"effort":"superb"})",
           R"("tool_choice":{"type":"auto","n":1})",
           R"("metadata":{"user_id":"u","team":"t"})",
       }) {
    const std::string json = R"({"model":"m","max_tokens":5,"messages":[],)" + setting + "}";
    CAPTURE(json);
    const MessageRequest request = parse_message_request(json);
    CHECK(to_json(request) == json);
    CHECK(request.extra.text() == "{" + setting + "}");
  }
}

TEST_CASE("the bodies of other clients come back as the same value") {
  for (const char* name : {"plain", "tools", "coding-agent"}) {
    CAPTURE(name);
    const std::string once =
        to_json(parse_message_request(test_data("wire/" + std::string(name) + ".json")));
    CHECK(to_json(parse_message_request(once)) == once);
  }
  const MessageRequest tools = parse_message_request(test_data("wire/tools.json"));
  CHECK(tools.tools.at(1).defer_loading);
  CHECK(tools.messages.at(1).content.at(1).received().text()
        == R"({"type": "tool_use", "id": "toolu_01", "name": "get_weather", )"
           R"("input": {"city": "Oslo", "days": 1.50}, "caller": {"type": "direct"}})");
}

TEST_CASE("a request of another shape is refused with path and offset") {
  const auto refused = [](const std::string& json) {
    return refusal([&] { (void)parse_message_request(json); });
  };
  CHECK(refused(R"({"max_tokens":1,"messages":[]})").path == "model");
  CHECK(refused(R"({"model":"m","max_tokens":"1","messages":[]})").path == "max_tokens");
  CHECK(refused(R"({"model":"m","messages":[{"role":"robot","content":[]}]})").path
        == "messages.0.role");
  const std::string json =
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]})";
  CHECK(refused(json).path == "messages.0.content.0.text");
  CHECK(refused(json).offset == json.find(R"({"type":"text"})"));
}

}  // namespace
}  // namespace incipit
