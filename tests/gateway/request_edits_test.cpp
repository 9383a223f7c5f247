// context_management: what the edits clear, when, and what the answer says of it.
// Source: anthropic-wire section 18.2; anthropic-cache-semantics C-78..C-80.
#include "gateway/api/signature.h"
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {
namespace {

// A token for each byte of the items' texts.
RequestContext editing() {
  RequestContext context = with_beta("context-management-2025-06-27");
  context.count_tokens = [](const Conversation& conversation) {
    std::size_t tokens = 0;
    for (const Item& item : conversation.items)
      tokens += item.text.size();
    return static_cast<int>(tokens);
  };
  return context;
}

constexpr std::size_t placeholder = 39;  // bytes of what stands for a cleared result

std::string call(int number, std::string_view tool) {
  return R"({"role":"assistant","content":[{"type":"tool_use","id":"t)" + std::to_string(number)
         + R"(","name":")" + std::string(tool) + R"(","input":{"a":1}}]})";
}

std::string result(int number, std::size_t bytes) {
  return R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t)"
         + std::to_string(number) + R"(","content":")" + std::string(bytes, 'r') + R"("}]})";
}

// "q", then a call of each of these tools with a result of 1000 bytes.
std::string calls(const std::vector<std::string>& tools) {
  std::string list = R"([{"role":"user","content":"q"})";
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const int number = static_cast<int>(i);
    list += "," + call(number, tools[i]) + "," + result(number, 1000);
  }
  return list + "]";
}

std::string with_edits(std::string_view messages, std::string_view edits,
                       std::string_view model = sonnet) {
  return body_of(model, messages, R"("context_management":{"edits":[)" + std::string(edits) + "]}");
}

std::string tool_edit(std::string_view more) {
  return R"({"type":"clear_tool_uses_20250919")" + (more.empty() ? "" : "," + std::string(more))
         + "}";
}

struct Edited {
  std::string cleared;  // per result: x cleared, . not
  std::string emptied;  // per call: x without its input
  std::string answer;
};

Edited edited(std::string_view body) {
  const MessagesRequest parsed = parse_messages(body, editing());
  Edited edited;
  for (const Item& item : parsed.conversation.items) {
    if (item.kind == ItemKind::tool_result)
      edited.cleared += item.text.starts_with("rrr") ? '.' : 'x';
    if (item.kind == ItemKind::tool_use) edited.emptied += item.text == "{}" ? 'x' : '.';
  }
  edited.answer = parsed.context_management;
  return edited;
}

std::string applied(int calls, std::size_t tokens) {
  return R"({"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":)"
         + std::to_string(calls) + R"(,"cleared_input_tokens":)" + std::to_string(tokens) + "}]}";
}

const std::string none = R"({"applied_edits":[]})";
const std::vector<std::string> five = {"f", "f", "g", "f", "f"};
const std::string by_calls = R"("trigger":{"type":"tool_uses","value":4})";

TEST_CASE("the oldest results are cleared once the trigger is exceeded (C-79)") {
  const std::string messages = calls(five);
  // 1 + 5 * (7 + 1000) bytes
  const auto beyond = [&](int tokens) {
    return edited(with_edits(messages, tool_edit(R"("trigger":{"type":"input_tokens","value":)"
                                                 + std::to_string(tokens) + "}")));
  };
  CHECK(beyond(5035).cleared == "xx...");
  CHECK(beyond(5035).answer == applied(2, 2 * (1000 - placeholder)));
  CHECK(beyond(5035).emptied == ".....");
  CHECK(beyond(5036).cleared == ".....");
  CHECK(beyond(5036).answer == none);

  const auto beyond_calls = [&](int number) {
    return edited(with_edits(messages, tool_edit(R"("trigger":{"type":"tool_uses","value":)"
                                                 + std::to_string(number) + "}")))
        .cleared;
  };
  CHECK(beyond_calls(4) == "xx...");
  CHECK(beyond_calls(5) == ".....");
  // The default trigger is 100 000 tokens.
  CHECK(edited(with_edits(messages, tool_edit(""))).cleared == ".....");
}

TEST_CASE("keep, exclude_tools and clear_tool_inputs") {
  const std::string messages = calls(five);
  const auto with = [&](std::string_view more) {
    return edited(with_edits(messages, tool_edit(by_calls + "," + std::string(more))));
  };
  CHECK(with(R"("keep":{"type":"tool_uses","value":0})").cleared == "xxxxx");
  CHECK(with(R"("keep":{"type":"tool_uses","value":1})").cleared == "xxxx.");
  CHECK(with(R"("keep":{"type":"tool_uses","value":5})").answer == none);
  CHECK(with(R"("keep":{"type":"tool_uses","value":1},"exclude_tools":["f"])").answer == none);
  CHECK(with(R"("keep":{"type":"tool_uses","value":1},"exclude_tools":["g"])").cleared == "xx.x.");
  CHECK(with(R"("clear_tool_inputs":true)").emptied == "xx...");
  CHECK(with(R"("clear_tool_inputs":false)").emptied == ".....");
  CHECK(with(R"("clear_tool_inputs":["g"],"keep":{"type":"tool_uses","value":1})").emptied
        == "..x..");
  CHECK(with(R"("clear_tool_inputs":null,"exclude_tools":null,"clear_at_least":null)").cleared
        == "xx...");
}

