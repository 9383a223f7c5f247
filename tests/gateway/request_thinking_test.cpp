// Thinking in requests: how the reply is to think, what becomes of the thoughts that are sent back.
// Source: anthropic-wire section 7.1; anthropic-cache-semantics sections 9, 13 and C-115.
#include "gateway/api/signature.h"
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {
namespace {

const std::string adaptive = R"("thinking":{"type":"adaptive"})";
const std::string enabled =
    R"("thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":2000)";

std::string request(std::string_view model, std::string_view messages, std::string_view more) {
  std::string body = R"({"model":")" + std::string(model) + R"(","messages":)";
  body += messages;
  if (more.find("max_tokens") == std::string_view::npos) body += R"(,"max_tokens":16)";
  if (!more.empty()) body += "," + std::string(more);
  return body + "}";
}

std::string thought(std::string_view text, const PrefixKey& bound_to, bool shown = true) {
  return R"({"type":"thinking","thinking":")" + std::string(shown ? text : "")
         + R"(","signature":")" + sign_thought(text, bound_to, shown) + "\"}";
}

const std::string user = R"({"role":"user","content":"q"})";
const std::string call = R"({"type":"tool_use","id":"t1","name":"f","input":{}})";
const std::string text = R"({"type":"text","text":"a"})";
const std::string result =
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]})";
const std::string again = R"({"role":"user","content":"more"})";

std::string assistant(std::string_view blocks) {
  return R"({"role":"assistant","content":[)" + std::string(blocks) + "]}";
}

std::string list(const std::vector<std::string>& messages) {
  std::string json = "[";
  for (const std::string& message : messages)
    json += (json.size() > 1 ? "," : "") + message;
  return json + "]";
}

PrefixKey content_key(std::string_view model, const std::vector<std::string>& messages,
                      std::string_view more = "") {
  return parse_messages(request(model, list(messages), more), older_version()).content_key;
}

// The loop of section 13, each thought signed for the request that it answers: the last message is
// the user's next one.
std::vector<std::string> loop(std::string_view model, std::string_view more = "") {
  std::vector<std::string> messages = {user};
  messages.push_back(assistant(thought("one", content_key(model, messages, more)) + "," + call));
  messages.push_back(result);
  messages.push_back(assistant(thought("two", content_key(model, messages, more)) + "," + text));
  messages.push_back(again);
  return messages;
}

// The messages of the prompt, one letter for each item: u and a text, t thinking, c call, r result,
// s system.
std::string shape(const Conversation& conversation) {
  std::string shape;
  for (const Item& item : conversation.items) {
    if (item.section != Section::messages) continue;
    switch (item.kind) {
      case ItemKind::thinking:
        shape += 't';
        break;
      case ItemKind::tool_use:
        shape += 'c';
        break;
      case ItemKind::tool_result:
        shape += 'r';
        break;
      default:
        shape += item.role == Role::user ? 'u' : item.role == Role::assistant ? 'a' : 's';
    }
  }
  return shape;
}

std::string shape(std::string_view model, const std::vector<std::string>& messages,
                  std::string_view more, const RequestContext& context = older_version()) {
  return shape(conversation(request(model, list(messages), more), context));
}

TEST_CASE("whether a reply thinks follows the field and the model") {
  struct Case {
    const char* model;
    std::string more;
    bool wanted;
  };

  for (const Case& test : std::vector<Case>{
           {"claude-opus-4-8", "", false},
           {"claude-opus-4-8", adaptive, true},
           {"claude-opus-5-5", "", true},
           {"claude-sonnet-5", "", true},
           {"claude-sonnet-5", R"("thinking":{"type":"disabled"})", false},
           {"claude-mythos-preview", "", true},
           {"claude-haiku-4-5", "", false},
           {"claude-haiku-4-5", enabled, true},
           {"smollm2-135m", "", false},
           {"smollm2-135m", adaptive, true},
       }) {
    CAPTURE(test.model);
    CAPTURE(test.more);
    CHECK(conversation(request(test.model, list({user}), test.more)).thinking.wanted
          == test.wanted);
  }
}

