#include "incipit/prompt.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace incipit {
namespace {

// Bytes written by tests/data/prompt/make_snapshots.py.
std::string snapshot(const std::string& name) {
  std::ifstream file(INCIPIT_TEST_DATA "/prompt/" + name + ".json", std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

Tool weather() {
  Tool tool;
  tool.name = "weather";
  tool.description = "The weather of a city.";
  tool.input_schema =
      JsonText(R"({"type":"object","required":["city"],"properties":{"city":{"type":"string"},)"
               R"("celsius":{"type":"boolean"}}})");
  return tool;
}

ToolUseBlock call(std::string id, const char* input = "{}") {
  return {.id = std::move(id), .name = "weather", .input = JsonText(input)};
}

std::string body(const Prompt& prompt) {
  MessageRequest request;
  request.model = prompt.model();
  request.tools = prompt.tools();
  request.messages = prompt.messages();
  return to_json(request) + " " + std::to_string(prompt.breakpoints());
}

// "RULE path" of what is thrown, "" without; and that the prompt is then as it was.
std::string refusal(Prompt& prompt, const std::function<void(Prompt&)>& change) {
  const std::string before = body(prompt);
  try {
    change(prompt);
  } catch (const PromptError& error) {
    CHECK(body(prompt) == before);
    return error.rule + " " + error.path;
  }
  return "";
}

TEST_CASE("the smallest prompt has the stored bytes") {
  Prompt prompt("claude-sonnet-5");
  prompt.user("Hello");
  CHECK(to_json(prompt.request()) == snapshot("smallest"));
}

TEST_CASE("characters of all kinds have the stored bytes") {
  Prompt prompt("claude-sonnet-5");
  prompt.system("\"quoted\" \\ and\ttabbed\r\n\b\f")
      .user("naïve – 日本語 😀 \u2028 \x7f \x01 </script> &");
  CHECK(to_json(prompt.request({.max_tokens = 1})) == snapshot("characters"));
}

TEST_CASE("a tool loop with markers and settings has the stored bytes") {
  Message reply;
  reply.content = {ThinkingBlock{.thinking = "Two calls.", .signature = "c2ln"},
                   TextBlock{.text = "I look."},
                   call("toolu_1", R"({"city":"Prague","celsius":true})"),
                   call("toolu_2", R"({"city":"Oslo"})")};
  Tool search;
  search.type = "web_search_20260318";
  search.name = "web_search";
  search.options = JsonText(R"({"max_uses":3})");

  Prompt prompt("claude-opus-5-5");
  prompt.tool(weather()).breakpoint(Ttl::one_hour).tool(search);
  prompt.system("You know the weather.").system("Be brief.").breakpoint(Ttl::one_hour);
  prompt.user("Prague and Oslo?").assistant(reply);
  prompt.tool_result("toolu_1", "18 °C").tool_result("toolu_2", "no such city", true);
  prompt.user("And tomorrow?").breakpoint().system_message("It is evening.");
  prompt.assistant(call("toolu_3", R"({"city":"Brno"})"));
  prompt.tool_result("toolu_3", "").breakpoint(Ttl::five_minutes);
  CHECK(prompt.breakpoints() == 4);
  const MessageRequest request = prompt.request(
      {.max_tokens = 2048,
       .tool_choice = ToolChoice{.disable_parallel_tool_use = true},
       .thinking = Thinking{.type = Thinking::Type::adaptive, .display = "summarized"},
       .effort = Effort::low,
       .stop_sequences = {"END"},
       .user_id = "u-1"});
  CHECK(to_json(request) == snapshot("tool_loop"));
}

TEST_CASE("automatic caching has the stored bytes") {
  Prompt prompt("claude-haiku-5-5");
  prompt.system("Describe what you see.")
      .user(ImageBlock{.source = UrlSource{"https://example.org/a.png"}})
      .user("What is this?")
      .automatic_caching();
  CHECK(to_json(prompt.request({.max_tokens = 64})) == snapshot("automatic"));
}

TEST_CASE("JSON of the caller goes out as it came in") {
  Tool tool = weather();
  tool.input_schema = JsonText("{ \"type\" : \"object\", \"z\":1.0,\n\"a\":1e2 }");
  Prompt prompt("claude-sonnet-5");
  prompt.tool(tool).user("Go").assistant(call("a", "{\"z\": 1 , \"a\":\"\\u00e9\"}"));
  prompt.tool_result("a", "done");
  const std::string json = to_json(prompt.request());
  CHECK(json.find("{ \"type\" : \"object\", \"z\":1.0,\n\"a\":1e2 }") != std::string::npos);
  CHECK(json.find("\"input\":{\"z\": 1 , \"a\":\"\\u00e9\"}") != std::string::npos);
}

TEST_CASE("parts out of order are refused with C-1") {
  Prompt prompt("claude-sonnet-5");
  prompt.system("s");
  CHECK(refusal(prompt, [](auto& p) { p.tool(weather()); }) == "C-1 tools.0");
  prompt.user("u");
  CHECK(refusal(prompt, [](auto& p) { p.system("t"); }) == "C-1 system.1");
  CHECK(refusal(prompt, [](auto& p) { p.tool(weather()); }) == "C-1 tools.0");
}

TEST_CASE("text that is not UTF-8 is refused where it is added, with its offset") {
  Prompt prompt("claude-sonnet-5");
  CHECK(refusal(prompt, [](auto& p) { p.system("ab\xff"); }) == "W-1 system.0.text");
  prompt.user("a");
  CHECK(refusal(prompt, [](auto& p) { p.user("\xff"); }) == "W-1 messages.0.content.1.text");
  CHECK(refusal(prompt, [](auto& p) { p.assistant("\xff"); }) == "W-1 messages.1.content.0.text");
  prompt.assistant(call("a"));
  CHECK(refusal(prompt, [](auto& p) { p.tool_result("a", "\xff"); })
        == "W-1 messages.2.content.0.content.0.text");
  try {
    prompt.tool_result("a", std::string(100, 'x') + "\xE2\x82");
    FAIL("not refused");
  } catch (const PromptError& error) {
    CHECK(std::string(error.what()).find("byte 100 ") != std::string::npos);
  }
  CHECK_THROWS_AS(Prompt("\xff"), PromptError);
}

TEST_CASE("calls for one role make one turn, and message() makes one of its own") {
  Prompt prompt("claude-sonnet-5");
  prompt.user("a").user("b").assistant("c").assistant("d").message(
      {MessageRole::assistant, {TextBlock{.text = "e"}}});
  REQUIRE(prompt.messages().size() == 3);
  CHECK(prompt.messages()[0].content.size() == 2);
  CHECK(prompt.messages()[1].content.size() == 2);
  prompt.user("f");
  CHECK(prompt.messages().size() == 4);
}

TEST_CASE("a result needs its call, in the last assistant turn, once") {
  Prompt prompt("claude-sonnet-5");
  CHECK(refusal(prompt, [](auto& p) { p.tool_result("a", "x"); }) == "W-4.2 messages.0.content.0");
  prompt.user("Go").assistant(call("a")).assistant(call("b"));
  CHECK(refusal(prompt, [](auto& p) { p.tool_result("c", "x"); }) == "W-4.2 messages.2.content.0");
  prompt.tool_result("b", "x");
  CHECK(refusal(prompt, [](auto& p) { p.tool_result("b", "y"); }) == "W-4.2 messages.2.content.1");
  // a has no result yet: neither other content nor the next turn can come.
  CHECK(refusal(prompt, [](auto& p) { p.user("now"); }) == "W-4.2 messages.1.content.0");
  CHECK(refusal(prompt, [](auto& p) { p.assistant("now"); }) == "W-4.2 messages.1.content.0");
  CHECK(refusal(prompt, [](auto& p) { (void)p.request(); }) == "W-4.2 messages.1.content.0");
  prompt.tool_result("a", "x").user("now");
  CHECK(refusal(prompt, [](auto& p) { p.tool_result("a", "y"); }) == "W-4.2 messages.2.content.3");
  CHECK(refusal(prompt, [](auto& p) { p.assistant(call("a")); }) == "W-4.2 messages.3.content.0");
  prompt.assistant("fine");
  CHECK(refusal(prompt, [](auto& p) { p.tool_result("b", "x"); }) == "W-4.2 messages.4.content.0");
  CHECK_NOTHROW((void)prompt.request());
}

TEST_CASE("turns come in the order of section 4.1") {
  Prompt prompt("claude-sonnet-5");
  CHECK(refusal(prompt, [](auto& p) { p.assistant("a"); }) == "W-4.1 messages.0");
  CHECK(refusal(prompt, [](auto& p) { p.system_message("a"); }) == "W-4.1 messages.0");
  CHECK(refusal(prompt, [](auto& p) { p.user(" \n"); }) == "W-4.1 messages.0.content.0.text");
  CHECK(refusal(prompt, [](auto& p) { p.assistant(Message{}); }) == "W-4.1 messages.0");
  CHECK(refusal(prompt, [](auto& p) { p.message({}); }) == "W-4.1 messages.0");
  prompt.user("a").system_message("b").system_message("c");
  CHECK(refusal(prompt, [](auto& p) { p.user("d"); }) == "W-4.1 messages.1");
  prompt.assistant("e");
  CHECK(refusal(prompt, [](auto& p) { p.system_message("f"); }) == "W-4.1 messages.3");
  CHECK(prompt.messages().size() == 3);
}

TEST_CASE("tools are refused where they are added") {
  Prompt prompt("claude-sonnet-5");
  prompt.tool(weather());
  CHECK(refusal(prompt, [](auto& p) { p.tool(weather()); }) == "W-6.1 tools.1.name");
  CHECK(refusal(prompt, [](auto& p) { p.tool({.name = "x"}); }) == "W-6.1 tools.1.input_schema");
}

TEST_CASE("markers that cannot stand there are refused, and the others stay") {
  Prompt prompt("claude-sonnet-5");
  CHECK(refusal(prompt, [](auto& p) { p.breakpoint(); }) == "C-31 ");
  Tool deferred = weather();
  deferred.defer_loading = true;
  prompt.tool(deferred);
  CHECK(refusal(prompt, [](auto& p) { p.breakpoint(); }) == "E-7 tools.0");
  prompt.system("1").breakpoint().user("2");
  CHECK(refusal(prompt, [](auto& p) { p.breakpoint(Ttl::one_hour); })
        == "E-2 messages.0.content.0.cache_control.ttl");
  CHECK(refusal(prompt, [](auto& p) { p.automatic_caching(Ttl::one_hour); })
        == "E-2 cache_control");
  prompt.breakpoint().breakpoint().breakpoint();
  CHECK(prompt.breakpoints() == 2);
  prompt.assistant(ThinkingBlock{.thinking = "hm", .signature = "c2ln"});
  CHECK(refusal(prompt, [](auto& p) { p.breakpoint(); }) == "E-6 messages.1.content.0");
  prompt.assistant("3").breakpoint().user("4").breakpoint();
  CHECK(prompt.breakpoints() == 4);
  prompt.user("5");
  CHECK(refusal(prompt, [](auto& p) { p.breakpoint(); }) == "E-1 messages.2.content.1");
  CHECK(refusal(prompt, [](auto& p) { p.automatic_caching(); }) == "E-8 cache_control");
  const TextBlock marked{.text = "6", .cache_control = CacheControl{}};
  CHECK(refusal(prompt, [&](auto& p) { p.user(marked); }) == "E-1 messages.2.content.2");
  CHECK(refusal(prompt, [](auto& p) { p.user(TextBlock{.cache_control = CacheControl{}}); })
        == "E-5 messages.2.content.2");
  prompt.clear_breakpoints();
  CHECK(prompt.breakpoints() == 0);
}

TEST_CASE("a second marker on a block sets its TTL anew") {
  Prompt prompt("claude-sonnet-5");
  prompt.user("a").breakpoint().breakpoint(Ttl::one_hour);
  CHECK(prompt.breakpoints() == 1);
  CHECK(prompt.messages()[0].content[0].cache_control()->ttl == Ttl::one_hour);
}

TEST_CASE("automatic caching shares its target's slot, takes one otherwise, and keeps its TTL") {
  Prompt prompt("claude-sonnet-5");
  prompt.system("1").breakpoint(Ttl::one_hour).user("2").breakpoint().automatic_caching();
  CHECK(prompt.breakpoints() == 2);
  CHECK(refusal(prompt, [](auto& p) { p.automatic_caching(Ttl::one_hour); })
        == "E-9 cache_control");
  prompt.assistant("3");
  CHECK(prompt.breakpoints() == 3);
  prompt.assistant("4").breakpoint().user("5").breakpoint();
  CHECK(prompt.breakpoints() == 4);
  CHECK(refusal(prompt, [](auto& p) { p.user("6"); }) == "E-8 cache_control");
  prompt.auto_breakpoints();
  CHECK(prompt.breakpoints() == 2);
  CHECK_NOTHROW(prompt.user("6"));
}

TEST_CASE("request() leaves to the client what it alone knows") {
  Prompt prompt("claude-sonnet-5");
  prompt.system("s").breakpoint();
  CHECK_NOTHROW((void)prompt.request());  // for Client::prewarm, which adds a message
  CHECK_NOTHROW((void)prompt.request({.temperature = 0.5}));
  CHECK(refusal(prompt, [](auto& p) { (void)p.request({.temperature = 1.5}); })
        == "W-4 temperature");
  CHECK(
      refusal(prompt,
              [](auto& p) { (void)p.request({.tool_choice = ToolChoice{ToolChoice::Type::any}}); })
      == "W-6.4 tool_choice");
}

TEST_CASE("copies are independent") {
  Prompt prompt("claude-sonnet-5");
  prompt.user("a");
  Prompt copy = prompt;
  copy.assistant("b");
  CHECK(prompt.messages().size() == 1);
  CHECK(copy.messages().size() == 2);
}

// A random series of calls that grows a prompt by one request's worth.
class Series {
 public:
  explicit Series(std::uint32_t seed) : random_(seed) {}

  void begin(Prompt& prompt) {
    for (int i = number(3); i > 0; --i) {
      Tool tool = weather();
      tool.name += std::to_string(i);
      prompt.tool(tool);
    }
    for (int i = number(3); i > 0; --i)
      prompt.system(words());
    user(prompt, {});
  }

  void grow(Prompt& prompt) {
    std::vector<std::string> calls;
    for (int i = number(4) + 1; i > 0; --i) {
      const int kind = number(3);
      if (kind == 0) prompt.assistant(ThinkingBlock{.thinking = words(), .signature = "c2ln"});
      if (kind == 1) prompt.assistant(words());
      if (kind == 2) {
        calls.push_back("toolu_" + std::to_string(next_id_++));
        prompt.assistant(call(calls.back()));
      }
    }
    if (prompt.messages().back().role != MessageRole::assistant) prompt.assistant(words());
    user(prompt, calls);
  }

 private:
  int number(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  std::string words() {
    std::string words = "é \"";
    for (int i = number(20); i > 0; --i)
      words += static_cast<char>('a' + number(26));
    return words;
  }

  void user(Prompt& prompt, const std::vector<std::string>& calls) {
    for (const std::string& id : calls)
      prompt.tool_result(id, number(4) == 0 ? "" : words(), number(4) == 0);
    for (int i = calls.empty() ? 1 + number(3) : number(3); i > 0; --i)
      prompt.user(words());
    if (number(6) == 0) prompt.system_message(words());
    const int markers = number(4);
    if (markers == 0) prompt.clear_breakpoints();
    if (markers == 1) prompt.auto_breakpoints();
    if (markers == 2) prompt.clear_breakpoints().automatic_caching();
    if (markers == 3) prompt.auto_breakpoints(Ttl::one_hour, Ttl::one_hour);
  }

  std::mt19937 random_;
  int next_id_ = 0;
};

// The prompt part of a body (tools, system, messages), without markers and closing brackets.
std::string rendered(Prompt prompt) {
  prompt.clear_breakpoints();
  std::string json = to_json(prompt.request({.max_tokens = 1}));
  REQUIRE(json.ends_with("]}]}"));
  json.resize(json.size() - 4);
  return json;
}

TEST_CASE("a request's bytes begin those of the next, whatever is built") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Series series(seed);
    Series again(seed);
    Prompt prompt("claude-sonnet-5");
    Prompt twin("claude-sonnet-5");
    series.begin(prompt);
    again.begin(twin);
    std::string before = rendered(prompt);
    for (int turn = 0; turn < 10; ++turn) {
      series.grow(prompt);
      again.grow(twin);
      CHECK(to_json(prompt.request()) == to_json(twin.request()));
      const std::string after = rendered(prompt);
      REQUIRE(after.starts_with(before));
      REQUIRE(after.size() > before.size());
      CHECK_NOTHROW(check(prompt.request()));
      before = after;
    }
  }
}

}  // namespace
}  // namespace incipit