TEST_CASE("nothing is cleared for less than clear_at_least") {
  const std::string messages = calls(five);
  const auto with = [&](std::size_t tokens) {
    return edited(with_edits(
        messages, tool_edit(by_calls + R"(,"clear_at_least":{"type":"input_tokens","value":)"
                            + std::to_string(tokens) + "}")));
  };
  CHECK(with(2 * (1000 - placeholder)).cleared == "xx...");
  CHECK(with(2 * (1000 - placeholder) + 1).cleared == ".....");
  CHECK(with(2 * (1000 - placeholder) + 1).answer == none);
}

TEST_CASE("the prompt is the same up to the first cleared block, and markers stay") {
  std::string messages = calls(five);
  const std::size_t second = messages.find(R"("tool_use_id":"t1")");
  messages.insert(second, R"("cache_control":{"type":"ephemeral"},)");
  const auto items = [&](std::string_view edits) {
    return parse_messages(with_edits(messages, edits), editing()).conversation.items;
  };
  const std::vector<Item> plain = items("");
  const std::vector<Item> shorter = items(tool_edit(by_calls));
  REQUIRE(plain.size() == shorter.size());
  std::string same, marked;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    same += plain[i].key_bytes == shorter[i].key_bytes ? '.' : 'x';
    marked += shorter[i].marker ? 'x' : '.';
  }
  CHECK(same == "..x.x......");
  CHECK(marked == "....x......");
}

// Three turns, the second a loop; each reply begins with a thought of 100 bytes.
std::string thoughts() {
  const std::string thought = R"({"type":"thinking","thinking":"","signature":")"
                              + sign_thought(std::string(100, 't'), {}, false) + "\"},";
  const std::string says =
      R"({"role":"assistant","content":[)" + thought + R"({"type":"text","text":"a"}]})";
  const std::string asks = R"({"role":"user","content":"q"})";
  std::string calls = call(0, "f");
  calls.insert(calls.find('[') + 1, thought);
  return "[" + asks + "," + says + "," + asks + "," + calls + "," + result(0, 1000) + "," + says
         + "," + asks + "," + says + "," + asks + "]";
}

struct Thoughts {
  int kept = 0;
  std::string answer;
};

Thoughts thoughts_with(std::string_view edits, std::string_view model = sonnet) {
  const std::string_view mode =
      model == sonnet ? R"({"type":"adaptive"})" : R"({"type":"enabled","budget_tokens":1024})";
  std::string body = R"({"model":")" + std::string(model) + R"(","max_tokens":2000,"thinking":)";
  body.append(mode).append(R"(,"messages":)").append(thoughts());
  body.append(R"(,"context_management":{"edits":[)").append(edits).append("]}}");
  const MessagesRequest parsed = parse_messages(body, editing());
  Thoughts result;
  for (const Item& item : parsed.conversation.items)
    if (item.kind == ItemKind::thinking) ++result.kept;
  result.answer = parsed.context_management;
  return result;
}

std::string cleared_thinking(int turns, int tokens) {
  return R"({"applied_edits":[{"type":"clear_thinking_20251015","cleared_thinking_turns":)"
         + std::to_string(turns) + R"(,"cleared_input_tokens":)" + std::to_string(tokens) + "}]}";
}

TEST_CASE("thinking is cleared but for the latest turns (C-80)") {
  const auto keep = [](std::string_view value) {
    return thoughts_with(R"({"type":"clear_thinking_20251015","keep":)" + std::string(value) + "}");
  };
  CHECK(keep("\"all\"").kept == 4);
  CHECK(keep("\"all\"").answer == none);
  CHECK(keep(R"({"type":"all"})").kept == 4);
  CHECK(keep(R"({"type":"thinking_turns","value":3})").answer == none);
  CHECK(keep(R"({"type":"thinking_turns","value":2})").kept == 3);
  CHECK(keep(R"({"type":"thinking_turns","value":2})").answer == cleared_thinking(1, 100));
  CHECK(keep(R"({"type":"thinking_turns","value":1})").kept == 1);
  CHECK(keep(R"({"type":"thinking_turns","value":1})").answer == cleared_thinking(2, 300));
  CHECK(thoughts_with(R"({"type":"clear_thinking_20251015"})").kept == 1);
}