TEST_CASE("thinking between tools begins with the first result") {
  const std::string between = R"("thinking":{"type":"between_tools"})";
  const char* model = "claude-sonnet-5-5";
  const auto wanted = [&](const std::vector<std::string>& messages) {
    return conversation(request(model, list(messages), between)).thinking.wanted;
  };
  CHECK_FALSE(wanted({user}));
  CHECK(wanted({user, assistant(call), result}));
  CHECK_FALSE(wanted({user, assistant(call), result, assistant(text), again}));
}

TEST_CASE("a thought is as long as its budget or its effort's share of max_tokens") {
  const auto most = [](std::string_view model, std::string_view more) {
    return conversation(request(model, list({user}), more)).thinking.most_tokens;
  };
  CHECK(most("claude-haiku-4-5", enabled) == 1024);
  const auto with = [&](std::string_view effort) {
    return most("claude-opus-5",
                R"("max_tokens":1600,"output_config":{"effort":")" + std::string(effort) + "\"}");
  };
  CHECK(with("low") == 400);
  CHECK(with("medium") == 800);
  CHECK(with("high") == 1200);
  CHECK(with("xhigh") == 1400);
  CHECK(with("max") == 1500);
  CHECK(most("claude-opus-5", R"("max_tokens":1600)") == 1200);
  CHECK(most("claude-opus-5-5", R"("max_tokens":1600)") == 800);
  CHECK(most("claude-opus-5", R"("max_tokens":1)") == 1);
}

TEST_CASE("thinking is shown as asked for, else as the model does by default") {
  const auto shown = [](std::string_view model, std::string_view more) {
    return conversation(request(model, list({user}), more)).thinking.is_shown;
  };
  for (const char* omits :
       {"claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-opus-5-5",
        "claude-haiku-5-5", "claude-fable-5-1", "claude-mythos-preview"}) {
    CAPTURE(omits);
    CHECK_FALSE(shown(omits, adaptive));
    CHECK(shown(omits, R"("thinking":{"type":"adaptive","display":"summarized"})"));
    CHECK_FALSE(shown(omits, R"("thinking":{"type":"adaptive","display":null})"));
  }
  for (const char* shows : {"claude-opus-4-6", "claude-sonnet-4-6", "smollm2-135m"}) {
    CAPTURE(shows);
    CHECK(shown(shows, adaptive));
    CHECK_FALSE(shown(shows, R"("thinking":{"type":"adaptive","display":"omitted"})"));
  }
  CHECK(shown("claude-haiku-4-5", enabled));
  const std::string updates = R"("thinking":{"type":"adaptive","display":"updates"})";
  CHECK(conversation(fields(updates), with_beta("thinking-display-updates-2026-08-20"))
            .thinking.is_shown);
  CHECK(complaint(fields(updates))
        == "thinking.adaptive.display: Input should be 'summarized' or 'omitted'");
}

TEST_CASE("a signed thought comes back as an item of its own") {
  const PrefixKey key = content_key(sonnet, {user});
  for (const bool shown : {true, false}) {
    const Conversation parsed = conversation(request(
        sonnet, list({user, assistant(thought("hm", key, shown) + "," + call), result}), adaptive));
    REQUIRE(shape(parsed) == "utcr");
    CHECK(parsed.items[1].text == "hm");
    CHECK(parsed.items[1].role == Role::assistant);
    CHECK(parsed.items[1].turn == parsed.items[2].turn);
  }
  const std::string redacted =
      R"({"type":"redacted_thinking","data":")" + sign_thought("hm", key, false) + "\"}";
  CHECK(conversation(
            request(sonnet, list({user, assistant(redacted + "," + call), result}), adaptive))
            .items[1]
            .text
        == "hm");
}

TEST_CASE("display has no effect on keys (C-68)") {
  const PrefixKey key = content_key(sonnet, {user});
  const auto bytes = [&](bool shown) {
    return conversation(
               request(sonnet,
                       list({user, assistant(thought("hm", key, shown) + "," + call), result}),
                       adaptive))
        .items[1]
        .key_bytes;
  };
  CHECK(bytes(true) == bytes(false));
}

