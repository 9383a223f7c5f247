#include "incipit/openai.h"

#include <string>
#include <string_view>
#include <vector>

namespace incipit::openai {
namespace {

// The members that are left out when they are unset. Caller's JSON goes out byte for byte.
void optional_member(JsonWriter& writer, std::string_view key, const std::string& text) {
  if (!text.empty()) writer.key(key).string(text);
}

void optional_member(JsonWriter& writer, std::string_view key,
                     const std::optional<std::string>& text) {
  if (text) writer.key(key).string(*text);
}

void optional_member(JsonWriter& writer, std::string_view key, const JsonText& json) {
  if (!json.empty()) writer.key(key).raw(json.text());
}

void optional_member(JsonWriter& writer, std::string_view key, std::optional<std::int64_t> number) {
  if (number) writer.key(key).integer(*number);
}

void optional_member(JsonWriter& writer, std::string_view key, std::optional<double> number) {
  if (number) writer.key(key).number(*number);
}

void optional_member(JsonWriter& writer, std::string_view key, std::optional<bool> truth) {
  if (truth) writer.key(key).boolean(*truth);
}

void optional_member(JsonWriter& writer, std::string_view key,
                     const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  writer.key(key).begin_array();
  for (const std::string& text : texts)
    writer.string(text);
  writer.end_array();
}

void write_array(JsonWriter& writer, std::string_view key, const std::vector<JsonText>& items) {
  writer.key(key).begin_array();
  for (const JsonText& item : items)
    writer.raw(item.text());
  writer.end_array();
}

// The members of `extra`, as spelled.
void write_extra(JsonWriter& writer, const JsonText& extra) {
  if (extra.empty()) return;
  if (!extra.is_object()) throw PromptError({}, "extra", "extra: must be a JSON object");
  std::string_view members(extra.text());
  members.remove_prefix(1);
  members.remove_suffix(1);
  if (members.find_first_not_of(" \t\n\r") != members.npos) writer.raw(members);
}

void write_call(JsonWriter& writer, const ToolCall& call) {
  // A custom tool takes any text, a function JSON.
  const bool custom = call.type == "custom";
  writer.begin_object().key("id").string(call.id).key("type").string(call.type);
  writer.key(call.type).begin_object().key("name").string(call.name);
  writer.key(custom ? "input" : "arguments").string(call.arguments);
  writer.end_object().end_object();
}

void write_message(JsonWriter& writer, const ChatMessage& message) {
  writer.begin_object().key("role").string(message.role);
  if (!message.parts.empty()) {
    write_array(writer, "content", message.parts);
  } else if (message.content) {
    writer.key("content").string(*message.content);
  } else if (message.tool_calls.empty()) {
    writer.key("content").null();  // only calls may come without any
  }
  optional_member(writer, "refusal", message.refusal);
  optional_member(writer, "name", message.name);
  if (!message.tool_calls.empty()) {
    writer.key("tool_calls").begin_array();
    for (const ToolCall& call : message.tool_calls)
      write_call(writer, call);
    writer.end_array();
  }
  optional_member(writer, "tool_call_id", message.tool_call_id);
  writer.end_object();
}

void write_chat_tools(JsonWriter& writer, const std::vector<FunctionTool>& tools) {
  if (tools.empty()) return;
  writer.key("tools").begin_array();
  for (const FunctionTool& tool : tools) {
    writer.begin_object().key("type").string("function").key("function").begin_object();
    writer.key("name").string(tool.name);
    optional_member(writer, "description", tool.description);
    optional_member(writer, "parameters", tool.parameters);
    optional_member(writer, "strict", tool.strict);
    writer.end_object().end_object();
  }
  writer.end_array();
}

// Flat here, and the last two are required, be it as null.
void write_responses_tools(JsonWriter& writer, const std::vector<FunctionTool>& tools) {
  if (tools.empty()) return;
  writer.key("tools").begin_array();
  for (const FunctionTool& tool : tools) {
    writer.begin_object().key("type").string("function").key("name").string(tool.name);
    optional_member(writer, "description", tool.description);
    writer.key("parameters").raw(tool.parameters.empty() ? "null" : tool.parameters.text());
    writer.key("strict").raw(!tool.strict ? "null" : *tool.strict ? "true" : "false");
    writer.end_object();
  }
  writer.end_array();
}

template <class Request>
void write_cache_settings(JsonWriter& writer, const Request& request) {
  optional_member(writer, "prompt_cache_key", request.prompt_cache_key);
  optional_member(writer, "prompt_cache_options", request.prompt_cache_options);
  optional_member(writer, "prompt_cache_retention", request.prompt_cache_retention);
}

// One JSON object, written by `write`.
template <class Write>
JsonText object(const Write& write) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  write(writer);
  writer.end_object();
  return JsonText::trusted(std::move(out));
}

}  // namespace