TEST_CASE("both edits together, thinking first") {
  const Thoughts both = thoughts_with(
      R"({"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919",
          "trigger":{"type":"input_tokens","value":1},"keep":{"type":"tool_uses","value":0}})");
  CHECK(both.kept == 1);
  CHECK(
      both.answer
      == R"({"applied_edits":[{"type":"clear_thinking_20251015","cleared_thinking_turns":2,"cleared_input_tokens":300},)"
         R"({"type":"clear_tool_uses_20250919","cleared_tool_uses":1,"cleared_input_tokens":)"
             + std::to_string(1000 - placeholder) + "}]}");
}

TEST_CASE("an edit of thinking takes the place of what the model strips by itself") {
  CHECK(thoughts_with("", "claude-sonnet-4-5").kept == 0);
  CHECK(
      thoughts_with(R"({"type":"clear_thinking_20251015","keep":"all"})", "claude-sonnet-4-5").kept
      == 4);
}

TEST_CASE("counting tells the length before the edits") {
  const auto count = [](std::string_view edits) {
    return parse_count_tokens(R"({"model":"claude-sonnet-4-6","messages":)" + calls(five)
                                  + R"(,"context_management":{"edits":[)" + std::string(edits)
                                  + "]}}",
                              editing());
  };
  const MessagesRequest edited = count(tool_edit(by_calls));
  CHECK(edited.context_management == R"({"original_input_tokens":5036})");
  CHECK(editing().count_tokens(edited.conversation)
        == 5036 - 2 * static_cast<int>(1000 - placeholder));
  CHECK(count("").context_management == R"({"original_input_tokens":5036})");
}

TEST_CASE("the answer names the edits whenever there was the field") {
  CHECK(parse_messages(with_edits(hello, ""), editing()).context_management == none);
  CHECK(parse_messages(fields(R"("context_management":{})"), editing()).context_management == none);
  CHECK(
      parse_messages(fields(R"("context_management":null)"), editing()).context_management.empty());
  CHECK(parse_messages(fields("\"stream\":false"), editing()).context_management.empty());
}

TEST_CASE("malformed edits are refused at their path") {
  const std::string at = "context_management.edits.0";
  const auto complain = [](std::string_view edits) {
    return complaint(with_edits(hello, edits), editing());
  };
  CHECK(complaint(with_edits(hello, "")) == "context_management: Extra inputs are not permitted");
  CHECK(complain(R"({"type":"magic"})")
        == at
               + ": Input tag 'magic' found using 'type' does not match any of the expected tags: "
                 "'clear_thinking_20251015', 'clear_tool_uses_20250919', 'compact_20260112'");
  CHECK(complain("{}") == at + ".type: Field required");
  CHECK(complain("1") == at + ": Input should be a valid dictionary");
  const std::string tools = at + ".clear_tool_uses_20250919.";
  CHECK(complain(tool_edit(R"("bogus":1)")) == tools + "bogus: Extra inputs are not permitted");
  CHECK(complain(tool_edit(R"("trigger":{"type":"words","value":1})"))
        == tools + "trigger.type: Input should be 'input_tokens' or 'tool_uses'");
  CHECK(complain(tool_edit(R"("trigger":{"type":"tool_uses"})"))
        == tools + "trigger.value: Field required");
  CHECK(complain(tool_edit(R"("trigger":{"type":"tool_uses","value":0})"))
        == tools + "trigger.value: Input should be greater than or equal to 1");
  CHECK(complain(tool_edit(R"("keep":{"type":"tool_uses","value":-1})"))
        == tools + "keep.value: Input should be greater than or equal to 0");
  CHECK(complain(tool_edit(R"("keep":{"type":"tool_uses","value":1e99})"))
        == tools + "keep.value: Input should be a valid integer");
  CHECK(complain(tool_edit(R"("exclude_tools":"f")"))
        == tools + "exclude_tools: Input should be a valid list");
  CHECK(complain(tool_edit(R"("exclude_tools":[1])"))
        == tools + "exclude_tools.0: Input should be a valid string");
  CHECK(complain(tool_edit(R"("clear_tool_inputs":1)"))
        == tools + "clear_tool_inputs: Input should be a valid boolean or list");
  const std::string thinking_edit = at + ".clear_thinking_20251015.keep";
  CHECK(complain(R"({"type":"clear_thinking_20251015","keep":"some"})")
        == thinking_edit + ": Input should be 'all'");
  CHECK(complain(R"({"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":0}})")
        == thinking_edit + ".value: Input should be greater than or equal to 1");
  CHECK(
      complain(tool_edit("") + R"(,{"type":"clear_thinking_20251015"})")
      == "context_management.edits.1: `clear_thinking_20251015` must be the first edit in the "
         "list");
  CHECK(complain(tool_edit("") + "," + tool_edit(""))
        == "context_management.edits.1: `clear_tool_uses_20250919` may be given only once");
  CHECK(complain(R"({"type":"compact_20260112"})")
            .starts_with(at + ".compact_20260112: compaction is not supported by this gateway"));
}

}  // namespace
}  // namespace incipit::gateway