TEST_CASE("thoughts that were not signed here are refused") {
  const auto with = [](std::string_view block) {
    return complaint(
        request(sonnet, list({user, assistant(std::string(block) + "," + text), again}), adaptive));
  };
  CHECK(with(R"({"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIM"})")
        == "messages.1.content.0: Invalid `signature` in `thinking` block");
  CHECK(with(R"({"type":"thinking","thinking":"","signature":""})")
        == "messages.1.content.0: Invalid `signature` in `thinking` block");
  CHECK(with(R"({"type":"redacted_thinking","data":"abc"})")
        == "messages.1.content.0: Invalid `data` in `redacted_thinking` block");
  CHECK(with(R"({"type":"thinking","thinking":"hm"})")
        == "messages.1.content.0.thinking.signature: Field required");
  CHECK(complaint(request(
            sonnet, list({R"({"role":"user","content":[)" + thought("hm", {}) + "]}"}), adaptive))
        == "messages.0.content.0: `thinking` blocks can only be in `assistant` messages");
}

TEST_CASE("the latest assistant message's thoughts cannot be modified") {
  const PrefixKey key = content_key(sonnet, {user});
  const auto changed = [&](bool shown, std::string_view to) {
    return R"({"type":"thinking","thinking":")" + std::string(to) + R"(","signature":")"
           + sign_thought("hm", key, shown) + "\"}";
  };
  const std::string modified =
      "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
      "message cannot be modified. These blocks must remain as they were in the original response.";
  const auto latest = [&](const std::string& block) {
    return complaint(
        request(sonnet, list({user, assistant(block + "," + call), result}), adaptive));
  };
  CHECK(latest(changed(true, "hm")).empty());
  CHECK(latest(changed(true, "other")) == modified);
  CHECK(latest(changed(true, "")) == modified);
  // Text in the field that was left empty is ignored.
  CHECK(latest(changed(false, "")).empty());
  CHECK(latest(changed(false, "other")).empty());
  // An earlier one's text is ignored as well: the signature has it.
  const Conversation earlier = conversation(request(
      sonnet,
      list({user, assistant(changed(true, "other") + "," + call), result, assistant(text), again}),
      adaptive));
  REQUIRE(shape(earlier) == "utcrau");
  CHECK(earlier.items[1].text == "hm");
}

TEST_CASE("a thought cannot be continued") {
  CHECK(complaint(request("claude-haiku-4-5",
                          list({user, assistant(thought("hm", content_key(sonnet, {user})))}),
                          enabled))
        == "messages.1: The final block in an assistant message cannot be `thinking`");
}

// Section 9's list of models.
TEST_CASE("earlier turns' thoughts stay or go by model (C-64)") {
  for (const char* keeps :
       {"claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-8",
        "claude-sonnet-5", "claude-opus-5", "claude-opus-5-5", "claude-sonnet-5-5",
        "claude-haiku-5-5", "claude-fable-5", "claude-mythos-5-1", "smollm2-135m"}) {
    CAPTURE(keeps);
    const std::string more = std::string_view(keeps) == "claude-opus-4-5" ? enabled : adaptive;
    CHECK(shape(keeps, loop(keeps), more) == "utcrtau");
  }
  for (const char* strips : {"claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1"}) {
    CAPTURE(strips);
    const std::vector<std::string> messages = loop(strips);
    CHECK(shape(strips, messages, enabled) == "ucrau");
    // Within the loop they stay.
    const std::vector<std::string> within(messages.begin(), messages.begin() + 3);
    CHECK(shape(strips, within, enabled) == "utcr");
  }
}

TEST_CASE("results with text beside them go on with the loop") {
  const char* model = "claude-sonnet-4-5";
  const std::string both =
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"},
          {"type":"text","text":"and hurry"}]})";
  const std::string first = assistant(thought("one", content_key(model, {user})) + "," + call);
  CHECK(shape(model, {user, first, both}, enabled) == "utcru");
  CHECK(shape(model, {user, first, result, again}, enabled) == "utcru");
}

