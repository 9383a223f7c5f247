// What makes two prompts the same to the cache (C-1, C-4..C-11, C-54) and what becomes of a body.
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

// Everything that a prefix key is made of, by section.
struct Keys {
  std::string tools, system, messages;
  friend bool operator==(const Keys&, const Keys&) = default;
};

Keys keys(std::string_view body, const RequestContext& context = older_version()) {
  const Conversation parsed = conversation(body, context);
  Keys result{parsed.key_before_tools, parsed.key_before_system, parsed.key_before_messages};
  for (const Item& item : parsed.items) {
    std::string& section = item.section == Section::tools    ? result.tools
                           : item.section == Section::system ? result.system
                                                             : result.messages;
    section += "\n" + item.key_bytes;
  }
  return result;
}

const std::string tool =
    R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"a":{},"b":{}}}}])";

std::string with_call(std::string_view input) {
  return messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
      {"type":"tool_use","id":"t","name":"f","input":)"
                  + std::string(input) + R"(}]},{"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t","content":"r"}]}])");
}

TEST_CASE("keys do not depend on how the same content is written") {
  struct Pair {
    const char* why;
    std::string a, b;
  };

  const std::vector<Pair> pairs = {
      {"order of envelope keys",
       R"({"model":"claude-sonnet-4-6","max_tokens":1,"system":"s","messages":[{"role":"user","content":"x"}]})",
       R"({"messages":[{"content":"x","role":"user"}],"system":"s","max_tokens":1,"model":"claude-sonnet-4-6"})"},
      {"white space and escapes", fields(R"("system":"é/\u0041")"),
       fields("\"system\" : \n \"\\u00e9\\/A\"")},
      {"surrogate pair", fields(R"("system":"\ud83d\ude00")"), fields("\"system\":\"😀\"")},
      {"string or block system", fields(R"("system":"s")"),
       fields(R"("system":[{"type":"text","text":"s"}])")},
      {"string or block content", messages(R"([{"role":"user","content":"x"}])"),
       messages(R"([{"role":"user","content":[{"text":"x","type":"text"}]}])")},
      {"merged turns", messages(R"([{"role":"user","content":"x"},{"role":"user","content":"y"}])"),
       messages(
           R"([{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}])")},
      {"string or block result",
       messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
          {"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[
          {"type":"tool_result","tool_use_id":"t","content":"r"}]}])"),
       messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
          {"type":"tool_use","id":"t","name":"f","input":{},"caller":{"type":"direct"}}]},{"role":"user","content":[
          {"type":"tool_result","tool_use_id":"t","is_error":false,"content":[{"type":"text","text":"r"}]}]}])")},
      {"marker (C-4)", fields(R"("system":[{"type":"text","text":"s"}])"),
       fields(R"("system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}])")},
      {"marker's ttl (C-4)",
       fields(
           R"("system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}])"),
       fields(R"("system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}])")},
      {"automatic marker", fields(R"("cache_control":{"type":"ephemeral"})"),
       fields("\"stream\":true")},
      {"not part of the prefix (C-9)",
       fields(
           R"("metadata":{"user_id":"u"},"stop_sequences":["X"],"stream":true,"service_tier":"auto","temperature":0)"),
       fields(R"("top_k":3)")},
      {"max_tokens (C-9)",
       R"({"model":"claude-sonnet-4-6","max_tokens":1,"messages":[{"role":"user","content":"x"}]})",
       R"({"model":"claude-sonnet-4-6","max_tokens":900,"messages":[{"role":"user","content":"x"}]})"},
      {"alias and dated id (C-6)", body_of("claude-haiku-4-5", hello),
       body_of("claude-haiku-4-5-20251001", hello)},
      {"effort left out or at its default", fields(R"("output_config":{"effort":"high"})"),
       fields(R"("output_config":{})")},
      {"effort at Opus 5.5's default",
       fields(R"("output_config":{"effort":"medium"})", "claude-opus-5-5"),
       fields(R"("output_config":{"effort":null})", "claude-opus-5-5")},
      {"thinking left out or off by default", fields(R"("thinking":{"type":"disabled"})"),
       fields(R"("stream":false)")},
      {"tool_choice left out or auto", fields(tool + R"(,"tool_choice":{"type":"auto"})"),
       fields(tool)},
      {"white space in a schema",
       fields(R"("tools":[{"name":"f","input_schema":{ "type" : "object" }}])"),
       fields(R"("tools":[{"type":"custom","input_schema":{"type":"object"},"name":"f"}])")},
      {"deferred tool (C-73)", fields(tool),
       fields(tool.substr(0, tool.size() - 1)
              + R"(,{"name":"z","defer_loading":true,"input_schema":{"type":"object"}}])")},
      {"billing line", fields(R"("system":"x-anthropic-billing-header: cch=1\nhello")"),
       fields(R"("system":"x-anthropic-billing-header: cch=2\nhello")")},
  };
  for (const Pair& pair : pairs) {
    CAPTURE(pair.why);
    CHECK(keys(pair.a) == keys(pair.b));
  }
}

