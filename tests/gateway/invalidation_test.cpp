// Section 9's table: what a change between two requests leaves readable of tools, system and
// messages.
#include "gateway/cache/prefix_key.h"
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {
namespace {

// The key at the end of each section, as C-54 makes it; of the messages only the first two items.
struct Levels {
  PrefixKey tools, system, messages;
};

Levels levels(std::string_view body, const RequestContext& context) {
  const Conversation parsed = conversation(body, context);
  PrefixHasher hasher;
  Levels levels;
  const auto add = [&](Section section, const std::string& before) {
    hasher.add(before);
    int items = 0;
    for (const Item& item : parsed.items) {
      if (item.section != section || (section == Section::messages && ++items > 2)) continue;
      hasher.add(item.key_bytes);
    }
    return hasher.key();
  };
  levels.tools = add(Section::tools, parsed.key_before_tools);
  levels.system = add(Section::system, parsed.key_before_system);
  levels.messages = add(Section::messages, parsed.key_before_messages);
  return levels;
}

const std::string tools =
    R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}])";
const std::string two_tools =
    R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},
                {"name":"g","input_schema":{"type":"object"}}])";
const std::string system_text = R"("system":"s")";
const std::string turns =
    R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},
                   {"role":"user","content":"r"}])";

struct Parts {
  std::string model = "claude-opus-5";
  std::string tools = incipit::gateway::tools;
  std::string system = system_text;
  std::string messages = turns;
  std::string more = R"("max_tokens":16)";
};

std::string body(const Parts& parts) {
  return R"({"model":")" + parts.model + "\"," + parts.tools + "," + parts.system + ","
         + parts.messages + "," + parts.more + "}";
}

Parts with(std::string_view more) {
  Parts parts;
  parts.more += "," + std::string(more);
  return parts;
}

struct Row {
  const char* change;
  Parts before, after;
  bool tools, system, messages;  // does the level survive?
};

void check(const std::vector<Row>& rows, const RequestContext& context) {
  for (const Row& row : rows) {
    CAPTURE(row.change);
    const Levels before = levels(body(row.before), context);
    const Levels after = levels(body(row.after), context);
    CHECK((before.tools == after.tools) == row.tools);
    CHECK((before.system == after.system) == row.system);
    CHECK((before.messages == after.messages) == row.messages);
  }
}

std::vector<Row> settings(bool level) {
  const std::string effort_low = R"("output_config":{"effort":"low"})";
  const auto budget = [](int tokens) {
    Parts parts;
    parts.model = "claude-haiku-4-5";
    parts.more = R"("max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":)"
                 + std::to_string(tokens) + "}";
    return parts;
  };
  Parts haiku;
  haiku.model = "claude-haiku-4-5";
  return {
      {"thinking off", {}, with(R"("thinking":{"type":"disabled"})"), level, level, false},
      {"thinking on", haiku, budget(1024), level, level, false},
      {"budget_tokens", budget(1024), budget(2048), level, level, false},
      {"effort", {}, with(effort_low), level, level, false},
  };
}

TEST_CASE("the table of section 9") {
  RequestContext context = older_version();
  Parts changed_tool, second_tool, other_system, other_model, other_message, appended, told;
  changed_tool.tools =
      R"("tools":[{"name":"f","description":"e","input_schema":{"type":"object"}}])";
  second_tool.tools = two_tools;
  other_system.system = R"("system":"t")";
  other_model.model = "claude-opus-4-8";
  other_message.messages = R"("messages":[{"role":"user","content":"p"},
      {"role":"assistant","content":"a"},{"role":"user","content":"r"}])";
  appended.messages =
      R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},
      {"role":"user","content":"r"},{"role":"assistant","content":"b"},{"role":"user","content":"t"}])";
  told.messages = R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},
      {"role":"user","content":"r"},{"role":"system","content":"in French"}])";
  Parts named = with(R"("tool_choice":{"type":"tool","name":"f"})");
  check(
      {
          {"a tool's description", {}, changed_tool, false, false, false},
          {"a tool added", {}, second_tool, false, false, false},
          {"speed", {}, with(R"("speed":"fast")"), true, false, false},
          {"system text", {}, other_system, true, false, false},
          {"tool_choice none", {}, with(R"("tool_choice":{"type":"none"})"), true, true, false},
          {"tool_choice any", {}, with(R"("tool_choice":{"type":"any"})"), true, true, false},
          {"tool_choice's name", with(R"("tool_choice":{"type":"any"})"), named, true, true, false},
          {"disable_parallel_tool_use",
           {},
           with(R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true})"),
           true,
           true,
           false},
          {"thinking at its default",
           {},
           with(R"("thinking":{"type":"adaptive"})"),
           true,
           true,
           true},
          {"display",
           {},
           with(R"("thinking":{"type":"adaptive","display":"summarized"})"),
           true,
           true,
           true},
          {"effort at its default",
           {},
           with(R"("output_config":{"effort":"high"})"),
           true,
           true,
           true},
          {"output format",
           {},
           with(R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object",
               "properties":{},"additionalProperties":false}}})"),
           true,
           false,
           false},
          {"model", {}, other_model, false, false, false},
          {"an earlier message", {}, other_message, true, true, false},
          {"messages appended", {}, appended, true, true, true},
          {"a system message appended", {}, told, true, true, true},
          {"stop_sequences", {}, with(R"("stop_sequences":["x"])"), true, true, true},
          {"metadata", {}, with(R"("metadata":{"user_id":"u"})"), true, true, true},
          {"stream", {}, with(R"("stream":true)"), true, true, true},
      },
      context);
  check(settings(true), context);
}

TEST_CASE("with the switch, thinking and effort leave nothing readable (C-53)") {
  RequestContext context = older_version();
  context.settings_before_tools = true;
  check(settings(false), context);
  check(
      {{"thinking at its default", {}, with(R"("thinking":{"type":"adaptive"})"), true, true, true},
       {"effort at its default",
        {},
        with(R"("output_config":{"effort":"high"})"),
        true,
        true,
        true}},
      context);
}

}  // namespace
}  // namespace incipit::gateway
