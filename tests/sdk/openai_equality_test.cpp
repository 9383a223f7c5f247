#include "incipit/openai.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace incipit::openai {
namespace {

constexpr const char* model = "gpt-5.6-terra";
const JsonText tool_schema(R"({"type":"object","properties":{"place":{"type":"string"},
  "days":{"type":"integer","minimum":1}},"required":["place"],"additionalProperties":false})");

// With the members of all objects in the order of their names, and numbers by value.
JsonValue sorted(const JsonValue& value) {
  if (value.is_number()) return JsonValue::number(std::to_string(*value.as_double()));
  if (value.is_array()) {
    JsonValue::Array items;
    for (const JsonValue& item : value.as_array())
      items.push_back(sorted(item));
    return JsonValue::array(std::move(items));
  }
  if (!value.is_object()) return value;
  JsonValue::Object members;
  for (const JsonMember& member : value.as_object())
    members.push_back({member.name, sorted(member.value)});
  std::ranges::sort(members, {}, &JsonMember::name);
  return JsonValue::object(std::move(members));
}

// What the official SDK sends; tests/data/wire/make_openai_requests.py made the file.
JsonValue golden(const char* kind) {
  std::ifstream file(INCIPIT_TEST_DATA "/wire/openai_requests.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const JsonValue document = JsonValue::parse(text);
  REQUIRE(document.find("sdk")->as_string() == "openai 3.57.0");
  return *document.find(kind);
}

template <class Request>
void check_all(const char* kind, const std::map<std::string, Request>& requests) {
  const JsonValue expected = golden(kind);
  REQUIRE(expected.as_object().size() == 12);
  REQUIRE(requests.size() == 12);
  for (const JsonMember& member : expected.as_object()) {
    CAPTURE(member.name);
    REQUIRE(requests.contains(member.name));
    Request request = requests.at(member.name);
    request.model = model;
    const std::string body = to_json(request, member.name == "stream");
    CHECK(sorted(JsonValue::parse(body)).minified() == sorted(member.value).minified());
  }
}

ChatMessage message(const char* role, const char* content) {
  return {.role = role, .content = content};
}

ChatMessage tool_result(const char* id, const char* content) {
  return {.role = "tool", .content = content, .tool_call_id = id};
}

std::map<std::string, ChatRequest> chat_requests() {
  std::map<std::string, ChatRequest> all;
  all["plain"].messages = {message("user", "Name a fjord.")};

  all["roles"].messages = {
      {.role = "developer", .content = "Be brief.", .name = "editor"},
      message("system", ""),
      message("user", "Hi"),
      message("assistant", "Hello."),
      message("user", "Gr\u00fc\u00dfe, \u4e16\u754c \U0001f30d \"quoted\" \\ \t\n\u2028 end")};

  ChatRequest& settings = all["settings"];
  settings.messages = {message("user", "Hi")};
  settings.max_completion_tokens = 256;
  settings.temperature = 0.3;
  settings.top_p = 0.95;
  settings.stop = {"END", "\n\n"};
  settings.seed = -7;
  settings.reasoning_effort = "low";

  ChatRequest& tools = all["tools"];
  tools.messages = {message("user", "Weather in Bergen?")};
  tools.tools = {{"forecast", "Says the weather", tool_schema, true}, {.name = "now"}};
  tools.tool_choice = JsonText(R"("required")");

  ChatRequest& results = all["tool results"];
  results.messages = {message("user", "Weather in Bergen and Oslo?"),
                      {.role = "assistant",
                       .tool_calls = {{"call_1", "forecast", R"({"place": "Bergen"})"},
                                      {"call_2", "forecast", R"({"place":"Oslo"})"}}},
                      tool_result("call_1", "rain"),
                      tool_result("call_2", "snow")};
  results.tools = {{.name = "forecast", .parameters = tool_schema}};
  results.tool_choice = JsonText(R"({"type":"function","function":{"name":"forecast"}})");

  all["custom tool call"].messages = {message("user", "Run it."),
                                      {.role = "assistant",
                                       .content = "Running.",
                                       .tool_calls = {{"call_9", "shell", "ls -l", "custom"}}},
                                      tool_result("call_9", "total 0")};

  ChatRequest& parts = all["parts and breakpoint"];
  parts.messages = {{.role = "user",
                     .parts = {JsonText(R"({"type":"text","text":"A long handbook.",
                              "prompt_cache_breakpoint":{"mode":"explicit"}})"),
                               text_part("What does it say?")}}};
  parts.prompt_cache_key = "handbook";
  parts.prompt_cache_options = JsonText(R"({"mode":"explicit","ttl":"30m"})");

  all["images"].messages = {
      {.role = "user",
       .parts = {text_part("Compare."), image_part("https://example.org/a.png"),
                 image_part("data:image/png;base64,iVBORw0KGgo=", "low")}}};

  all["schema"].messages = {message("user", "Answer in JSON.")};
  all["schema"].response_format = JsonText(R"({"type":"json_schema","json_schema":{"name":"answer",
    "schema":{"type":"object","properties":{"answer":{"type":"string"},"sure":{"type":"boolean"}},
              "required":["answer","sure"],"additionalProperties":false},"strict":true}})");

  all["refusal"].messages = {message("user", "Do it."),
                             {.role = "assistant", .refusal = "I will not."},
                             message("user", "Why?")};

  all["stream"].messages = {message("user", "Hi")};
  all["stream"].prompt_cache_retention = "24h";

  all["extra"].messages = {message("user", "Hi")};
  all["extra"].extra = JsonText(R"({"parallel_tool_calls":false,"metadata":{"team":"docs"},
    "logit_bias":{"50256":-100},"cache_salt":"s","top_k":40})");
  return all;
}

