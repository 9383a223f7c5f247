#include "block_read.h"
#include "incipit/anthropic.h"
#include "json_place.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

// The value that a word stands for; throws ParseError for another word.
template <class Enum>
Enum one_of(const JsonPlace& place,
            std::initializer_list<std::pair<std::string_view, Enum>> words) {
  const std::string text = place.string();
  std::string known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known += (known.empty() ? "\"" : ", \"") + std::string(word) + '"';
  }
  place.fail("should be one of " + known);
}

// The members of `object` but those named, as an object; empty when there are no others.
JsonText others(const JsonObject& object, std::initializer_list<std::string_view> names) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  bool any = false;
  for (const JsonMemberSlice& member : object.members()) {
    if (std::ranges::any_of(names, [&](auto name) { return member.is_named(name); })) continue;
    any = true;
    writer.key(json_unescaped(member.key)).raw(member.value);
  }
  writer.end_object();
  return any ? JsonText::trusted(std::move(json)) : JsonText();
}

Tool read_tool(const JsonPlace& place) {
  const JsonObject object(place);
  Tool tool;
  tool.type = object.string_or_empty("type");
  tool.name = object.string_or_empty("name");
  tool.description = object.string("description");
  tool.input_schema = object.json("input_schema");
  if (const auto examples = object.find("input_examples")) {
    for (const JsonPlace& example : examples->items())
      tool.input_examples.push_back(example.json());
  }
  tool.strict = object.boolean("strict");
  tool.defer_loading = object.boolean("defer_loading").value_or(false);
  if (const auto callers = object.find("allowed_callers")) {
    tool.allowed_callers = callers->strings();
  }
  tool.eager_input_streaming = object.boolean("eager_input_streaming");
  tool.cache_control = read_marker(object);
  tool.options = others(
      object, {"type", "name", "description", "input_schema", "input_examples", "strict",
               "defer_loading", "allowed_callers", "eager_input_streaming", "cache_control"});
  return tool;
}

MessageParam read_turn(const JsonPlace& place) {
  const JsonObject object(place);
  MessageParam message;
  message.role = one_of<MessageRole>(object.at("role"), {{"user", MessageRole::user},
                                                         {"assistant", MessageRole::assistant},
                                                         {"system", MessageRole::system}});
  message.content = BlockReader::read_all(object.at("content"));
  return message;
}

ToolChoice read_tool_choice(const JsonPlace& place) {
  using enum ToolChoice::Type;
  const JsonObject object(place);
  ToolChoice choice;
  choice.type = one_of<ToolChoice::Type>(
      object.at("type"), {{"auto", automatic}, {"any", any}, {"tool", tool}, {"none", none}});
  if (choice.type == tool) choice.name = object.at("name").string();
  choice.disable_parallel_tool_use = object.boolean("disable_parallel_tool_use").value_or(false);
  return choice;
}

Thinking read_thinking(const JsonPlace& place) {
  using enum Thinking::Type;
  const JsonObject object(place);
  Thinking thinking;
  thinking.type = one_of<Thinking::Type>(object.at("type"), {{"adaptive", adaptive},
                                                             {"enabled", enabled},
                                                             {"between_tools", between_tools},
                                                             {"disabled", disabled}});
  thinking.budget_tokens = object.integer("budget_tokens").value_or(0);
  thinking.display = object.string_or_empty("display");
  return thinking;
}

void read_prompt(const JsonObject& object, MessageRequest& request) {
  request.model = object.at("model").string();
  if (const auto tools = object.find("tools")) {
    for (const JsonPlace& tool : tools->items())
      request.tools.push_back(read_tool(tool));
  }
  if (const auto system = object.find("system"); system && system->is_string()) {
    request.system.push_back({.text = system->string()});
  } else if (system) {
    for (const JsonPlace& text : system->items())
      request.system.push_back(read_text_block(JsonObject(text)));
  }
  for (const JsonPlace& message : object.at("messages").items())
    request.messages.push_back(read_turn(message));
  request.cache_control = read_marker(object);
}

void read_output_config(const JsonObject& config, MessageRequest& request) {
  using enum Effort;
  if (const auto effort = config.find("effort")) {
    request.effort = one_of<Effort>(
        *effort,
        {{"low", low}, {"medium", medium}, {"high", high}, {"xhigh", xhigh}, {"max", max}});
  }
  if (const auto format = config.find("format")) request.output_format = format->json();
}

void read_settings(const JsonObject& object, MessageRequest& request) {
  request.max_tokens = object.integer("max_tokens").value_or(0);
  if (const auto choice = object.find("tool_choice")) {
    request.tool_choice = read_tool_choice(*choice);
  }
  if (const auto thinking = object.find("thinking")) request.thinking = read_thinking(*thinking);
  if (const auto config = object.find("output_config")) {
    read_output_config(JsonObject(*config), request);
  }
  if (const auto stops = object.find("stop_sequences")) request.stop_sequences = stops->strings();
  if (const auto number = object.find("temperature")) request.temperature = number->number();
  if (const auto number = object.find("top_p")) request.top_p = number->number();
  request.top_k = object.integer("top_k");
  request.stream = object.boolean("stream").value_or(false);
  if (const auto metadata = object.find("metadata")) {
    request.user_id = JsonObject(*metadata).string("user_id");
  }
  request.service_tier = object.string("service_tier");
  request.inference_geo = object.string("inference_geo");
  request.speed = object.string("speed");
  request.container = object.json("container");
  if (const auto diagnostics = object.find("diagnostics")) {
    request.diagnostics = DiagnosticsParam{JsonObject(*diagnostics).string("previous_message_id")};
  }
}

}  // namespace

MessageRequest parse_message_request(std::string_view json) {
  const JsonObject object(JsonPlace::check(json));
  MessageRequest request;
  read_prompt(object, request);
  read_settings(object, request);
  request.extra = others(
      object, {"model",         "max_tokens",    "tools",    "system",        "messages",
               "cache_control", "tool_choice",   "thinking", "output_config", "stop_sequences",
               "temperature",   "top_p",         "top_k",    "stream",        "metadata",
               "service_tier",  "inference_geo", "speed",    "container",     "diagnostics"});
  return request;
}

}  // namespace incipit
