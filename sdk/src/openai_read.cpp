#include "openai_read.h"

#include <algorithm>
#include <string>
#include <utility>

namespace incipit::openai {
namespace {

ChatMessage read_message(const JsonObject& message) {
  ChatMessage result;
  result.role = message.string_or_empty("role");
  result.refusal = message.string("refusal");
  if (const auto content = message.find("content")) {
    if (content->is_array()) {
      result.content.emplace();
      for (const JsonPlace& part : content->items()) {
        result.parts.push_back(part.json());
        *result.content += JsonObject(part).string_or_empty("text");
      }
    } else {
      result.content = content->string();
    }
  }
  for (const JsonPlace& call : find_items(message, "tool_calls"))
    result.tool_calls.push_back(read_call(JsonObject(call)));
  return result;
}

ResponseItem read_item(const JsonObject& item) {
  ResponseItem result;
  result.type = item.string_or_empty("type");
  result.id = item.string_or_empty("id");
  result.status = item.string_or_empty("status");
  result.json = item.place().json();
  if (result.type == "message") {
    for (const JsonPlace& place : find_items(item, "content")) {
      const JsonObject part(place);
      if (part.string_or_empty("type") == "output_text") {
        result.text += part.string_or_empty("text");
      }
    }
  }
  const bool custom = result.type == "custom_tool_call";
  if (custom || result.type == "function_call") {
    result.call.id = item.string_or_empty("call_id");
    result.call.name = item.string_or_empty("name");
    result.call.arguments = item.string_or_empty(custom ? "input" : "arguments");
    if (custom) result.call.type = "custom";
  }
  return result;
}

// Within what can be meant, so that sums and differences of counts cannot overflow.
std::optional<std::int64_t> count(const JsonObject& object, std::string_view name) {
  constexpr std::int64_t most = 1'000'000'000'000'000;
  const auto number = object.integer(name);
  return number ? std::optional(std::clamp<std::int64_t>(*number, 0, most)) : std::nullopt;
}

}  // namespace

std::optional<JsonObject> find_object(const JsonObject& parent, std::string_view name) {
  const auto place = parent.find(name);
  return place ? std::optional<JsonObject>(*place) : std::nullopt;
}

std::vector<JsonPlace> find_items(const JsonObject& parent, std::string_view name) {
  const auto place = parent.find(name);
  return place ? place->items() : std::vector<JsonPlace>();
}

ToolCall read_call(const JsonObject& call) {
  // Later fragments of a stream name no type.
  const auto custom = find_object(call, "custom");
  const auto body = custom ? custom : find_object(call, "function");
  ToolCall result;
  result.id = call.string_or_empty("id");
  result.type = call.string("type").value_or(custom ? "custom" : "function");
  if (body) {
    result.name = body->string_or_empty("name");
    result.arguments = body->string_or_empty(custom ? "input" : "arguments");
  }
  return result;
}

std::optional<Usage> read_usage(const JsonObject& parent) {
  const auto usage = find_object(parent, "usage");
  if (!usage) return std::nullopt;
  const bool chat = !usage->has("input_tokens");
  const auto details = find_object(*usage, chat ? "prompt_tokens_details" : "input_tokens_details");
  const auto output_details =
      find_object(*usage, chat ? "completion_tokens_details" : "output_tokens_details");
  Usage result;
  result.input_tokens = count(*usage, chat ? "prompt_tokens" : "input_tokens").value_or(0);
  result.output_tokens = count(*usage, chat ? "completion_tokens" : "output_tokens").value_or(0);
  result.total_tokens =
      count(*usage, "total_tokens").value_or(result.input_tokens + result.output_tokens);
  if (details) {
    result.cached_tokens = count(*details, "cached_tokens");
    result.cache_write_tokens = count(*details, "cache_write_tokens");
  }
  if (output_details) result.reasoning_tokens = count(*output_details, "reasoning_tokens");
  return result;
}

Response read_response(const JsonObject& response) {
  Response result;
  result.id = response.string_or_empty("id");
  result.model = response.string_or_empty("model");
  result.status = response.string_or_empty("status");
  if (const auto details = find_object(response, "incomplete_details")) {
    result.incomplete_reason = details->string_or_empty("reason");
  }
  const auto error = find_object(response, "error");
  if (error) {
    result.error_code = error->string_or_empty("code");
    result.error_message = error->string_or_empty("message");
  }
  // A response that failed may have come to none.
  const auto output = error ? find_items(response, "output") : response.at("output").items();
  for (const JsonPlace& item : output)
    result.output.push_back(read_item(JsonObject(item)));
  result.usage = read_usage(response);
  result.json = response.place().json();
  return result;
}

ChatCompletion parse_chat_completion(std::string_view json) {
  const JsonObject root(JsonPlace::check(json));
  ChatCompletion result;
  result.id = root.string_or_empty("id");
  result.model = root.string_or_empty("model");
  result.created = root.integer("created").value_or(0);
  for (const JsonPlace& place : root.at("choices").items()) {
    const JsonObject choice(place);
    result.choices.push_back({choice.integer("index").value_or(0),
                              read_message(JsonObject(choice.at("message"))),
                              choice.string_or_empty("finish_reason")});
  }
  result.usage = read_usage(root);
  result.json = root.place().json();
  return result;
}

Response parse_response(std::string_view json) {
  return read_response(JsonObject(JsonPlace::check(json)));
}

std::string ChatCompletion::text() const {
  return choices.empty() ? std::string() : choices.front().message.content.value_or("");
}

std::string Response::text() const {
  std::string all;
  for (const ResponseItem& item : output)
    all += item.text;
  return all;
}

incipit::Usage Usage::messages_usage() const {
  incipit::Usage result;
  result.cache_read_input_tokens = cached_tokens.value_or(0);
  result.cache_creation_5m = cache_write_tokens.value_or(0);
  result.input_tokens = std::max<std::int64_t>(
      0, input_tokens - result.cache_read_input_tokens - result.cache_creation_5m);
  result.output_tokens = output_tokens;
  result.thinking_tokens = reasoning_tokens.value_or(0);
  return result;
}

std::optional<Cost> cost(const Usage& usage, std::string_view model) {
  return incipit::cost(usage.messages_usage(), model);
}

}  // namespace incipit::openai
