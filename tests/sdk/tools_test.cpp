#include "incipit/tools.h"

#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Place {
  std::string city;
  std::optional<int> days;
};

}  // namespace

template <>
struct incipit::Described<Place> {
  static constexpr auto fields =
      std::tuple(field("city", &Place::city), field("days", &Place::days));
};

namespace incipit {
namespace {

using testing::FakeTransport;

std::string reply(const std::string& content, const std::string& stop_reason) {
  return R"({"model":"claude-sonnet-5-5","id":"msg_1","type":"message","role":"assistant","content":)"
         + content + R"(,"container":null,"stop_reason":")" + stop_reason
         + R"(","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":5,)"
           R"("cache_read_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":5,)"
           R"("ephemeral_1h_input_tokens":0},"output_tokens":3,"service_tier":"standard"}})";
}

std::string call(const std::string& id, const std::string& name, const std::string& input = "{}") {
  return R"({"type":"tool_use","id":")" + id + R"(","name":")" + name + R"(","input":)" + input
         + "}";
}

const std::string done = reply(R"([{"type":"text","text":"Done."}])", "end_turn");

RunnableTool tool(const std::string& name, std::function<ToolOutput(const JsonText&)> run) {
  Tool definition;
  definition.name = name;
  definition.input_schema = JsonText(R"({"type":"object"})");
  return {definition, std::move(run)};
}

Prompt question(const std::vector<RunnableTool>& tools = {}) {
  Prompt prompt("claude-sonnet-5-5");
  for (const RunnableTool& each : tools)
    prompt.tool(each.definition);
  return prompt.user("What is the weather in Oslo?");
}

// A conversation whose replies are scripted.
struct Loop {
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  Client client = Client({.api_key = "k", .transport = transport});

  explicit Loop(const std::vector<std::string>& replies) {
    for (const std::string& body : replies)
      transport->answer(200, body, {{"content-type", "application/json"}});
  }

  [[nodiscard]] ToolRunner runner(const std::vector<RunnableTool>& tools,
                                  RunnerOptions options = {.cache = false}) const {
    return {client, question(tools), tools, std::move(options)};
  }

  [[nodiscard]] std::size_t requests() const { return transport->requests().size(); }

  [[nodiscard]] const std::string& body(std::size_t request) const {
    return *transport->request(request).body;
  }

  [[nodiscard]] JsonValue::Array messages(std::size_t request) const {
    return JsonValue::parse(body(request)).find("messages")->as_array();
  }

  // The blocks of the last message.
  [[nodiscard]] JsonValue::Array results(std::size_t request) const {
    return messages(request).back().find("content")->as_array();
  }
};

std::string text_of(const JsonValue& result) {
  const JsonValue* content = result.find("content");
  return content == nullptr || content->as_array().empty()
             ? ""
             : content->as_array().front().find("text")->as_string();
}

bool is_error(const JsonValue& result) {
  const JsonValue* error = result.find("is_error");
  return error != nullptr && error->as_boolean();
}

TEST_CASE("a reply goes back byte for byte, and the results of all its calls in one turn") {
  // Keys out of order, members that nobody knows, white space, escapes and numbers as the model
  // spelled them.
  const std::string content =
      R"([{"signature":"c2ln","type":"thinking","thinking":""},)"
      R"({"text":"Let me \u0073ee.","type":"text","new_member":{"b":1.0,"a":[]}},)"
      R"({"id":"toolu_1","input":{"days": 2,"city":"Oslo","scale":1e0},"name":"weather",)"
      R"("type":"tool_use","caller":{"type":"direct"}},)"
      R"({"type":"tool_use","id":"toolu_2","name":"weather","input":{"city":"Bergen"}}])";
  Loop loop({reply(content, "tool_use"), done});
  std::vector<std::string> seen;
  ToolRunner runner = loop.runner({tool("weather", [&](const JsonText& input) {
    seen.push_back(input.text());
    return ToolOutput("rain " + std::to_string(seen.size()));
  })});

  CHECK(runner.run().text() == "Done.");
  CHECK(runner.iterations() == 2);
  CHECK(seen
        == std::vector<std::string>{R"({"days": 2,"city":"Oslo","scale":1e0})",
                                    R"({"city":"Bergen"})"});
  REQUIRE(loop.requests() == 2);
  // The first request's messages are the beginning of the second's.
  const std::string first = loop.body(0).substr(0, loop.body(0).find("]}]") + 2);
  CHECK(loop.body(1).starts_with(first));
  CHECK(loop.body(1).find(R"(,{"role":"assistant","content":)" + content + R"(},{"role":"user",)")
        != std::string::npos);
  REQUIRE(loop.messages(1).size() == 3);
  const JsonValue::Array results = loop.results(1);
  REQUIRE(results.size() == 2);
  CHECK(results[0].find("type")->as_string() == "tool_result");
  CHECK(results[0].find("tool_use_id")->as_string() == "toolu_1");
  CHECK(text_of(results[0]) == "rain 1");
  CHECK(results[1].find("tool_use_id")->as_string() == "toolu_2");
  CHECK(text_of(results[1]) == "rain 2");
  CHECK_FALSE(is_error(results[0]));
}