JsonText text_part(std::string_view text) {
  return object(
      [&](JsonWriter& writer) { writer.key("type").string("text").key("text").string(text); });
}

JsonText image_part(std::string_view url, std::string_view detail) {
  return object([&](JsonWriter& writer) {
    writer.key("type").string("image_url").key("image_url").begin_object();
    writer.key("url").string(url);
    if (!detail.empty()) writer.key("detail").string(detail);
    writer.end_object();
  });
}

JsonText message_item(std::string_view role, std::string_view text) {
  return object(
      [&](JsonWriter& writer) { writer.key("role").string(role).key("content").string(text); });
}

JsonText function_call_output_item(std::string_view call_id, std::string_view output) {
  return object([&](JsonWriter& writer) {
    writer.key("type").string("function_call_output");
    writer.key("call_id").string(call_id).key("output").string(output);
  });
}

std::string to_json(const ChatRequest& request, bool stream) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().key("model").string(request.model);
  write_chat_tools(writer, request.tools);
  writer.key("messages").begin_array();
  for (const ChatMessage& message : request.messages)
    write_message(writer, message);
  writer.end_array();
  optional_member(writer, "tool_choice", request.tool_choice);
  optional_member(writer, "response_format", request.response_format);
  optional_member(writer, "max_completion_tokens", request.max_completion_tokens);
  optional_member(writer, "temperature", request.temperature);
  optional_member(writer, "top_p", request.top_p);
  optional_member(writer, "stop", request.stop);
  optional_member(writer, "seed", request.seed);
  optional_member(writer, "reasoning_effort", request.reasoning_effort);
  write_cache_settings(writer, request);
  if (stream) {
    writer.key("stream").boolean(true);
    // Without it a stream says nothing of tokens; the caller's own options stand for themselves.
    if (request.extra.value().find("stream_options") == nullptr) {
      writer.key("stream_options").raw(R"({"include_usage":true})");
    }
  }
  write_extra(writer, request.extra);
  writer.end_object();
  return out;
}

std::string to_json(const ResponsesRequest& request, bool stream) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().key("model").string(request.model);
  write_responses_tools(writer, request.tools);
  optional_member(writer, "instructions", request.instructions);
  write_array(writer, "input", request.input);
  optional_member(writer, "tool_choice", request.tool_choice);
  optional_member(writer, "text", request.text);
  optional_member(writer, "max_output_tokens", request.max_output_tokens);
  optional_member(writer, "temperature", request.temperature);
  optional_member(writer, "top_p", request.top_p);
  optional_member(writer, "previous_response_id", request.previous_response_id);
  optional_member(writer, "store", request.store);
  optional_member(writer, "reasoning", request.reasoning);
  optional_member(writer, "include", request.include);
  write_cache_settings(writer, request);
  if (stream) writer.key("stream").boolean(true);
  write_extra(writer, request.extra);
  writer.end_object();
  return out;
}

}  // namespace incipit::openai
