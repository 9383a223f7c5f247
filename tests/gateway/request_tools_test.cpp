// Tools: the caller's own, those that the provider defines for callers to run, and deferred ones
// that a reference brings in (anthropic-wire section 6, anthropic-cache-semantics C-73, C-74).
#include "incipit/json.h"
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

std::string tool(std::string_view name, std::string_view more = "") {
  return R"({"name":")" + std::string(name) + R"(","description":"about )" + std::string(name)
         + R"(","input_schema":{"type":"object"})" + (more.empty() ? "" : "," + std::string(more))
         + "}";
}

std::string deferred(std::string_view name) {
  return tool(name, R"("defer_loading":true)");
}

std::string tools(std::initializer_list<std::string> list) {
  std::string text;
  for (const std::string& each : list)
    text += (text.empty() ? "\"tools\":[" : ",") + each;
  return text + "]";
}

std::string reference(std::string_view name, std::string_view more = "") {
  return R"({"type":"tool_reference","tool_name":")" + std::string(name) + "\""
         + (more.empty() ? "" : "," + std::string(more)) + "}";
}

// A search by the tool `find` was answered with `content`.
std::string searched(std::string_view content, std::string_view more) {
  return body_of(sonnet,
                 R"([{"role":"user","content":"q"},{"role":"assistant","content":[
      {"type":"tool_use","id":"t","name":"find","input":{}}]},{"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t","content":[)"
                     + std::string(content) + "]}]}]",
                 more);
}