TEST_CASE("keys change with the content, from the changed section on") {
  struct Change {
    const char* why;
    std::string a, b;
    bool tools, system, messages;  // does the section's own part change?
  };

  const std::string tools_reordered =
      R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"b":{},"a":{}}}}])";
  const std::string number_1 =
      R"("tools":[{"name":"f","input_schema":{"type":"object","minProperties":1}}])";
  const std::string number_1_0 =
      R"("tools":[{"name":"f","input_schema":{"type":"object","minProperties":1.0}}])";
  const std::string described =
      R"("tools":[{"name":"f","description":"","input_schema":{"type":"object"}}])";
  const std::string undescribed = R"("tools":[{"name":"f","input_schema":{"type":"object"}}])";
  const std::vector<Change> changes = {
      {"model", fields("\"stream\":true"), fields("\"stream\":true", "claude-opus-4-6"), true,
       false, false},
      {"key order in a schema (C-8)", fields(tool), fields(tools_reordered), true, false, false},
      {"number spelling in a schema", fields(number_1), fields(number_1_0), true, false, false},
      {"empty or absent description", fields(described), fields(undescribed), true, false, false},
      {"system text", fields(R"("system":"a")"), fields(R"("system":"b")"), false, true, false},
      {"one or two system blocks", fields(R"("system":[{"type":"text","text":"ab"}])"),
       fields(R"("system":[{"type":"text","text":"a"},{"type":"text","text":"b"}])"), false, true,
       false},
      {"tool_choice", fields(tool), fields(tool + R"(,"tool_choice":{"type":"none"})"), false,
       false, true},
      {"parallel calls", fields(tool),
       fields(tool + R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":true})"), false,
       false, true},
      {"effort", fields(R"("output_config":{"effort":"low"})"), fields("\"stream\":true"), false,
       false, true},
      {"thinking off on a model that thinks",
       fields(R"("thinking":{"type":"disabled"})", "claude-sonnet-5"),
       fields("\"stream\":true", "claude-sonnet-5"), false, false, true},
      {"message text", messages(R"([{"role":"user","content":"x"}])"),
       messages(R"([{"role":"user","content":"y"}])"), false, false, true},
      {"key order in an input (C-7)", with_call(R"({"a":1,"b":2})"), with_call(R"({"b":2,"a":1})"),
       false, false, true},
      {"number spelling in an input", with_call(R"({"a":1})"), with_call(R"({"a":1.0})"), false,
       false, true},
      {"role",
       body_of("claude-haiku-4-5",
               R"([{"role":"user","content":"q"},{"role":"assistant","content":"x"}])"),
       body_of("claude-haiku-4-5",
               R"([{"role":"user","content":"q"},{"role":"user","content":"x"}])"),
       false, false, true},
  };
  for (const Change& change : changes) {
    CAPTURE(change.why);
    const Keys a = keys(change.a);
    const Keys b = keys(change.b);
    CHECK((a.tools != b.tools) == change.tools);
    CHECK((a.system != b.system) == change.system);
    CHECK((a.messages != b.messages) == change.messages);
  }
}