TEST_CASE("stripped thoughts leave tokens, keys and turns as if they had never been there (C-64)") {
  const char* model = "claude-sonnet-4-5";
  const Conversation stripped = conversation(request(model, list(loop(model)), enabled));
  const Conversation never = conversation(
      request(model, list({user, assistant(call), result, assistant(text), again}), enabled));
  REQUIRE(stripped.items.size() == never.items.size());
  for (std::size_t i = 0; i < never.items.size(); ++i) {
    CHECK(stripped.items[i].key_bytes == never.items[i].key_bytes);
    CHECK(stripped.items[i].turn == never.items[i].turn);
  }
  // A message of thoughts alone disappears, and the user's turns beside it become one.
  const PrefixKey key = content_key(model, {user});
  const Conversation merged =
      conversation(request(model, list({user, assistant(thought("hm", key)), again}), enabled));
  REQUIRE(shape(merged) == "uu");
  CHECK(merged.items[0].turn == merged.items[1].turn);
}

TEST_CASE("without thinking a model sees no thoughts (C-66)") {
  const std::string off = R"("thinking":{"type":"disabled"})";
  for (const char* model : {"claude-opus-5", "claude-sonnet-4-5"}) {
    CAPTURE(model);
    const std::vector<std::string> messages = loop(model);
    const std::vector<std::string> within(messages.begin(), messages.begin() + 3);
    CHECK(shape(model, within, off) == "ucr");
    CHECK(shape(model, messages, off) == "ucrau");
  }
  CHECK(shape("claude-opus-4-8", loop("claude-opus-4-8"), "") == "ucrau");
}

TEST_CASE("count_tokens leaves thoughts of earlier turns out on every model (C-115)") {
  const auto counted = [](std::string_view model, const std::vector<std::string>& messages) {
    const std::string body =
        R"({"model":")" + std::string(model) + R"(","messages":)" + list(messages) + "}";
    return shape(parse_count_tokens(body, older_version()).conversation);
  };
  const char* model = "claude-opus-5";
  const std::vector<std::string> messages = loop(model);
  CHECK(counted(model, messages) == "ucrau");
  CHECK(counted(model, {messages.begin(), messages.begin() + 3}) == "utcr");
}

TEST_CASE("markers stay on their blocks when thoughts go") {
  const char* model = "claude-sonnet-4-5";
  std::vector<std::string> messages = loop(model);
  messages[2] =
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r",
          "cache_control":{"type":"ephemeral"}}]})";
  const Conversation parsed = conversation(
      request(model, list(messages), enabled + R"(,"cache_control":{"type":"ephemeral"})"));
  REQUIRE(shape(parsed) == "ucrau");
  std::string marked;
  for (const Item& item : parsed.items)
    marked += item.marker ? 'x' : '.';
  CHECK(marked == "..x.x");
}

// ------------------------------------------------------------------------- preserved thinking

const std::string mismatch =
    ": Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    "Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";

const std::string drop =
    R"("thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}})";

RequestContext with_controls() {
  return with_beta("thinking-binding-controls-2026-08-01");
}

TEST_CASE("some models' thoughts are bound to the conversation before them") {
  for (const char* model : {"claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5",
                            "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"}) {
    CAPTURE(model);
    std::vector<std::string> messages = loop(model);
    CHECK(complaint(request(model, list(messages), adaptive)).empty());
    messages[0] = R"({"role":"user","content":"another"})";
    CHECK(complaint(request(model, list(messages), adaptive)) == "messages.1.content.0" + mismatch);
  }
  for (const char* model : {"claude-opus-5", "claude-fable-5", "claude-opus-4-8", "smollm2-135m"}) {
    CAPTURE(model);
    std::vector<std::string> messages = loop(model);
    messages[0] = R"({"role":"user","content":"another"})";
    CHECK(shape(model, messages, adaptive) == "utcrtau");
  }
}

TEST_CASE("a thought is bound to tools and system, not to settings, markers or other thoughts") {
  const char* model = "claude-opus-5-5";
  const std::string base =
      R"("system":"s","tools":[{"name":"f","input_schema":{"type":"object"}}])";
  const std::vector<std::string> messages = loop(model, base);
  const auto ask = [&](std::string_view more) {
    return complaint(request(model, list(messages), more));
  };
  CHECK(ask(base).empty());
  CHECK(ask(R"("system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
      "tools":[{"name":"f","input_schema":{"type":"object"}}],"output_config":{"effort":"low"},
      "tool_choice":{"type":"none"},"max_tokens":99,"cache_control":{"type":"ephemeral"})")
            .empty());
  CHECK(ask(R"("system":"x","tools":[{"name":"f","input_schema":{"type":"object"}}])")
        == "messages.1.content.0" + mismatch);
  CHECK(ask(R"("system":"s")") == "messages.1.content.0" + mismatch);
  // The client may remove a thought, as the error text advises.
  std::vector<std::string> removed = messages;
  removed[1] = assistant(call);
  CHECK(shape(model, removed, base) == "ucrtau");
}

