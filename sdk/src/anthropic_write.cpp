#include "block_write.h"
#include "incipit/anthropic.h"
#include "json_slices.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace incipit {
namespace {

constexpr std::string_view name_of(MessageRole role) {
  switch (role) {
    case MessageRole::assistant:
      return "assistant";
    case MessageRole::system:
      return "system";
    case MessageRole::user:
      break;
  }
  return "user";
}

constexpr std::string_view name_of(ToolChoice::Type type) {
  switch (type) {
    case ToolChoice::Type::any:
      return "any";
    case ToolChoice::Type::tool:
      return "tool";
    case ToolChoice::Type::none:
      return "none";
    case ToolChoice::Type::automatic:
      break;
  }
  return "auto";
}

constexpr std::string_view name_of(Thinking::Type type) {
  switch (type) {
    case Thinking::Type::adaptive:
      return "adaptive";
    case Thinking::Type::enabled:
      return "enabled";
    case Thinking::Type::between_tools:
      return "between_tools";
    case Thinking::Type::disabled:
      break;
  }
  return "disabled";
}

constexpr std::string_view name_of(Effort effort) {
  switch (effort) {
    case Effort::low:
      return "low";
    case Effort::medium:
      return "medium";
    case Effort::xhigh:
      return "xhigh";
    case Effort::max:
      return "max";
    case Effort::high:
      break;
  }
  return "high";
}

void write_tool(JsonWriter& writer, const Tool& tool) {
  writer.begin_object();
  if (!tool.type.empty()) writer.key("type").string(tool.type);
  if (!tool.name.empty()) writer.key("name").string(tool.name);
  if (tool.description) writer.key("description").string(*tool.description);
  if (!tool.input_schema.empty()) writer.key("input_schema").raw(tool.input_schema.text());
  if (!tool.input_examples.empty()) {
    writer.key("input_examples").begin_array();
    for (const JsonText& example : tool.input_examples)
      writer.raw(example.text());
    writer.end_array();
  }
  write_members(writer, tool.options, "tools.options");
  if (tool.strict) writer.key("strict").boolean(*tool.strict);
  if (tool.defer_loading) writer.key("defer_loading").boolean(true);
  if (!tool.allowed_callers.empty()) {
    writer.key("allowed_callers").begin_array();
    for (const std::string& caller : tool.allowed_callers)
      writer.string(caller);
    writer.end_array();
  }
  if (tool.eager_input_streaming) {
    writer.key("eager_input_streaming").boolean(*tool.eager_input_streaming);
  }
  write_marker(writer, tool.cache_control);
  writer.end_object();
}

// What the cache sees, in the order in which it is rendered (C-1).
void write_prompt(JsonWriter& writer, const MessageRequest& request) {
  if (!request.tools.empty()) {
    writer.key("tools").begin_array();
    for (const Tool& tool : request.tools)
      write_tool(writer, tool);
    writer.end_array();
  }
  if (!request.system.empty()) {
    writer.key("system").begin_array();
    for (const TextBlock& block : request.system)
      write_block(writer, block);
    writer.end_array();
  }
  writer.key("messages").begin_array();
  for (const MessageParam& message : request.messages) {
    writer.begin_object().key("role").string(name_of(message.role)).key("content").begin_array();
    for (const ContentBlock& block : message.content)
      block.write(writer);
    writer.end_array();
    write_members(writer, message.extra, "messages.extra");
    writer.end_object();
  }
  writer.end_array();
}

void write_tool_choice(JsonWriter& writer, const ToolChoice& choice) {
  writer.key("tool_choice").begin_object().key("type").string(name_of(choice.type));
  if (choice.type == ToolChoice::Type::tool) writer.key("name").string(choice.name);
  if (choice.disable_parallel_tool_use) writer.key("disable_parallel_tool_use").boolean(true);
  writer.end_object();
}

void write_thinking(JsonWriter& writer, const Thinking& thinking) {
  writer.key("thinking").begin_object().key("type").string(name_of(thinking.type));
  if (thinking.type == Thinking::Type::enabled) {
    writer.key("budget_tokens").integer(thinking.budget_tokens);
  }
  if (!thinking.display.empty()) writer.key("display").string(thinking.display);
  writer.end_object();
}

// The settings that both endpoints take.
void write_rendered_settings(JsonWriter& writer, const MessageRequest& request) {
  write_marker(writer, request.cache_control);
  if (request.tool_choice) write_tool_choice(writer, *request.tool_choice);
  if (request.thinking) write_thinking(writer, *request.thinking);
  if (request.effort || request.output_format) {
    writer.key("output_config").begin_object();
    if (request.effort) writer.key("effort").string(name_of(*request.effort));
    if (request.output_format) writer.key("format").raw(request.output_format->text());
    writer.end_object();
  }
  if (request.speed) writer.key("speed").string(*request.speed);
}

void write_own_settings(JsonWriter& writer, const MessageRequest& request) {
  if (!request.stop_sequences.empty()) {
    writer.key("stop_sequences").begin_array();
    for (const std::string& stop : request.stop_sequences)
      writer.string(stop);
    writer.end_array();
  }
  if (request.temperature) writer.key("temperature").number(*request.temperature);
  if (request.top_p) writer.key("top_p").number(*request.top_p);
  if (request.top_k) writer.key("top_k").integer(*request.top_k);
  if (request.user_id) {
    writer.key("metadata").begin_object().key("user_id").string(*request.user_id).end_object();
  }
  if (request.service_tier) writer.key("service_tier").string(*request.service_tier);
  if (request.inference_geo) writer.key("inference_geo").string(*request.inference_geo);
  if (!request.container.empty()) writer.key("container").raw(request.container.text());
  if (request.diagnostics) {
    writer.key("diagnostics").begin_object().key("previous_message_id");
    if (request.diagnostics->previous_message_id) {
      writer.string(*request.diagnostics->previous_message_id);
    } else {
      writer.null();
    }
    writer.end_object();
  }
  if (request.stream) writer.key("stream").boolean(true);
}

// What count_tokens takes of `extra`: its betas (section 13), and settings that had no field.
bool is_counted(const JsonMemberSlice& member) {
  static constexpr std::array<std::string_view, 7> names = {
      "tool_choice",        "thinking",    "output_config", "output_format",
      "context_management", "mcp_servers", "compaction"};
  return std::ranges::any_of(names, [&](auto name) { return member.is_named(name); });
}

// About what the text will take, so that the string grows once.
std::size_t size_hint(const ContentBlock& block) {
  constexpr std::size_t frame = 128;
  if (!block.received().empty()) return frame + block.received().text().size();
  if (const auto* text = block.get_if<TextBlock>()) return frame + text->text.size();
  if (const auto* call = block.get_if<ToolUseBlock>()) return frame + call->input.text().size();
  std::size_t size = frame;
  if (const auto* result = block.get_if<ToolResultBlock>()) {
    for (const ContentBlock& inner : result->content)
      size += size_hint(inner);
  }
  return size;
}

std::size_t size_hint(const MessageRequest& request) {
  std::size_t size = 1024;
  for (const Tool& tool : request.tools)
    size +=
        256 + tool.input_schema.text().size() + (tool.description ? tool.description->size() : 0);
  for (const TextBlock& block : request.system)
    size += 128 + block.text.size();
  for (const MessageParam& message : request.messages) {
    for (const ContentBlock& block : message.content)
      size += size_hint(block);
  }
  return size + size / 32;  // escapes
}

}  // namespace

std::string to_json(const MessageRequest& request) {
  std::string json;
  json.reserve(size_hint(request));
  JsonWriter writer(json);
  writer.begin_object().key("model").string(request.model);
  writer.key("max_tokens").integer(request.max_tokens);
  write_prompt(writer, request);
  write_rendered_settings(writer, request);
  write_own_settings(writer, request);
  write_members(writer, request.extra, "extra");
  writer.end_object();
  return json;
}

std::string count_tokens_json(const MessageRequest& request) {
  std::string json;
  json.reserve(size_hint(request));
  JsonWriter writer(json);
  writer.begin_object().key("model").string(request.model);
  write_prompt(writer, request);
  write_rendered_settings(writer, request);
  for (const JsonMemberSlice& member : json_members(request.extra.text())) {
    if (is_counted(member)) writer.raw(member.text());
  }
  writer.end_object();
  return json;
}

}  // namespace incipit
