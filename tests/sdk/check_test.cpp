#include "incipit/prompt.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace incipit {
namespace {

MessageParam user(std::vector<ContentBlock> content) {
  return {MessageRole::user, std::move(content)};
}

MessageParam assistant(std::vector<ContentBlock> content) {
  return {MessageRole::assistant, std::move(content)};
}

TextBlock text(std::string words, std::optional<CacheControl> marker = {}) {
  return {.text = std::move(words), .cache_control = marker};
}

constexpr CacheControl hour{Ttl::one_hour};
constexpr CacheControl minutes{Ttl::five_minutes};

Tool tool(std::string name) {
  Tool made;
  made.name = std::move(name);
  made.input_schema = JsonText(R"({"type":"object","properties":{}})");
  return made;
}

ToolUseBlock call(std::string id) {
  return {.id = std::move(id), .name = "look", .input = JsonText("{}")};
}

ToolResultBlock result(std::string id) {
  return {.tool_use_id = std::move(id), .content = {text("found")}};
}

MessageRequest valid() {
  MessageRequest request;
  request.model = "claude-sonnet-5";
  request.max_tokens = 100;
  request.tools = {tool("look")};
  request.system = {text("Be brief.")};
  request.messages = {user({text("Hello")})};
  return request;
}

// "RULE path", or "" when the request is in order.
std::string refusal(const MessageRequest& request, std::string_view version = "2026-10-21") {
  try {
    check(request, version);
  } catch (const PromptError& error) {
    CHECK(std::string(error.what()).find(error.path) != std::string::npos);
    return error.rule + " " + error.path;
  }
  return "";
}

std::string refusal(const std::function<void(MessageRequest&)>& change,
                    std::string_view version = "2026-10-21") {
  MessageRequest request = valid();
  change(request);
  return refusal(request, version);
}

std::string refusal(std::vector<MessageParam> messages, std::string_view version = "2026-10-21") {
  MessageRequest request = valid();
  request.messages = std::move(messages);
  return refusal(request, version);
}

std::string words(const MessageRequest& request) {
  try {
    check(request);
  } catch (const PromptError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a request of all kinds of blocks in their places is in order") {
  MessageRequest request = valid();
  request.cache_control = minutes;
  request.messages = {
      user({text("Look"), ImageBlock{.source = UrlSource{"https://example.org/a.png"}}}),
      assistant({ThinkingBlock{.thinking = "hm", .signature = "c2ln"}, text("Two at once."),
                 call("a"), call("b")}),
      user({result("b"), result("a"), text("And now?")}),
      {MessageRole::system, {text("It is evening.")}},
      assistant({RedactedThinkingBlock{.data = "eA=="}, call("c")}),
      user({result("c")}),
  };
  CHECK(refusal(request) == "");
}

TEST_CASE("text that is not UTF-8 is refused with its place and offset") {
  MessageRequest request = valid();
  request.messages.push_back(assistant({text("ok")}));
  request.messages.push_back(user({text("fine"), text(std::string(40, 'x') + "é\xC3(")}));
  CHECK(refusal(request) == "W-1 messages.2.content.1.text");
  CHECK(words(request).find("byte 42 (0xC3)") != std::string::npos);

  CHECK(refusal([](auto& r) { r.system[0].text = "\xff"; }) == "W-1 system.0.text");
  CHECK(refusal([](auto& r) { r.model = "\xC0\x80"; }) == "W-1 model");
  CHECK(refusal([](auto& r) { r.tools[0].description = "\xED\xA0\x80"; })
        == "W-1 tools.0.description");
  CHECK(refusal([](auto& r) { r.tools[0].name = "\xff"; }) == "W-1 tools.0.name");
  CHECK(refusal([](auto& r) { r.stop_sequences = {"ok", "\xff"}; }) == "W-1 stop_sequences.1");
  CHECK(refusal([](auto& r) { r.user_id = "\xff"; }) == "W-1 metadata.user_id");
  CHECK(refusal([](auto& r) { r.speed = "\xff"; }) == "W-1 speed");
  ToolResultBlock nested = result("a");
  nested.content = {DocumentBlock{.source = ContentSource{{text("a"), text("b\xff")}}}};
  CHECK(refusal({user({text("Go")}), assistant({call("a")}), user({nested})})
        == "W-1 messages.2.content.0.content.0.source.content.1.text");
  CHECK(refusal({user({DocumentBlock{.source = TextSource{"x\xff"}}})})
        == "W-1 messages.0.content.0.source.data");
}

TEST_CASE("each ill-formed sequence is found wherever it lies in a long text") {
  // The offset is the number of bytes before: 0 to 70 crosses the stride of any fast path.
  for (const std::string bad : {"\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xF5", "\xC1\xBF"}) {
    for (std::size_t before = 0; before < 70; ++before) {
      MessageRequest request = valid();
      request.messages = {user({text(std::string(before, 'a') + bad + std::string(9, 'b'))})};
      REQUIRE(words(request).find("at byte " + std::to_string(before) + " ") != std::string::npos);
      request.messages = {user({text(std::string(before, 'a') + "€😀é" + std::string(9, 'b'))})};
      REQUIRE(refusal(request) == "");
    }
  }
}

TEST_CASE("a fifth marker is refused with E-1 and counted") {
  MessageRequest request = valid();
  request.tools[0].cache_control = minutes;
  request.system = {text("a", minutes), text("b", minutes), text("c", minutes)};
  CHECK(refusal(request) == "");
  request.messages = {user({text("Hello", minutes)})};
  CHECK(refusal(request) == "E-1 messages.0.content.0");
  CHECK(words(request).find("Found 5") != std::string::npos);
  // Spec, E-1: one tool, four system texts, one message.
  request.system.push_back(text("d", minutes));
  CHECK(words(request).find("Found 6") != std::string::npos);
}

TEST_CASE("markers inside tool results and documents count (C-12)") {
  ToolResultBlock inside = result("a");
  inside.content = {text("1", minutes), text("2", minutes), text("3", minutes)};
  inside.cache_control = minutes;
  MessageRequest request = valid();
  request.messages = {user({text("Go")}), assistant({call("a")}), user({inside})};
  CHECK(refusal(request) == "");
  request.system[0].cache_control = minutes;
  CHECK(refusal(request) == "E-1 messages.2.content.0");
  SearchResultBlock found{.source = "s", .title = "t", .content = {text("1", minutes)}};
  DocumentBlock document{.source = ContentSource{{text("1", hour)}}};
  CHECK(refusal({user({found, document})})
        == "E-2 messages.0.content.1.source.content.0.cache_control.ttl");
}

TEST_CASE("an hour after five minutes is refused with E-2, as in C-15 and V10") {
  CHECK(refusal([](auto& r) {
          r.tools[0].cache_control = minutes;
          r.system[0].cache_control = hour;
        })
        == "E-2 system.0.cache_control.ttl");
  CHECK(refusal([](auto& r) {
          r.tools[0].cache_control = hour;
          r.system[0].cache_control = minutes;
        })
        == "");
  CHECK(refusal([](auto& r) {
          r.system[0].cache_control = minutes;
          r.messages = {user({text("a"), text("b", hour)})};
        })
        == "E-2 messages.0.content.1.cache_control.ttl");
  CHECK(refusal([](auto& r) {
          r.system[0].cache_control = minutes;
          r.cache_control = hour;
        })
        == "E-2 cache_control");
}

TEST_CASE("a marker on empty text is refused with E-5, on a deferred tool with E-7") {
  CHECK(refusal([](auto& r) { r.system[0] = text("", minutes); }) == "E-5 system.0");
  CHECK(refusal({user({text("a"), text("", minutes)})}) == "E-5 messages.0.content.1");
  CHECK(refusal([](auto& r) {
          r.tools.push_back(tool("later"));
          r.tools[1].defer_loading = true;
          r.tools[1].cache_control = minutes;
        })
        == "E-7 tools.1");
}

TEST_CASE("automatic caching takes a slot of its own, or its target's (V12, V13, V14)") {
  MessageRequest request = valid();
  request.cache_control = minutes;
  request.tools[0].cache_control = minutes;
  request.system = {text("a", minutes), text("b", minutes)};
  request.messages = {user({text("Hello")})};
  CHECK(refusal(request) == "");
  request.system.push_back(text("c", minutes));
  CHECK(refusal(request) == "E-8 cache_control");
  request.system[0].cache_control.reset();
  request.messages = {user({text("Hello", minutes)})};
  CHECK(refusal(request) == "");  // four, and the automatic one is the last of them
  request.system = {text("a")};
  request.tools[0].cache_control = hour;
  request.messages = {user({text("Hello", hour)})};
  CHECK(refusal(request) == "E-9 cache_control");
  // C-26: thinking cannot be marked, so the target is the text before it.
  request.messages.push_back(assistant({ThinkingBlock{.thinking = "", .signature = "c2ln"}}));
  CHECK(refusal(request) == "E-9 cache_control");
}

TEST_CASE("messages follow each other as section 4.1 says") {
  const auto system = [](std::string words) {
    return MessageParam{MessageRole::system, {text(std::move(words))}};
  };
  const ContentBlock compaction = UnknownBlock{
      .type = "compaction", .json = JsonText(R"({"type":"compaction","content":"so far"})")};
  const ContentBlock searched = ServerToolResultBlock{
      .type = "web_search_tool_result", .tool_use_id = "s", .content = JsonText("[]")};
  CHECK(refusal(std::vector<MessageParam>{}) == "W-4.1 messages");
  CHECK(refusal({assistant({text("Hi")})}) == "W-4.1 messages.0");
  CHECK(refusal({assistant({compaction}), user({text("Go on")})}) == "");
  CHECK(refusal({system("Now"), user({text("Hi")})}) == "W-4.1 messages.0");
  CHECK(refusal({user({text("Hi")}), system("Now")}) == "");
  CHECK(refusal({user({text("Hi")}), system("Now"), assistant({text("Yes")})}) == "");
  CHECK(refusal({user({text("Hi")}), system("Now"), user({text("Hi")})}) == "W-4.1 messages.1");
  CHECK(refusal({user({text("Hi")}), assistant({text("Yes")}), system("Now")})
        == "W-4.1 messages.2");
  CHECK(refusal({user({text("Hi")}), assistant({searched}), system("Now")}) == "");
  CHECK(refusal({user({text("Hi")}), user({text("there")})}) == "");
}

TEST_CASE("texts and messages must not be empty") {
  CHECK(refusal({user({})}) == "W-4.1 messages.0");
  CHECK(refusal({user({text("a")}), assistant({}), user({text("b")})}) == "W-4.1 messages.1");
  CHECK(refusal({user({text("a")}), assistant({})}) == "");
  CHECK(refusal({user({text("a"), text("")})}) == "W-4.1 messages.0.content.1.text");
  CHECK(refusal({user({text(" \n\t")})}) == "W-4.1 messages.0.content.0.text");
  CHECK(refusal([](auto& r) { r.system = {text("a"), text(" ")}; }) == "W-4.1 system.1.text");
  CHECK(refusal({user({text("a")}), assistant({text("The answer is ")})})
        == "W-4.1 messages.1.content.0");
  CHECK(refusal({user({text("a")}), assistant({text("The answer is")})}) == "");
  CHECK(refusal({user({text("a")}), assistant({text("Yes ")}), user({text("b")})}) == "");
}

TEST_CASE("blocks stand in messages of their role") {
  const ThinkingBlock thought{.thinking = "hm", .signature = "c2ln"};
  CHECK(refusal({user({thought})}) == "W-4.1 messages.0.content.0");
  CHECK(refusal({user({RedactedThinkingBlock{.data = "eA=="}})}) == "W-4.1 messages.0.content.0");
  CHECK(refusal({user({call("a")})}) == "W-4.1 messages.0.content.0");
  CHECK(refusal({user({text("a")}), assistant({result("a")})}) == "W-4.2 messages.1.content.0");
  const ImageBlock image{.source = UrlSource{"https://example.org/a.png"}};
  CHECK(refusal({user({text("a")}), {MessageRole::system, {image}}})
        == "W-4.1 messages.1.content.0");
  CHECK(refusal({user({UnknownBlock{.type = "new", .json = JsonText("[]")}})})
        == "W-4.1 messages.0.content.0");
}

TEST_CASE("each call has one result, first in the next turn") {
  const MessageParam ask = user({text("Go")});
  const MessageParam two = assistant({call("a"), call("b")});
  CHECK(refusal({ask, two, user({result("a"), result("b")})}) == "");
  CHECK(refusal({ask, two, user({result("a")}), user({result("b")})}) == "");  // one turn
  CHECK(refusal({ask, two, user({result("a")})}) == "W-4.2 messages.1.content.1");
  CHECK(refusal({ask, two}) == "W-4.2 messages.1.content.0");
  CHECK(refusal({ask, two, user({text("no")})}) == "W-4.2 messages.1.content.0");
  CHECK(refusal({ask, two, user({result("a"), text("and"), result("b")})})
        == "W-4.2 messages.2.content.2");
  CHECK(refusal({ask, two, user({result("a"), result("b"), result("b")})})
        == "W-4.2 messages.2.content.2");
  CHECK(refusal({ask, two, user({result("a"), result("b"), result("c")})})
        == "W-4.2 messages.2.content.2");
  CHECK(refusal({user({result("a")})}) == "W-4.2 messages.0.content.0");
  CHECK(refusal({ask, assistant({call("a")}), user({result("a")}), assistant({call("a")}),
                 user({result("a")})})
        == "W-4.2 messages.3.content.0");
  CHECK(refusal({ask, assistant({call("a")}), user({result("a")}), assistant({text("So")}),
                 user({result("a")})})
        == "W-4.2 messages.4.content.0");
  CHECK(refusal({ask, assistant({call("a b")}), user({result("a b")})})
        == "W-4.2 messages.1.content.0.id");
  CHECK(refusal({ask, assistant({call("")}), user({result("")})})
        == "W-4.2 messages.1.content.0.id");
  ToolUseBlock listed = call("a");
  listed.input = JsonText("[1]");
  CHECK(refusal({ask, assistant({listed}), user({result("a")})})
        == "W-4.2 messages.1.content.0.input");
}

TEST_CASE("the continuation of a thread may begin with results") {
  MessageRequest request = valid();
  request.messages = {user({result("a")})};
  request.extra = JsonText(R"({"thread":{"type":"continue","previous_message_id":"msg_1"}})");
  CHECK(refusal(request) == "");
  request.messages.clear();
  CHECK(refusal(request) == "");
  request.tools.clear();
  request.tool_choice = {ToolChoice::Type::any};  // the tools are those of the thread
  CHECK(refusal(request) == "");
  request = valid();
  request.messages = {user({result("a")})};
  request.extra = JsonText(R"({"thread":{"type":"create"}})");
  CHECK(refusal(request) == "W-4.2 messages.0.content.0");
}

TEST_CASE("tools are named, unique, and take an object") {
  CHECK(refusal([](auto& r) { r.tools[0].name = std::string(128, 'a'); }) == "");
  CHECK(refusal([](auto& r) { r.tools[0].name = std::string(129, 'a'); }) == "W-6.1 tools.0.name");
  CHECK(refusal([](auto& r) { r.tools[0].name = "look up"; }) == "W-6.1 tools.0.name");
  CHECK(refusal([](auto& r) { r.tools[0].name = ""; }) == "W-6.1 tools.0.name");
  CHECK(refusal([](auto& r) {
          r.tools = {tool("a"), tool("b"), tool("a")};
        })
        == "W-6.1 tools.2.name");
  CHECK(refusal([](auto& r) { r.tools[0].input_schema = {}; }) == "W-6.1 tools.0.input_schema");
  CHECK(refusal([](auto& r) { r.tools[0].input_schema = JsonText("[]"); })
        == "W-6.1 tools.0.input_schema");
  for (const char* schema : {R"({"type":"string"})", R"({"properties":{"type":"object"}})", "{}"}) {
    CHECK(refusal([&](auto& r) { r.tools[0].input_schema = JsonText(schema); })
          == "W-6.1 tools.0.input_schema.type");
  }
  for (const char* schema : {"{ \"a\" : {\"]\":[1,\"}\"]} , \"type\" : \"object\" }",
                             R"({"description":"\\","type":"object"})"}) {
    CHECK(refusal([&](auto& r) { r.tools[0].input_schema = JsonText(schema); }) == "");
  }
  CHECK(refusal([](auto& r) {
          r.tools[0] = {};
          r.tools[0].type = "computer_toolset_20260801";
        })
        == "");
  CHECK(refusal([](auto& r) { r.tools[0].options = JsonText(R"({"max_uses":1,"name":"x"})"); })
        == "W-6.1 tools.0.options");
  CHECK(refusal([](auto& r) { r.tools[0].defer_loading = true; }) == "C-74 tools");
}

TEST_CASE("tool_choice names a tool that is there") {
  using Type = ToolChoice::Type;
  CHECK(refusal([](auto& r) { r.tool_choice = {Type::tool, "look"}; }) == "");
  CHECK(refusal([](auto& r) { r.tool_choice = {Type::tool, "leap"}; }) == "W-6.4 tool_choice.name");
  CHECK(refusal([](auto& r) { r.tool_choice = {Type::any}; }) == "");
  for (const Type type : {Type::any, Type::tool, Type::automatic, Type::none}) {
    const bool forced = type == Type::any || type == Type::tool;
    const std::string refused = refusal([&](auto& r) {
      r.tools.clear();
      r.tool_choice = {type};
    });
    CHECK(refused.starts_with("W-6.4 tool_choice") == forced);
  }
}

TEST_CASE("thinking has a budget of 1024 at least, and less than max_tokens") {
  const auto thinks = [](std::int64_t budget, std::int64_t max_tokens) {
    return refusal([&](auto& r) {
      r.max_tokens = max_tokens;
      r.thinking = {.type = Thinking::Type::enabled, .budget_tokens = budget};
    });
  };
  CHECK(thinks(1024, 1025) == "");
  CHECK(thinks(1023, 2000) == "W-7.1 thinking.budget_tokens");
  CHECK(thinks(1024, 1024) == "W-7.1 thinking.budget_tokens");
  CHECK(refusal([](auto& r) {
          r.max_tokens = 2000;
          r.thinking = {.type = Thinking::Type::enabled, .budget_tokens = 1024};
          r.tool_choice = {ToolChoice::Type::any};
        })
        == "W-6.4 tool_choice");
}

TEST_CASE("filling the cache goes with none of what C-90 names") {
  const auto prewarm = [](const std::function<void(MessageRequest&)>& change) {
    return refusal([&](auto& r) {
      r.max_tokens = 0;
      change(r);
    });
  };
  CHECK(prewarm([](auto&) {}) == "");
  CHECK(prewarm([](auto& r) { r.stream = true; }) == "C-90 stream");
  CHECK(prewarm(
            [](auto& r) { r.thinking = {.type = Thinking::Type::enabled, .budget_tokens = 1024}; })
        == "C-90 thinking.type");
  CHECK(prewarm([](auto& r) { r.thinking = {.type = Thinking::Type::adaptive}; }) == "");
  CHECK(prewarm([](auto& r) { r.output_format = JsonText("{}"); }) == "C-90 output_config.format");
  CHECK(prewarm([](auto& r) { r.tool_choice = {ToolChoice::Type::any}; }) == "C-90 tool_choice");
  CHECK(prewarm([](auto& r) { r.tool_choice = {ToolChoice::Type::automatic}; }) == "");
}

TEST_CASE("version 2026-10-21 takes less than 2023-06-01 (W-4)") {
  const auto both = [](const MessageRequest& request) {
    CHECK(refusal(request, "2023-06-01") == "");
    CHECK(refusal(request, "2031-01-01") == refusal(request));  // unknown: as the newest (W-6)
    return refusal(request);
  };
  MessageRequest request = valid();
  request.temperature = 1.0;
  CHECK(both(request) == "W-4 temperature");
  request = valid();
  request.top_p = 0.5;
  CHECK(both(request) == "W-4 top_p");
  request = valid();
  request.top_k = 0;
  CHECK(both(request) == "W-4 top_k");
  request = valid();
  request.messages.push_back(assistant({DocumentBlock{.source = UrlSource{"https://a.org"}}}));
  CHECK(both(request) == "W-4 messages.1.content.0");
  request = valid();
  TextBlock cited = text("so it says");
  cited.citations = {Citation{.type = "char_location", .cited_text = "so"}};
  request.messages = {user({cited})};
  CHECK(both(request) == "W-4 messages.0.content.0.citations");
  request.messages = {user({SearchResultBlock{.source = "s", .title = "t", .content = {cited}}})};
  CHECK(both(request) == "W-4 messages.0.content.0.content.0.citations");
  request.messages = {user({text("a")}), assistant({cited})};
  CHECK(refusal(request) == "");
}

TEST_CASE("settings are in their ranges") {
  const auto old = [](const std::function<void(MessageRequest&)>& change) {
    return refusal(change, "2023-06-01");
  };
  CHECK(old([](auto& r) { r.temperature = 1.01; }) == "W-4 temperature");
  CHECK(old([](auto& r) { r.temperature = -0.1; }) == "W-4 temperature");
  CHECK(old([](auto& r) { r.temperature = std::stod("nan"); }) == "W-4 temperature");
  CHECK(old([](auto& r) { r.top_p = 2.0; }) == "W-4 top_p");
  CHECK(old([](auto& r) { r.top_k = -1; }) == "W-4 top_k");
  CHECK(refusal([](auto& r) { r.max_tokens = -1; }) == "W-4 max_tokens");
  CHECK(refusal([](auto& r) { r.model = ""; }) == "W-4 model");
  CHECK(refusal([](auto& r) { r.stop_sequences = {"END", " \n"}; }) == "W-4 stop_sequences.1");
  CHECK(refusal([](auto& r) { r.stop_sequences = {""}; }) == "W-4 stop_sequences.0");
  const auto repeated = [](int count) {
    std::string id;
    for (int i = 0; i < count; ++i)
      id += "é";
    return id;
  };
  CHECK(refusal([&](auto& r) { r.user_id = repeated(256); }) == "");
  CHECK(refusal([&](auto& r) { r.user_id = repeated(257); }) == "W-4 metadata.user_id");
  CHECK(refusal([](auto& r) { r.extra = JsonText("[]"); }) == "W-4 extra");
  CHECK(refusal([](auto& r) { r.extra = JsonText(R"({"betas":{"model":1}})"); }) == "");
  CHECK(refusal([](auto& r) { r.extra = JsonText(R"({"a":[1],"temperature":1})"); })
        == "W-4 extra");
  CHECK(refusal([](auto& r) { r.extra = JsonText(R"({"\u006dodel":"x"})"); }) == "W-4 extra");
  const JsonText config(R"({"output_config":{"task_budget":{"type":"tokens","total":9}}})");
  CHECK(refusal([&](auto& r) { r.extra = config; }) == "");
  CHECK(refusal([&](auto& r) {
          r.extra = config;
          r.effort = Effort::low;
        })
        == "W-4 extra");
  CHECK(refusal([](auto& r) { r.output_format = JsonText("1"); }) == "W-7.3 output_config.format");
  CHECK(refusal([](auto& r) {
          r.output_format = JsonText("{}");
          r.messages.push_back(assistant({text("{")}));
        })
        == "W-7.3 output_config.format");
}

TEST_CASE("a request holds 100,000 messages at most") {
  MessageRequest request = valid();
  request.messages.assign(100'000, user({text("a")}));
  CHECK(refusal(request) == "");
  request.messages.push_back(user({text("a")}));
  CHECK(refusal(request) == "W-4.1 messages");
}

}  // namespace
}  // namespace incipit