TEST_CASE("items come in the order tools, system, messages, with turns numbered") {
  const Conversation parsed = conversation(R"({
    "messages":[{"role":"user","content":"q"},{"role":"user","content":"more"},
      {"role":"assistant","content":[{"type":"text","text":"a"},
        {"type":"tool_use","id":"t1","name":"f","input":{"city": "Oslo", "n": 1.50}}]},
      {"role":"user","content":[
        {"type":"tool_result","tool_use_id":"t1","is_error":true,
         "content":[{"type":"text","text":"line 1"},{"type":"text","text":"line 2"}]},
        {"type":"text","text":"go on"}]}],
    "system":"s",
    "tools":[{"name":"f","description":"d","input_schema":{"type": "object"},"input_examples":[{"city":"Rome"}]}],
    "max_tokens":7,"model":"claude-sonnet-4-6"})");
  REQUIRE(parsed.items.size() == 8);
  const auto& items = parsed.items;
  CHECK(items[0].kind == ItemKind::tool);
  CHECK(items[0].section == Section::tools);
  CHECK(items[0].name == "f");
  CHECK(items[0].text == "d\nExample input: {\"city\":\"Rome\"}");
  CHECK(items[0].schema == R"({"type":"object"})");
  CHECK(items[1].section == Section::system);
  CHECK(items[1].role == Role::system);
  CHECK(items[1].text == "s");
  CHECK(items[2].text == "q");
  CHECK(items[2].role == Role::user);
  CHECK(items[2].turn == 0);
  CHECK(items[3].turn == 0);
  CHECK(items[4].role == Role::assistant);
  CHECK(items[4].turn == 1);
  CHECK(items[5].kind == ItemKind::tool_use);
  CHECK(items[5].turn == 1);
  CHECK(items[5].id == "t1");
  CHECK(items[5].name == "f");
  CHECK(items[5].text == R"({"city":"Oslo","n":1.50})");
  CHECK(items[6].kind == ItemKind::tool_result);
  CHECK(items[6].turn == 2);
  CHECK(items[6].id == "t1");
  CHECK(items[6].is_error);
  CHECK(items[6].text == "line 1\nline 2");
  CHECK(items[7].text == "go on");
  CHECK(parsed.model == "claude-sonnet-4-6");
  CHECK(parsed.max_tokens == 7);
  CHECK(parsed.callable.size() == 1);
  CHECK(parsed.parallel_tool_calls);
  CHECK_FALSE(parsed.continues_assistant);
}

TEST_CASE("a system message keeps its place and role") {
  const Conversation parsed = conversation(body_of("claude-opus-5", R"([
      {"role":"user","content":"q"},{"role":"system","content":"now in French"},
      {"role":"assistant","content":"oui"},{"role":"user","content":"r"}])"));
  REQUIRE(parsed.items.size() == 4);
  CHECK(parsed.items[1].role == Role::system);
  CHECK(parsed.items[1].section == Section::messages);
  CHECK(parsed.items[1].turn == 1);
  CHECK(parsed.items[3].turn == 3);
}

TEST_CASE("tool settings say what the model may do") {
  CHECK(conversation(fields("\"stream\":true")).callable.empty());
  CHECK(conversation(fields("\"tools\":[]")).callable.empty());
  CHECK_FALSE(conversation(fields(tool)).callable.empty());
  CHECK(conversation(fields(tool + R"(,"tool_choice":{"type":"none"})")).callable.empty());
  CHECK_FALSE(
      conversation(
          fields(tool + R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":true})"))
          .parallel_tool_calls);
}

TEST_CASE("sampling has the provider's defaults, and a seed of its own unless greedy") {
  const Sampling plain = conversation(fields("\"stream\":true")).sampling;
  CHECK(plain.temperature == 1.0F);
  CHECK(plain.top_p == 1.0F);
  CHECK(plain.top_k == 0);
  CHECK(plain.seed != conversation(fields("\"stream\":true")).sampling.seed);
  const Sampling set =
      conversation(fields(R"("temperature":0.5,"top_p":0.25,"top_k":40)")).sampling;
  CHECK(set.temperature == 0.5F);
  CHECK(set.top_p == 0.25F);
  CHECK(set.top_k == 40);
  const Sampling greedy = conversation(fields("\"temperature\":0")).sampling;
  CHECK(greedy.temperature == 0.0F);
  CHECK(greedy.seed == conversation(fields("\"temperature\":0")).sampling.seed);
}

TEST_CASE("what concerns the reply is passed on") {
  const MessagesRequest parsed = parse_messages(
      fields(R"("stream":true,"stop_sequences":["A","B"])", "claude-haiku-4-5"), older_version());
  CHECK(parsed.stream);
  CHECK(parsed.model == "claude-haiku-4-5-20251001");
  CHECK(parsed.conversation.model == "claude-haiku-4-5-20251001");
  CHECK(parsed.conversation.stop_sequences == std::vector<std::string>{"A", "B"});
  CHECK_FALSE(parse_messages(fields("\"top_k\":1"), older_version()).stream);
}

}  // namespace
}  // namespace incipit::gateway
