#include "incipit/fingerprint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace incipit {
namespace {

using Change = std::function<void(MessageRequest&)>;

TextBlock text(std::string words, std::optional<CacheControl> marker = {}) {
  return {.text = std::move(words), .cache_control = marker};
}

Tool tool(std::string name, std::string schema = R"({"type":"object","properties":{"city":{}}})") {
  Tool made;
  made.name = std::move(name);
  made.description = "Looks.";
  made.input_schema = JsonText(std::move(schema));
  return made;
}

ContentBlock image() {
  return ImageBlock{.source = UrlSource{"https://example.org/a.png"}};
}

MessageRequest base() {
  MessageRequest request;
  request.model = "claude-sonnet-5";
  request.max_tokens = 100;
  request.tools = {tool("a"), tool("b")};
  request.system = {text("You are careful."), text("It is 09:15.")};
  request.messages = {
      {MessageRole::user, {text("Where?")}},
      {MessageRole::assistant,
       {ToolUseBlock{.id = "toolu_1", .name = "a", .input = JsonText(R"({"city":"Brno","n":1})")}}},
      {MessageRole::user,
       {ToolResultBlock{.tool_use_id = "toolu_1", .content = {text("There.")}},
        text("And then?")}}};
  return request;
}

MessageRequest with(const Change& change) {
  MessageRequest request = base();
  change(request);
  return request;
}

CacheMiss between(const MessageRequest& a, const MessageRequest& b, std::int64_t tokens = 0) {
  const Fingerprint before = Fingerprint::of(a);
  const Fingerprint after = Fingerprint::of(b);
  const CacheMiss miss = compare(before, after, tokens);
  if (before == after) CHECK(miss.reason == MissReason::none);
  CHECK((before == after) == (before.hex() == after.hex()));
  CHECK(miss.explanation.empty() == (miss.reason == MissReason::none));
  return miss;
}

// "reason path", or "same" for equal fingerprints, "prefix" for others without a difference.
std::string found(const MessageRequest& a, const MessageRequest& b) {
  const CacheMiss miss = between(a, b);
  if (miss.reason != MissReason::none) return std::string(to_string(miss.reason)) + " " + miss.path;
  return Fingerprint::of(a) == Fingerprint::of(b) ? "same" : "prefix";
}

std::string found(const Change& change) {
  return found(base(), with(change));
}

// Share of the prompt that is lost, by C-97 and C-102, with a prompt of that many tokens.
double lost(const MessageRequest& a, const MessageRequest& b) {
  return static_cast<double>(between(a, b, 1'000'000).tokens_lost) / 1'000'000;
}

// Of the compact JSON of a part of the prompt, in bytes, as a share of the whole prompt.
double share(std::size_t bytes, const MessageRequest& request) {
  return static_cast<double>(bytes) / static_cast<double>(Fingerprint::of(request).bytes());
}

std::size_t size_of(const ContentBlock& block) {
  std::string json;
  JsonWriter writer(json);
  block.write(writer);
  return json.size();
}

TEST_CASE("what C-4 and C-9 name is no part of the fingerprint") {
  CHECK(found([](auto& r) { r.max_tokens = 7; }) == "same");
  CHECK(found([](auto& r) { r.stop_sequences = {"END"}; }) == "same");
  CHECK(found([](auto& r) { r.user_id = "u"; }) == "same");
  CHECK(found([](auto& r) { r.stream = true; }) == "same");
  CHECK(found([](auto& r) { r.service_tier = "auto"; }) == "same");
  CHECK(found([](auto& r) { r.diagnostics = DiagnosticsParam{}; }) == "same");
  CHECK(found([](auto& r) { r.container = JsonText("\"container_1\""); }) == "same");
  CHECK(found([](auto& r) { r.temperature = 0.5; }) == "same");
  CHECK(found([](auto& r) {
          r.cache_control = CacheControl{};
          r.tools[1].cache_control = CacheControl{Ttl::one_hour};
          r.system[0].cache_control = CacheControl{};
          r.messages[2].content = {
              ToolResultBlock{.tool_use_id = "toolu_1",
                              .content = {text("There.", CacheControl{Ttl::one_hour})},
                              .cache_control = CacheControl{}},
              text("And then?", CacheControl{})};
        })
        == "same");
}

TEST_CASE("white space between tokens does not count (C-8); key order and numbers' spelling do") {
  const auto input = [](const char* json) {
    return with([&](auto& r) {
      r.messages[1].content = {ToolUseBlock{.id = "toolu_1", .name = "a", .input = JsonText(json)}};
    });
  };
  CHECK(found(base(), input("{ \"city\" :\n\"Brno\",\t\"n\":1 }")) == "same");
  CHECK(found(base(), input(R"({"n":1,"city":"Brno"})"))
        == "messages_changed messages.1.content.0.input.n");
  CHECK(found(base(), input(R"({"city":"Brno","n":1.0})"))
        == "messages_changed messages.1.content.0.input.n");
  CHECK(found(input(R"({"city":"Brno","n":1.0})"), base())
        == "messages_changed messages.1.content.0.input.n");
  CHECK(found(base(), input(R"({"city":" Brno","n":1})"))
        == "messages_changed messages.1.content.0.input.city");
  CHECK(found(base(), input(R"({"city":"Brno"})"))
        == "messages_changed messages.1.content.0.input");
  CHECK(found(base(), input(R"({"city":"Brno","n":1,"m":[2]})"))
        == "messages_changed messages.1.content.0.input.m");
  CHECK(found(input(R"({"l":[1,{"a":2}]})"), input(R"({"l":[1,{"a":3}]})"))
        == "messages_changed messages.1.content.0.input.l.1.a");
  CHECK(found(input(R"({"l":[1]})"), input(R"({"l":[1,2]})"))
        == "messages_changed messages.1.content.0.input.l.1");
  CHECK(found(input(R"({"l":[1,2]})"), input(R"({"l":[1]})"))
        == "messages_changed messages.1.content.0.input.l");
  // A parameter of the caller's with that name is no marker.
  CHECK(found(input(R"({"cache_control":1})"), input(R"({"cache_control":2})"))
        == "messages_changed messages.1.content.0.input.cache_control");
}

TEST_CASE("section 9, row by row") {
  // Tool definitions: name, description, schema, order, added, removed.
  CHECK(found([](auto& r) { r.tools[1].name = "c"; }) == "tools_changed tools.1.name");
  CHECK(found([](auto& r) { r.tools[0].description = "Looks!"; })
        == "tools_changed tools.0.description");
  CHECK(found([](auto& r) {
          r.tools[0] = tool("a", R"({"type":"object","properties":{"town":{}}})");
        })
        == "tools_changed tools.0.input_schema.properties.town");
  CHECK(found([](auto& r) { std::swap(r.tools[0], r.tools[1]); }) == "tools_changed tools.0.name");
  CHECK(found([](auto& r) { r.tools.push_back(tool("c")); }) == "tools_changed tools.2");
  CHECK(found([](auto& r) { r.tools.pop_back(); }) == "tools_changed tools");
  // Switches: citations, speed.
  const DocumentBlock document{.source = TextSource{"words"}};
  DocumentBlock cited = document;
  cited.citations = true;
  const auto holds = [](const ContentBlock& block) {
    return with([&](auto& r) { r.messages[0].content = {block}; });
  };
  CHECK(found(holds(document), holds(cited)) == "messages_changed messages.0.content.0.citations");
  CHECK(found([&](auto& r) { r.messages[2].content.push_back(cited); })
        == "unavailable messages.2.content.2");
  CHECK(found([&](auto& r) { r.messages[2].content.push_back(document); }) == "prefix");
  CHECK(found([](auto& r) { r.speed = "fast"; }) == "model_changed speed");
  CHECK(found([](auto& r) { r.speed = "standard"; }) == "same");
  // System text.
  CHECK(found([](auto& r) { r.system[1].text = "It is 09:16."; })
        == "system_changed system.1.text");
  CHECK(found([](auto& r) { r.system.push_back(text("More.")); }) == "system_changed system.2");
  CHECK(found([](auto& r) { r.system.pop_back(); }) == "system_changed system");
  CHECK(found([](auto& r) { r.system.clear(); }) == "system_changed system");
  // tool_choice and disable_parallel_tool_use (V26).
  using Choice = ToolChoice::Type;
  CHECK(found([](auto& r) { r.tool_choice = {Choice::any}; }) == "unavailable tool_choice");
  CHECK(found([](auto& r) { r.tool_choice = {Choice::automatic}; }) == "same");
  CHECK(found([](auto& r) { r.tool_choice = {.disable_parallel_tool_use = true}; })
        == "unavailable tool_choice");
  const auto chooses = [](const char* name) {
    return with([&](auto& r) { r.tool_choice = {Choice::tool, name}; });
  };
  CHECK(found(chooses("a"), chooses("b")) == "unavailable tool_choice");
  // An image added anywhere, even behind all that was there.
  CHECK(found([](auto& r) { r.messages[2].content.push_back(image()); })
        == "unavailable messages.2.content.2");
  CHECK(found(with([](auto& r) { r.messages[0].content.push_back(image()); }), with([](auto& r) {
                r.messages[0].content.push_back(image());
                r.messages[2].content.push_back(image());
              }))
        == "prefix");
  CHECK(found(with([](auto& r) { r.messages[2].content.push_back(image()); }), base())
        == "unavailable image");
  // Thinking and effort; their defaults are rendered as if they were not set.
  using Mode = Thinking::Type;
  CHECK(found([](auto& r) { r.thinking = {.type = Mode::disabled}; }) == "unavailable thinking");
  CHECK(found([](auto& r) { r.thinking = {.type = Mode::adaptive}; }) == "same");
  CHECK(found([](auto& r) { r.thinking = {.type = Mode::adaptive, .display = "summarized"}; })
        == "same");
  CHECK(found([](auto& r) { r.effort = Effort::low; }) == "unavailable output_config.effort");
  CHECK(found([](auto& r) { r.effort = Effort::high; }) == "same");
  const auto of_model = [](
                            const char* model, const Change& change = [](MessageRequest&) {}) {
    MessageRequest request = with(change);
    request.model = model;
    return request;
  };
  CHECK(found(of_model("claude-opus-5-5"),
              of_model("claude-opus-5-5", [](auto& r) { r.effort = Effort::medium; }))
        == "same");
  CHECK(found(of_model("claude-opus-4-6"),
              of_model("claude-opus-4-6", [](auto& r) { r.thinking = {.type = Mode::disabled}; }))
        == "same");
  // Structured output.
  CHECK(found([](auto& r) { r.output_format = JsonText(R"({"type":"json_schema"})"); })
        == "unavailable output_config.format");
  // The model; a dated id is the same one (C-6).
  CHECK(found([](auto& r) { r.model = "claude-sonnet-5-5"; }) == "model_changed model");
  CHECK(found([](auto& r) { r.model = "claude-sonnet-5-20260801"; }) == "same");
  // An earlier message edited; messages and a system message appended.
  CHECK(found([](auto& r) { r.messages[0].content = {text("Who?")}; })
        == "messages_changed messages.0.content.0.text");
  CHECK(found([](auto& r) {
          r.messages.push_back({MessageRole::assistant, {text("Then.")}});
        })
        == "prefix");
  CHECK(found([](auto& r) {
          r.messages.push_back({MessageRole::system, {text("Now.")}});
        })
        == "prefix");
  CHECK(found([](auto& r) { r.messages.pop_back(); }) == "prefix");
  // A deferred tool is not rendered (C-73).
  CHECK(found([](auto& r) {
          r.tools.push_back(tool("c"));
          r.tools[2].defer_loading = true;
        })
        == "same");
  // Context edits are said in members of a beta.
  CHECK(found([](auto& r) { r.extra = JsonText(R"({"context_management":{"edits":[]}})"); })
        == "unavailable context_management");
  CHECK(found([](auto& r) { r.extra = JsonText(R"({"fallbacks":[]})"); }) == "same");
}

TEST_CASE("what is lost begins where section 9 says") {
  const std::size_t tools = Fingerprint::of(with([](auto& r) {
                              r.system.clear();
                              r.messages.clear();
                            })).bytes();
  const std::size_t messages = Fingerprint::of(with([](auto& r) {
                                 r.system.clear();
                                 r.tools.clear();
                               })).bytes();
  const MessageRequest a = base();
  const auto near = [](double value) { return doctest::Approx(value).epsilon(0.001); };
  CHECK(lost(a, with([](auto& r) { r.model = "claude-opus-5"; })) == near(1));
  CHECK(lost(a, with([](auto& r) { r.speed = "fast"; })) == near(1 - share(tools, a)));
  CHECK(lost(a, with([](auto& r) { r.output_format = JsonText("{}"); }))
        == near(1 - share(tools, a)));
  CHECK(lost(a, with([](auto& r) { r.tool_choice = {ToolChoice::Type::any}; }))
        == near(share(messages, a)));
  CHECK(lost(a, with([](auto& r) { r.effort = Effort::low; })) == near(share(messages, a)));
  CHECK(lost(a, with([](auto& r) { r.messages[2].content.push_back(image()); }))
        == near(share(messages, a)));
  // The web search tool is not among the entries of the other tools.
  Tool search;
  search.name = "web_search";
  search.type = "web_search_20260318";
  const MessageRequest searching = with([&](auto& r) { r.tools.insert(r.tools.begin(), search); });
  CHECK(found(a, searching) == "tools_changed tools.0");
  CHECK(lost(a, searching) == near(1 - share(tools, a)));
  CHECK(lost(a, with([](auto& r) { r.tools.push_back(tool("c")); })) == near(1 - share(tools, a)));
  // Both the system prompt and, before it, a tool: the first reason, and all behind the tool.
  const MessageRequest both = with([](auto& r) {
    r.system[1].text = "It is noon.";
    r.tools[1].name = "c";
  });
  CHECK(found(a, both) == "system_changed system.1.text");
  CHECK(lost(a, both) == near(lost(a, with([](auto& r) { r.tools[1].name = "c"; }))));
  // Within a message: bytes behind the first that differs.
  const MessageRequest edited =
      with([](auto& r) { r.messages[2].content.back() = text("And now?"); });
  const std::size_t kept = std::string(R"({"type":"text","text":"And )").size();
  CHECK(lost(a, edited) == near(share(size_of(a.messages[2].content.back()) - kept, a)));
  // Without a count four bytes are a token.
  CHECK(between(a, with([](auto& r) { r.model = "claude-opus-5"; })).tokens_lost
        == (static_cast<std::int64_t>(Fingerprint::of(a).bytes()) + 2) / 4);
}

// Byte for byte, where nothing but the change differs.
std::size_t first_difference(const MessageRequest& a, const MessageRequest& b) {
  const std::string before = to_json(a);
  const std::string after = to_json(b);
  return static_cast<std::size_t>(std::ranges::mismatch(before, after).in2 - after.begin());
}

TEST_CASE("the byte offset is that of the first difference in the body") {
  for (const Change& change : std::vector<Change>{
           [](auto& r) { r.model = "claude-sonnet-4-6"; }, [](auto& r) { r.tools[1].name = "bc"; },
           [](auto& r) { r.tools[0].input_schema = JsonText(R"({"type":"object","q":1})"); },
           [](auto& r) { r.tools.pop_back(); }, [](auto& r) { r.system[1].text = "It is 09:16."; },
           [](auto& r) { r.system.pop_back(); }, [](auto& r) { r.tools.push_back(tool("c")); },
           [](auto& r) { r.system.push_back(text("More.")); }, [](auto& r) { r.tools.clear(); },
           [](auto& r) { r.system.clear(); },
           [](auto& r) { r.messages[0].content = {text("Whére?")}; },
           [](auto& r) { r.messages[1].role = MessageRole::user; },
           [](auto& r) { r.messages[0].content = {image()}; }}) {
    const MessageRequest changed = with(change);
    const CacheMiss miss = between(base(), changed);
    CAPTURE(miss.path);
    CHECK(miss.reason != MissReason::none);
    CHECK(miss.byte_offset == first_difference(base(), changed));
    CHECK(between(changed, base()).byte_offset == first_difference(changed, base()));
  }
}

TEST_CASE("markers and white space do not shift the offset") {
  const MessageRequest before = base();
  const MessageRequest after = with([](auto& r) {
    r.system[0].cache_control = CacheControl{Ttl::one_hour};
    TextBlock marked = text("And when?", CacheControl{});
    r.messages[1].content = {ToolUseBlock{
        .id = "toolu_1", .name = "a", .input = JsonText("{ \"city\" : \"Brno\" , \"n\": 2 }")}};
    r.messages[2].content.back() = marked;
  });
  const CacheMiss miss = between(before, after);
  CHECK(miss.path == "messages.1.content.0.input.n");
  CHECK(miss.byte_offset == to_json(after).find("\"n\": 2") + 5);
  const CacheMiss back = between(after, before);
  CHECK(back.byte_offset == to_json(before).find("\"n\":1") + 4);
}

TEST_CASE("excerpts show both sides, cut at characters") {
  std::string words;
  for (int i = 0; i < 100; ++i)
    words += "é";
  const auto request = [&](const std::string& middle) {
    return with([&](auto& r) { r.system[0].text = words + middle + words; });
  };
  const CacheMiss miss = between(request("a09:15"), request("a09:16"));
  CHECK(miss.reason == MissReason::system_changed);
  CHECK(miss.before.find("09:15é") != std::string::npos);
  CHECK(miss.after.find("09:16é") != std::string::npos);
  CHECK(miss.before.starts_with("é"));
  CHECK(miss.before.ends_with("é"));
  CHECK(miss.after.size() >= 70);
  CHECK(miss.after.size() <= 80);
}

TEST_CASE("a message that is split differently is the same turn") {
  CHECK(found([](auto& r) {
          const ContentBlock last = r.messages[2].content.back();
          r.messages[2].content.pop_back();
          r.messages.push_back({MessageRole::user, {last}});
        })
        == "same");
}

TEST_CASE("older models take earlier thinking out of the prompt (C-64, V22, V23)") {
  const auto loop = [](const char* model, int messages) {
    MessageRequest request = base();
    request.model = model;
    const ThinkingBlock thought{.thinking = "hm", .signature = "c2ln"};
    const ContentBlock call = request.messages[1].content[0];
    const ContentBlock result = request.messages[2].content[0];
    request.messages[1].content = {thought, call};
    request.messages[2].content = {result};
    request.messages.push_back({MessageRole::assistant, {thought, text("So.")}});
    request.messages.push_back({MessageRole::user, {text("And?")}});
    request.messages.resize(static_cast<std::size_t>(messages));
    return request;
  };
  CHECK(found(loop("claude-sonnet-4-5", 1), loop("claude-sonnet-4-5", 3)) == "prefix");
  CHECK(found(loop("claude-opus-5", 3), loop("claude-opus-5", 5)) == "prefix");
  const CacheMiss miss = between(loop("claude-sonnet-4-5", 3), loop("claude-sonnet-4-5", 5));
  CHECK(miss.reason == MissReason::messages_changed);
  CHECK(miss.path == "messages.1.content.1.type");
  CHECK(miss.explanation.find("messages.1.content.0") != std::string::npos);
}

TEST_CASE("the order of checks is model, system, tools, messages, the rest (C-96)") {
  std::vector<std::pair<Change, std::string>> changes = {
      {[](auto& r) { r.tool_choice = {ToolChoice::Type::any}; }, "unavailable"},
      {[](auto& r) { r.messages[0].content = {text("Who?")}; }, "messages_changed"},
      {[](auto& r) { r.tools[0].name = "z"; }, "tools_changed"},
      {[](auto& r) { r.system[0].text = "No."; }, "system_changed"},
      {[](auto& r) { r.model = "claude-opus-5"; }, "model_changed"}};
  MessageRequest request = base();
  for (const auto& [change, reason] : changes) {
    change(request);
    CHECK(to_string(between(base(), request).reason) == reason);
  }
}

TEST_CASE("received JSON counts as it was received") {
  const auto received = [](const char* json) {
    return with([&](auto& r) { r.messages[1].content[0] = ContentBlock::parse(JsonText(json)); });
  };
  const std::string call = R"({"type":"tool_use","id":"toolu_1","name":"a","caller":)";
  CHECK(found(received((call + R"({"type":"direct"},"input":{"b":1}})").c_str()),
              received((call + R"({ "type": "direct" }, "input": {"b":1}})").c_str()))
        == "same");
  CHECK(found(received((call + R"({"type":"direct"},"input":{"b":1}})").c_str()),
              received((call + R"({"type":"other"},"input":{"b":1}})").c_str()))
        == "messages_changed messages.1.content.0.caller.type");
  CHECK(Fingerprint::of(MessageRequest{.model = "m"}).bytes() == 0);
}

TEST_CASE("a request of 50,000 tokens has its fingerprint at once") {
  MessageRequest request = base();
  for (int i = 0; i < 50; ++i) {
    std::string words;
    while (words.size() < 2000)
      words += "Some words of a line that ends.\n";
    request.messages.push_back({MessageRole::assistant, {text(words)}});
    request.messages.push_back({MessageRole::user, {text(words)}});
  }
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    CHECK(Fingerprint::of(request).bytes() > 200'000);
    best = std::min(best, std::chrono::nanoseconds(std::chrono::steady_clock::now() - start));
  }
  CHECK(best < std::chrono::milliseconds(20));  // sanitizers included; the benchmark measures
}

}  // namespace
}  // namespace incipit