TEST_CASE("the billing line, which changes each time, does not count") {
  const char* model = "claude-opus-5-5";
  const auto with = [](std::string_view hash) {
    return R"("system":[{"type":"text","text":"x-anthropic-billing-header: cch=)"
           + std::string(hash) + R"("},{"type":"text","text":"s"}])";
  };
  for (const bool keep : {false, true}) {
    RequestContext context = older_version();
    context.keep_billing_line = keep;
    const PrefixKey key =
        parse_messages(request(model, list({user}), with("1")), context).content_key;
    const std::string second = list({user, assistant(thought("hm", key) + "," + call), result});
    CHECK(complaint(request(model, second, with("2")), context).empty());
  }
}

TEST_CASE("several thoughts of one reply are bound to where it begins") {
  const char* model = "claude-opus-5-5";
  const PrefixKey key = content_key(model, {user});
  CHECK(shape(model,
              {user,
               assistant(thought("one", key) + "," + text + "," + thought("two", key) + "," + call),
               result},
              adaptive)
        == "utatcr");
}

TEST_CASE("a conversation may be moved to a model that binds") {
  CHECK(shape("claude-opus-5-5", loop("claude-opus-4-8"), adaptive) == "utcrtau");
}

TEST_CASE("drop_block takes unbound thoughts out and reports them") {
  const char* model = "claude-opus-5-5";
  std::vector<std::string> messages = loop(model);
  const auto ask = [&] {
    return parse_messages(request(model, list(messages), drop), with_controls());
  };
  CHECK(ask().input_transformations == "[]");
  CHECK(shape(ask().conversation) == "utcrtau");

  messages[2] =
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"other"}]})";
  CHECK(shape(ask().conversation) == "utcrau");
  CHECK(
      ask().input_transformations
      == R"([{"type":"thinking_dropped","path":"messages.3.content.0","reason":"prefix_binding_mismatch"}])");

  // Thoughts right behind a dropped one go with it.
  const PrefixKey key = content_key(model, {user});
  messages = {user, assistant(thought("one", {1, 2}) + "," + thought("two", key) + "," + call),
              result};
  CHECK(shape(ask().conversation) == "ucr");
  CHECK(
      ask().input_transformations
      == R"([{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"},)"
         R"({"type":"thinking_dropped","path":"messages.1.content.1","reason":"prefix_binding_mismatch"}])");
}

TEST_CASE("the controls of binding exist under their beta only") {
  const char* model = "claude-opus-5-5";
  CHECK(complaint(request(model, list({user}), drop))
        == "thinking.adaptive.block_binding: Extra inputs are not permitted");
  const auto with = [&](std::string_view binding) {
    return complaint(
        request(model, list({user}),
                R"("thinking":{"type":"adaptive","block_binding":)" + std::string(binding) + "}"),
        with_controls());
  };
  CHECK(with("{}").empty());
  CHECK(with("null").empty());
  CHECK(with(R"({"prefix_mismatch_behavior":null})").empty());
  CHECK(with(R"({"prefix_mismatch_behavior":"error"})").empty());
  CHECK(with(R"({"prefix_mismatch_behavior":"warn"})")
        == "thinking.adaptive.block_binding.prefix_mismatch_behavior: Input should be 'error' or "
           "'drop_block'");
  CHECK(with(R"({"other":1})")
        == "thinking.adaptive.block_binding.other: Extra inputs are not permitted");
  CHECK(parse_messages(request(model, list({user}), adaptive), older_version())
            .input_transformations.empty());
}

// -------------------------------------------------------------------- turn-scoped system messages

const std::string scoped =
    R"({"role":"system","content":"for now","clear_at":"next_user_message"})";