std::vector<std::string> callable(const Conversation& parsed) {
  std::vector<std::string> names;
  for (const CallableTool& each : parsed.callable)
    names.push_back(each.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("what may be called follows tool_choice") {
  const std::string two = tools({tool("a"), tool("b", R"("strict":true)")});
  const Conversation automatic = conversation(fields(two));
  CHECK(callable(automatic) == Names{"a", "b"});
  CHECK_FALSE(automatic.must_call);
  CHECK_FALSE(automatic.callable[0].strict);
  CHECK(automatic.callable[1].strict);
  CHECK(automatic.callable[1].schema == R"({"type":"object"})");
  CHECK(automatic.callable[1].path == "tools.1.custom.input_schema");

  const Conversation any = conversation(fields(two + R"(,"tool_choice":{"type":"any"})"));
  CHECK(callable(any) == Names{"a", "b"});
  CHECK(any.must_call);

  const Conversation named = conversation(fields(
      two + R"(,"tool_choice":{"type":"tool","name":"b","disable_parallel_tool_use":true})"));
  CHECK(callable(named) == Names{"b"});
  CHECK(named.must_call);
  CHECK_FALSE(named.parallel_tool_calls);

  CHECK(callable(conversation(fields(two + R"(,"tool_choice":{"type":"none"})"))).empty());
}

TEST_CASE("a reference brings a deferred tool's definition to its place") {
  const std::string two = tools({tool("find"), deferred("weather"), deferred("stocks")});
  const Conversation before = conversation(fields(two));
  CHECK(callable(before) == Names{"find"});
  CHECK(before.items.size() == 2);

  const Conversation after =
      conversation(searched(R"({"type":"text","text":"found:"},)" + reference("weather"), two));
  CHECK(callable(after) == Names{"find", "weather"});
  CHECK(after.callable[1].path == "tools.1.custom.input_schema");
  const Item& result = after.items.back();
  CHECK(result.kind == ItemKind::tool_result);
  CHECK(result.text
        == "found:\n"
           R"({"type":"function","function":{"name":"weather","description":"about weather",)"
           R"("parameters":{"type":"object"}}})");
  // The tools section and its key are what they were.
  CHECK(after.items[0].key_bytes == before.items[0].key_bytes);
  CHECK(after.key_before_tools == before.key_before_tools);
  CHECK(after.items[1].section == Section::messages);
}

TEST_CASE("a definition that changed changes the key where it was brought in") {
  const auto key = [](const std::string& more) {
    return conversation(searched(reference("weather"), tools({tool("find"), more})))
        .items.back()
        .key_bytes;
  };
  CHECK(key(deferred("weather")) == key(deferred("weather")));
  CHECK(key(deferred("weather"))
        != key(R"({"name":"weather","input_schema":{"type":"object"},"defer_loading":true})"));
}

TEST_CASE("a later reference to the same tool, or one to a tool that is there, only names it") {
  const Conversation parsed = conversation(
      searched(reference("weather") + "," + reference("weather") + "," + reference("find"),
               tools({tool("find"), deferred("weather")})));
  CHECK(callable(parsed) == Names{"find", "weather"});
  CHECK(parsed.items.back().text.ends_with("}}}\nweather\nfind"));
}

TEST_CASE("references are checked") {
  const std::string two = tools({tool("find"), deferred("weather")});
  try {
    (void)parse_messages(searched(reference("stocks"), two), older_version());
    FAIL("accepted");
  } catch (const ApiError& error) {
    CHECK(error.status == 400);
    CHECK(std::string(error.what()) == "Tool reference 'stocks' not found in available tools");
    CHECK(error.error_code == "tool_reference_unresolved");
  }
  const std::string at = "messages.2.content.0.tool_result.content.0.tool_reference";
  CHECK(complaint(searched(R"({"type":"tool_reference"})", two))
        == at + ".tool_name: Field required");
  CHECK(complaint(searched(reference("weather", "\"x\":1"), two))
        == at + ".x: Extra inputs are not permitted");
  CHECK(conversation(searched(reference("weather", R"("cache_control":{"type":"ephemeral"})"), two))
            .items.back()
            .marker
        == Ttl::five_minutes);
}

TEST_CASE("a deferred tool can be forced once it was found") {
  const std::string forced = tools({tool("find"), deferred("weather")})
                             + R"(,"tool_choice":{"type":"tool","name":"weather"})";
  CHECK(complaint(fields(forced))
        == "tool_choice.tool.name: tool 'weather' has defer_loading=true and no `tool_reference` "
           "has named it yet");
  CHECK(callable(conversation(searched(reference("weather"), forced))) == Names{"weather"});
}

TEST_CASE("tools are counted") {
  const auto many = [](int count, std::string_view more) {
    std::string list = "\"tools\":[" + tool("first");
    for (int i = 0; i < count; ++i)
      list += "," + tool("t" + std::to_string(i), more);
    return fields(list + "]");
  };
  const auto began = std::chrono::steady_clock::now();
  CHECK(complaint(many(10'000, R"("defer_loading":true)")).empty());
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  CHECK(complaint(many(10'001, R"("defer_loading":true)"))
        == "tools: at most 10000 tools may have defer_loading=true. Found 10001.");
  CHECK(complaint(many(20, R"("strict":true)")).empty());
  CHECK(complaint(many(21, R"("strict":true)"))
        == "tools: at most 20 tools may have strict=true. Found 21.");
  CHECK(complaint(many(100, R"("strict":false)")).empty());
}

TEST_CASE("a short reference cannot be repeated into a long prompt") {
  const std::string large = R"({"name":"large","description":")" + std::string(100'000, 'x')
                            + R"(","defer_loading":true,"input_schema":{"type":"object"}})";
  std::string references = reference("large");
  for (int i = 0; i < 10'000; ++i)
    references += "," + reference("large");
  const Conversation parsed = conversation(searched(references, tools({tool("find"), large})));
  CHECK(parsed.items.back().text.size() < 300'000);
}

struct Defined {
  const char* type;
  const char* name;
  std::vector<const char*> parameters;
};

TEST_CASE("tools that the provider defines and the caller runs are ordinary tools to the model") {
  // Parameters as the provider's pages on these tools list them.
  const std::vector<const char*> editor = {"command", "path",        "view_range", "file_text",
                                           "old_str", "insert_line", "new_str"};
  std::vector<const char*> late_editor = editor;
  late_editor.push_back("insert_text");
  std::vector<const char*> memory = late_editor;
  memory.insert(memory.end(), {"old_path", "new_path"});
  const std::vector<Defined> all = {
      {"bash_20250124", "bash", {"command", "restart"}},
      {"text_editor_20250124", "str_replace_editor", editor},
      {"text_editor_20250429", "str_replace_based_edit_tool", late_editor},
      {"text_editor_20250728", "str_replace_based_edit_tool", late_editor},
      {"memory_20250818", "memory", memory},
  };
  for (const Defined& each : all) {
    CAPTURE(each.type);
    const std::string type = each.type;
    const auto with = [&](std::string_view name, std::string_view more) {
      return fields(R"("tools":[{"type":")" + type + R"(","name":")" + std::string(name) + "\""
                    + std::string(more) + "}]");
    };
    const Conversation parsed = conversation(
        with(each.name, R"(,"strict":true,"allowed_callers":["direct"],"defer_loading":false)"));
    REQUIRE(parsed.items.size() == 2);
    CHECK(parsed.items[0].kind == ItemKind::tool);
    CHECK(parsed.items[0].name == each.name);
    CHECK_FALSE(parsed.items[0].text.empty());
    const JsonValue schema = JsonValue::parse(parsed.items[0].schema, {.unique_keys = true});
    CHECK(schema.find("type")->as_string() == "object");
    const auto& properties = schema.find("properties")->as_object();
    CHECK(properties.size() == each.parameters.size());
    for (const char* parameter : each.parameters)
      CHECK(schema.find("properties")->find(parameter) != nullptr);
    CHECK(callable(parsed) == Names{each.name});
    CHECK(parsed.callable[0].strict);
    CHECK(parsed.callable[0].path == "tools.0." + type);

    CHECK(complaint(with("other", ""))
          == "tools.0." + type + ".name: Input should be '" + each.name + "'");
    CHECK(complaint(fields(R"("tools":[{"type":")" + type + "\"}]"))
          == "tools.0." + type + ".name: Field required");
    CHECK(complaint(with(each.name, R"(,"input_schema":{"type":"object"})"))
          == "tools.0." + type + ".input_schema: Extra inputs are not permitted");
    const bool limited = type == "text_editor_20250728";
    CHECK(
        complaint(with(each.name, R"(,"max_characters":100)"))
        == (limited ? "" : "tools.0." + type + ".max_characters: Extra inputs are not permitted"));
    CHECK(conversation(with(each.name, R"(,"cache_control":{"type":"ephemeral"})")).items[0].marker
          == Ttl::five_minutes);
  }
  CHECK(
      complaint(fields(
          R"("tools":[{"type":"text_editor_20250728","name":"str_replace_based_edit_tool","max_characters":0}])"))
      == "tools.0.text_editor_20250728.max_characters: Input should be greater than or equal to 1");
  CHECK(
      complaint(fields(R"("tools":[{"type":"bash_20250124","name":"bash"},)" + tool("bash") + "]"))
      == "tools: Tool names must be unique.");
}

}  // namespace
}  // namespace incipit::gateway