TEST_CASE("the conversation can be continued after the loop") {
  Loop loop({reply("[" + call("toolu_1", "clock") + "]", "tool_use"), done});
  ToolRunner runner = loop.runner({tool("clock", [](const JsonText&) { return "noon"; })});
  (void)runner.run();
  Prompt prompt = runner.prompt();
  prompt.user("And tomorrow?");
  CHECK(prompt.messages().size() == 5);
  CHECK_NOTHROW((void)prompt.request());
}

TEST_CASE(
    "calls of one reply run at the same time, and their results keep the order of the calls") {
  std::string content = "[";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    content += (i == 0 ? "" : ",") + call("toolu_" + n, "meet", "{\"n\":" + n + "}");
  }
  Loop loop({reply(content + "]", "tool_use"), done});

  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  int most = 0;
  const auto meet = [&](const JsonText& input) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++inside);
    changed.notify_all();
    // Until four are here; the last two calls find that it has happened.
    changed.wait_for(lock, std::chrono::seconds(5), [&] { return most == 4; });
    --inside;
    const auto n = input.value().find("n")->as_integer();
    if (n == 3) throw std::runtime_error("three");
    return ToolOutput("n" + std::to_string(*n));
  };
  ToolRunner runner = loop.runner({tool("meet", meet)}, {.concurrency = 4, .cache = false});
  (void)runner.run();

  CHECK(most == 4);
  const JsonValue::Array results = loop.results(1);
  REQUIRE(results.size() == 6);
  for (int i = 0; i < 6; ++i) {
    const JsonValue& result = results[static_cast<std::size_t>(i)];
    CHECK(result.find("tool_use_id")->as_string() == "toolu_" + std::to_string(i));
    CHECK(text_of(result) == (i == 3 ? "Error: three" : "n" + std::to_string(i)));
    CHECK(is_error(result) == (i == 3));
  }
}

TEST_CASE("without concurrency the tools run in the caller's thread") {
  Loop loop({reply("[" + call("a", "who") + "," + call("b", "who") + "]", "tool_use"), done});
  std::vector<std::thread::id> threads;
  ToolRunner runner = loop.runner({tool("who", [&](const JsonText&) {
    threads.push_back(std::this_thread::get_id());
    return "me";
  })});
  (void)runner.run();
  CHECK(threads == std::vector{std::this_thread::get_id(), std::this_thread::get_id()});
}

TEST_CASE("what goes wrong in a tool is an answer") {
  Loop loop(
      {reply("[" + call("1", "throws") + "," + call("2", "refuses") + "," + call("3", "shows") + ","
                 + call("4", "odd") + "," + call("5", "missing") + "," + call("6", "binary") + ","
                 + call("7", "mute") + "," + call("8", "nested") + "]",
             "tool_use"),
       done});
  ToolRunner runner = loop.runner({
      tool("throws", [](const JsonText&) -> ToolOutput { throw std::runtime_error("disk full"); }),
      tool("refuses", [](const JsonText&) -> ToolOutput { throw ToolError("name a city"); }),
      tool("shows",
           [](const JsonText&) -> ToolOutput {
             std::vector<ContentBlock> blocks;
             blocks.emplace_back(TextBlock{.text = "one"});
             blocks.emplace_back(TextBlock{.text = "two"});
             throw ToolError(std::move(blocks));
           }),
      tool("odd", [](const JsonText&) -> ToolOutput { throw 7; }),
      tool("binary",
           [](const JsonText&) -> ToolOutput { throw std::runtime_error("bad \xff byte"); }),
      tool("mute", [](const JsonText&) { return ""; }),
      tool("nested", [](const JsonText&) { return std::string("not \xff UTF-8"); }),
  });
  CHECK(runner.run().text() == "Done.");

  const JsonValue::Array results = loop.results(1);
  REQUIRE(results.size() == 8);
  CHECK(text_of(results[0]) == "Error: disk full");
  CHECK(text_of(results[1]) == "name a city");
  CHECK(text_of(results[2]) == "one");
  CHECK(results[2].find("content")->as_array().size() == 2);
  CHECK(text_of(results[3]) == "Error: the tool failed without saying why");
  CHECK(text_of(results[4]) == "Error: Tool 'missing' not found");
  CHECK(text_of(results[5]) == "Error: bad \xEF\xBF\xBD byte");
  CHECK(text_of(results[6]).empty());
  CHECK(text_of(results[7]).starts_with("Error: the tool's answer cannot be sent: "));
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    CHECK(is_error(results[i]) == (i != 6));
  }
}