RequestContext with_clear_at() {
  return with_beta("mid-conversation-system-clear-at-2026-09-01");
}

TEST_CASE("a turn-scoped system message leaves with the next user message (C-76)") {
  const char* model = "claude-opus-5";
  CHECK(shape(model, {user, scoped}, "", with_clear_at()) == "us");
  CHECK(shape(model, {user, scoped, assistant(call), result}, "", with_clear_at()) == "ucr");
  CHECK(shape(model, {user, scoped, assistant(text), again, scoped}, "", with_clear_at())
        == "uaus");
  CHECK(complaint(request(model, list({user, scoped}), ""))
        == "messages.1.clear_at: Extra inputs are not permitted");
  const auto with = [&](std::string_view value) {
    return complaint(request(model,
                             list({user, R"({"role":"system","content":"x","clear_at":)"
                                             + std::string(value) + "}"}),
                             ""),
                     with_clear_at());
  };
  CHECK(with("null").empty());
  CHECK(with("\"later\"") == "messages.1.clear_at: Input should be 'next_user_message'");
}

TEST_CASE("thoughts stay bound when a turn-scoped message has left") {
  const char* model = "claude-opus-5-5";
  const PrefixKey key =
      parse_messages(request(model, list({user, scoped}), ""), with_clear_at()).content_key;
  CHECK(shape(model, {user, scoped, assistant(thought("hm", key) + "," + call), result}, "",
              with_clear_at())
        == "utcr");
}

TEST_CASE("the automatic marker walks back over what cannot be marked (C-26, C-76)") {
  const char* model = "claude-opus-5";
  const std::string automatic = R"("cache_control":{"type":"ephemeral"})";
  const Conversation parsed =
      conversation(request(model, list({user, scoped}), automatic), with_clear_at());
  REQUIRE(parsed.items.size() == 2);
  CHECK(parsed.items[0].marker);
  CHECK_FALSE(parsed.items[1].marker);
  CHECK(complaint(request(model, list({user, R"({"role":"system","clear_at":"next_user_message",
            "content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]})"}),
                          ""),
                  with_clear_at())
            .starts_with("messages.1.content.0.text.cache_control: "));
}

// ------------------------------------------------------------------------------- settings

TEST_CASE("thinking settings stand before the messages, or before everything (C-53)") {
  RequestContext ahead = older_version();
  ahead.settings_before_tools = true;
  const auto parsed = [](std::string_view more, const RequestContext& context) {
    return conversation(request("claude-opus-5", list({user}), more), context);
  };
  const std::vector<std::string> changes = {R"("thinking":{"type":"disabled"})",
                                            R"("output_config":{"effort":"low"})"};
  for (const std::string& change : changes) {
    CAPTURE(change);
    const Conversation plain = parsed("", older_version());
    const Conversation changed = parsed(change, older_version());
    CHECK(plain.key_before_tools == changed.key_before_tools);
    CHECK(plain.key_before_system == changed.key_before_system);
    CHECK(plain.key_before_messages != changed.key_before_messages);
    const Conversation plain_ahead = parsed("", ahead);
    const Conversation changed_ahead = parsed(change, ahead);
    CHECK(plain_ahead.key_before_tools != changed_ahead.key_before_tools);
    CHECK(plain_ahead.key_before_messages == changed_ahead.key_before_messages);
  }
  for (const char* same :
       {R"("thinking":{"type":"adaptive"})", R"("output_config":{"effort":"high"})",
        R"("thinking":{"type":"adaptive","display":"summarized"})"}) {
    CAPTURE(same);
    for (const RequestContext& context : {older_version(), ahead}) {
      CHECK(parsed(same, context).key_before_tools == parsed("", context).key_before_tools);
      CHECK(parsed(same, context).key_before_messages == parsed("", context).key_before_messages);
    }
  }
  const auto budget = [](int tokens) {
    return conversation(request("claude-haiku-4-5", list({user}),
                                R"("max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":)"
                                    + std::to_string(tokens) + "}"))
        .key_before_messages;
  };
  CHECK(budget(1024) != budget(1025));
}

}  // namespace
}  // namespace incipit::gateway