std::map<std::string, ResponsesRequest> responses_requests() {
  std::map<std::string, ResponsesRequest> all;
  all["plain"].input = {message_item("user", "Name a fjord.")};

  all["instructions"].instructions = "Be brief.";
  all["instructions"].input = {message_item("user", "Hi")};
  all["instructions"].store = false;

  ResponsesRequest& settings = all["settings"];
  settings.input = {message_item("user", "Hi")};
  settings.max_output_tokens = 512;
  settings.temperature = 1.0;
  settings.top_p = 0.5;
  settings.reasoning = JsonText(R"({"effort":"high","summary":"auto"})");
  settings.include = {"reasoning.encrypted_content", "message.output_text.logprobs"};

  ResponsesRequest& tools = all["tools"];
  tools.input = {message_item("user", "Weather in Bergen?")};
  tools.tools = {{"forecast", "Says the weather", tool_schema, true}, {.name = "now"}};
  tools.tool_choice = JsonText(R"("auto")");

  ResponsesRequest& allowed = all["allowed tools"];
  allowed.input = {message_item("user", "Weather in Bergen?")};
  allowed.tools = {{.name = "forecast", .parameters = tool_schema, .strict = false}};
  allowed.tool_choice = JsonText(R"({"type":"allowed_tools","mode":"auto",
                                     "tools":[{"type":"function","name":"forecast"}]})");

  ResponsesRequest& call = all["replayed call"];
  call.input = {message_item("user", "Weather in Bergen?"),
                JsonText(R"({"id":"rs_1","type":"reasoning","summary":[],
                             "encrypted_content":"gAAAAB=="})"),
                JsonText(R"({"id":"fc_1","type":"function_call","status":"completed",
                             "call_id":"call_1","name":"forecast",
                             "arguments":"{\"place\":\"Bergen\"}"})"),
                function_call_output_item("call_1", "rain")};
  call.tools = {{.name = "forecast", .parameters = tool_schema}};

  all["replayed message"].input = {
      message_item("user", "Hi"),
      JsonText(R"({"id":"msg_1","type":"message","role":"assistant","status":"completed",
                   "content":[{"type":"output_text","text":"Hello.","annotations":[]}]})"),
      message_item("user", "And?")};

  ResponsesRequest& parts = all["parts and breakpoint"];
  parts.input = {JsonText(R"({"type":"message","role":"user","content":[
      {"type":"input_text","text":"A long handbook.","prompt_cache_breakpoint":{"mode":"explicit"}},
      {"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=",
       "detail":"high"}]})")};
  parts.prompt_cache_key = "handbook";
  parts.prompt_cache_options = JsonText(R"({"mode":"implicit","ttl":"30m"})");

  all["schema"].input = {message_item("user", "Answer in JSON.")};
  all["schema"].text = JsonText(R"({"format":{"type":"json_schema","name":"answer",
    "schema":{"type":"object","properties":{"answer":{"type":"string"},"sure":{"type":"boolean"}},
              "required":["answer","sure"],"additionalProperties":false},"strict":true},
    "verbosity":"low"})");

  ResponsesRequest& continued = all["continued"];
  continued.input = {message_item("user", "And?")};
  continued.previous_response_id = "resp_1";
  continued.store = true;
  continued.prompt_cache_retention = "24h";

  all["stream"].input = {message_item("developer", "Be brief."), message_item("user", "Hi")};

  all["extra"].input = {message_item("user", "Hi")};
  all["extra"].extra = JsonText(R"({"parallel_tool_calls":true,"truncation":"disabled",
    "metadata":{},"vendor":{"nested":[1,2.5,null]}})");
  return all;
}

TEST_CASE("chat requests are what the official Python SDK sends") {
  check_all("chat", chat_requests());
}

TEST_CASE("requests of the Responses API are what the official Python SDK sends") {
  check_all("responses", responses_requests());
}

}  // namespace
}  // namespace incipit::openai