TEST_CASE("input that does not fit the described struct is an answer that names the path") {
  Loop loop({reply("[" + call("1", "weather", R"({"city":7})") + ","
                       + call("2", "weather", R"({"days":1})") + ","
                       + call("3", "weather", R"({"city":"Oslo","days":3})") + "]",
                   "tool_use"),
             done});
  const RunnableTool weather = runnable<Place>(
      "weather", "The weather of a city",
      [](const Place& place) { return place.city + " " + std::to_string(place.days.value_or(1)); });
  CHECK(weather.definition.input_schema == schema_of<Place>());
  ToolRunner runner = loop.runner({weather});
  (void)runner.run();

  const JsonValue::Array results = loop.results(1);
  REQUIRE(results.size() == 3);
  CHECK(text_of(results[0]) == "Error: city must be a string");
  CHECK(is_error(results[0]));
  CHECK(text_of(results[1]) == "Error: city must be present");
  CHECK(text_of(results[2]) == "Oslo 3");
  CHECK_FALSE(is_error(results[2]));
}

TEST_CASE("a paused turn goes back as it is, and no tool runs") {
  const std::string paused =
      R"([{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}])";
  Loop loop({reply(paused, "pause_turn"), done});
  ToolRunner runner = loop.runner({tool("clock", [](const JsonText&) { return "noon"; })});

  CHECK(runner.next()->stop_reason == StopReason::pause_turn);
  CHECK(runner.next()->stop_reason == StopReason::end_turn);
  CHECK_FALSE(runner.next().has_value());
  REQUIRE(loop.messages(1).size() == 2);
  CHECK(loop.body(1).find(R"(,{"role":"assistant","content":)" + paused + "}]")
        != std::string::npos);
}

TEST_CASE("any other stop reason ends the loop, and calls in such a reply are not run") {
  for (const char* reason : {"end_turn", "stop_sequence", "max_tokens", "refusal",
                             "model_context_window_exceeded", "a_new_one"}) {
    CAPTURE(reason);
    Loop loop({reply("[" + call("1", "clock") + "]", reason)});
    bool ran = false;
    ToolRunner runner = loop.runner({tool("clock", [&](const JsonText&) {
      ran = true;
      return "noon";
    })});
    CHECK(runner.run().stop_reason->text == reason);
    CHECK_FALSE(ran);
    CHECK_FALSE(runner.next().has_value());
    CHECK_THROWS_AS((void)runner.run(), PromptError);
    CHECK(loop.requests() == 1);
  }
}

TEST_CASE("a stop for tools without a call, and a reply without content, end the loop too") {
  Loop without_call({reply(R"([{"type":"text","text":"?"}])", "tool_use")});
  CHECK(without_call.runner({}).run().text() == "?");
  Loop empty({reply("[]", "end_turn")});
  ToolRunner runner = empty.runner({});
  CHECK(runner.run().content.empty());
  CHECK(runner.prompt().messages().size() == 1);
}

TEST_CASE("the loop ends after max_iterations with the results of the last calls in the prompt") {
  Loop loop({reply("[" + call("1", "clock") + "]", "tool_use"),
             reply("[" + call("2", "clock") + "]", "tool_use")});
  ToolRunner runner = loop.runner({tool("clock", [](const JsonText&) { return "noon"; })},
                                  {.max_iterations = 2, .cache = false});
  CHECK(runner.run().stop_reason == StopReason::tool_use);
  CHECK(loop.requests() == 2);
  CHECK(runner.iterations() == 2);
  CHECK(runner.prompt().messages().size() == 5);
  CHECK_FALSE(runner.next().has_value());
}

TEST_CASE(
    "after an error of the client the same request can be made again, and no tool runs twice") {
  Loop loop({reply("[" + call("1", "count") + "]", "tool_use")});
  loop.transport->answer(
      400, R"({"type":"error","error":{"type":"invalid_request_error","message":"no"}})");
  loop.transport->answer(200, done);
  int runs = 0;
  ToolRunner runner = loop.runner({tool("count", [&](const JsonText&) {
    ++runs;
    return "counted";
  })});
  CHECK(runner.next().has_value());
  CHECK_THROWS_AS((void)runner.next(), ApiError);
  CHECK(runner.iterations() == 1);
  CHECK(runner.next()->text() == "Done.");
  CHECK(loop.body(1) == loop.body(2));
  CHECK(runs == 1);
  CHECK(runner.iterations() == 2);
}

TEST_CASE("counters add up over all requests") {
  Loop loop({reply("[" + call("1", "clock") + "]", "tool_use"), done});
  ToolRunner runner = loop.runner({tool("clock", [](const JsonText&) { return "noon"; })});
  (void)runner.run();
  CHECK(runner.usage().input_tokens == 20);
  CHECK(runner.usage().cache_read_input_tokens == 40);
  CHECK(runner.usage().cache_creation_5m == 10);
  CHECK(runner.usage().output_tokens == 6);
  CHECK(runner.usage().service_tier == "standard");
}

TEST_CASE(
    "with caching each request marks the last tool and its own end, and nothing it sent before") {
  const std::string calls = "[" + call("1", "clock") + "]";
  Loop loop({reply(calls, "tool_use"), done});
  ToolRunner runner = loop.runner({tool("clock", [](const JsonText&) { return "noon"; })}, {});
  (void)runner.run();

  const auto marked = [](const JsonValue& block) { return block.find("cache_control") != nullptr; };
  for (std::size_t request = 0; request < 2; ++request) {
    CAPTURE(request);
    const JsonValue body = JsonValue::parse(loop.body(request));
    CHECK(marked(body.find("tools")->as_array().back()));
    CHECK(marked(loop.results(request).back()));
  }
  CHECK_FALSE(marked(loop.messages(1).front().find("content")->as_array().front()));
  CHECK(loop.body(1).find(R"("content":)" + calls) != std::string::npos);
}

TEST_CASE("streamed replies show their events and go back byte for byte as well") {
  const std::string stream =
      "event: message_start\n"
      R"(data: {"type":"message_start","message":{"model":"m","id":"msg_1","type":"message","role":)"
      R"("assistant","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}})"
      "\n\nevent: content_block_start\n"
      R"(data: {"type":"content_block_start","index":0,"content_block":)" +
      call("toolu_1", "weather") +
      "}\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",)"
      R"("partial_json":"{\"days\": 2, \"ci"}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",)"
      R"("partial_json":"ty\":\"Oslo\"}"}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":0})"
      "\n\nevent: message_delta\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},)"
      R"("usage":{"output_tokens":9}})"
      "\n\nevent: message_stop\n"
      R"(data: {"type":"message_stop"})"
      "\n\n";
  Loop loop({});
  std::string second = stream;
  second.replace(second.find("toolu_1"), 7, "toolu_2");
  for (const std::string& body : {stream, second})
    loop.transport->answer(200, body, {{"content-type", "text/event-stream"}});
  std::vector<std::string> pieces;
  std::string input;
  ToolRunner runner =
      loop.runner({tool("weather",
                        [&](const JsonText& json) {
                          input = json.text();
                          return "rain";
                        })},
                  {.max_iterations = 2, .cache = false, .on_event = [&](const StreamEvent& event) {
                     if (const std::string* piece = event.input_json()) pieces.push_back(*piece);
                   }});
  (void)runner.run();

  CHECK(pieces
        == std::vector<std::string>{R"({"days": 2, "ci)", R"(ty":"Oslo"})", R"({"days": 2, "ci)",
                                    R"(ty":"Oslo"})"});
  CHECK(input == R"({"days": 2, "city":"Oslo"})");
  CHECK(JsonValue::parse(loop.body(0)).find("stream")->as_boolean());
  CHECK(loop.body(1).find(R"("input":{"days": 2, "city":"Oslo"})") != std::string::npos);
}

TEST_CASE("definitions are added to a prompt that can still take them, or must be there already") {
  const RunnableTool clock = tool("clock", [](const JsonText&) { return "noon"; });
  const Loop loop({});

  const ToolRunner added(loop.client, Prompt("claude-sonnet-5-5"), {clock});
  REQUIRE(added.prompt().tools().size() == 1);
  CHECK(added.prompt().tools().front().name == "clock");

  // A marker makes no difference.
  Prompt marked("claude-sonnet-5-5");
  marked.tool(clock.definition).breakpoint().user("?");
  CHECK(ToolRunner(loop.client, marked, {clock}).prompt().tools().size() == 1);

  Prompt late("claude-sonnet-5-5");
  late.user("?");
  CHECK_THROWS_AS(ToolRunner(loop.client, late, {clock}), PromptError);

  RunnableTool other = clock;
  other.definition.description = "Tells the time";
  CHECK_THROWS_AS(ToolRunner(loop.client, marked, {other}), PromptError);
  CHECK_THROWS_AS(ToolRunner(loop.client, Prompt("claude-sonnet-5-5"), {clock, clock}),
                  PromptError);
  CHECK_THROWS_AS(ToolRunner(loop.client, Prompt("claude-sonnet-5-5"), {tool("empty", nullptr)}),
                  PromptError);
}

}  // namespace
}  // namespace incipit
