// Messages, system and their content blocks. Source: anthropic-wire sections 4.1 and 5.
#include "gateway/api/anthropic_content.h"

#include <algorithm>
#include <array>
#include <utility>

namespace incipit::gateway {
namespace {

// Every block type of a request. Types with a beta are unknown without it.
struct BlockType {
  std::string_view tag;
  std::string_view beta;
};

constexpr std::array block_types = {
    BlockType{"bash_code_execution_tool_result", ""},
    BlockType{"code_execution_tool_result", ""},
    BlockType{"compaction", "compact-"},
    BlockType{"container_upload", ""},
    BlockType{"document", ""},
    BlockType{"fallback", "server-side-fallback-"},
    BlockType{"image", ""},
    BlockType{"mcp_tool_result", "mcp-client-"},
    BlockType{"mcp_tool_use", "mcp-client-"},
    BlockType{"redacted_thinking", ""},
    BlockType{"search_result", ""},
    BlockType{"server_tool_use", ""},
    BlockType{"text", ""},
    BlockType{"text_editor_code_execution_tool_result", ""},
    BlockType{"thinking", ""},
    BlockType{"tool_addition", "inline-tools-"},
    BlockType{"tool_addition", "mid-conversation-tool-changes-"},
    BlockType{"tool_removal", "inline-tools-"},
    BlockType{"tool_removal", "mid-conversation-tool-changes-"},
    BlockType{"tool_result", ""},
    BlockType{"tool_search_tool_result", ""},
    BlockType{"tool_use", ""},
    BlockType{"web_fetch_tool_result", ""},
    BlockType{"web_search_tool_result", ""},
};

constexpr std::array<std::string_view, 6> result_tags = {
    "browser_state", "document", "image", "search_result", "text", "tool_reference"};

bool known(const BlockType& type, const Reading& reading) {
  return type.beta.empty() || reading.has_beta(type.beta);
}

void require_known(const std::string& tag, const std::string& path, const Reading& reading) {
  std::vector<std::string_view> expected;
  for (const BlockType& type : block_types) {
    if (!known(type, reading)) continue;
    if (type.tag == tag) return;
    if (expected.empty() || expected.back() != type.tag) expected.push_back(type.tag);
  }
  reject_tag(path, tag, expected);
}

void read_caller(Fields& fields, Reading& reading) {
  const JsonValue* value = fields.unless_null("caller");
  if (value == nullptr) return;
  Fields caller(*value, fields.at("caller"));
  const std::string& type = read_string(caller.required("type"), caller.at("type"));
  if (type == "direct") return caller.reject_others();
  if (!type.starts_with("code_execution_")) {
    reject_tag(caller.path(), type,
               {"code_execution_20250825", "code_execution_20260120", "code_execution_20260521",
                "direct"});
  }
  const std::string& source = read_string(caller.required("tool_id"), caller.at("tool_id"));
  reading.refuse(caller.path(), "source tool '" + shown(source) + "' not found");
}

void refuse_toolset(Fields& fields, Reading& reading) {
  if (fields.unless_null("toolset_name") != nullptr) {
    reading.refuse(fields.at("toolset_name"), "toolsets are not supported by this gateway");
  }
}

ToolUseBlock read_tool_use(const JsonValue& value, const std::string& path, Reading& reading) {
  Fields fields(value, path);
  (void)fields.required("type");
  ToolUseBlock block;
  block.id = read_identifier(fields.required("id"), fields.at("id"), 0);
  block.name = read_identifier(fields.required("name"), fields.at("name"), 128);
  block.input = read_object(fields.required("input"), fields.at("input"));
  read_caller(fields, reading);
  refuse_toolset(fields, reading);
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  return block;
}

// The name of a tool that was found by a search of the caller's own.
ContentBlock read_tool_reference(const JsonValue& value, const std::string& base,
                                 Reading& reading) {
  Fields fields(value, base + ".tool_reference");
  (void)fields.required("type");
  const std::string& name =
      read_identifier(fields.required("tool_name"), fields.at("tool_name"), 128);
  UnknownBlock block{"tool_reference"};
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  std::string json;
  JsonWriter(json)
      .begin_object()
      .key("type")
      .string(block.type)
      .key("tool_name")
      .string(name)
      .end_object();
  block.json = JsonText::trusted(std::move(json));
  return block;
}

ContentBlock read_result_item(const JsonValue& value, const std::string& tag,
                              const std::string& base, Reading& reading) {
  if (tag == "text") return read_text(value, base + ".text", MessageRole::user, reading);
  if (tag == "image") return read_image(value, base, reading);
  if (tag == "document") return read_document(value, base, MessageRole::user, reading);
  if (tag == "search_result") return read_search_result(value, base, MessageRole::user, reading);
  if (tag == "tool_reference") return read_tool_reference(value, base, reading);
  return read_unserved(value, tag, base, reading);
}

std::vector<ContentBlock> read_result_content(const JsonValue& value, const std::string& path,
                                              Reading& reading) {
  std::vector<ContentBlock> content;
  if (value.is_string()) {
    if (!value.as_string().empty()) content.emplace_back(TextBlock{value.as_string()});
    return content;
  }
  if (!value.is_array()) {
    throw invalid_request(path + ": Input should be a valid string or list");
  }
  const JsonValue::Array& list = value.as_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = element(path, i);
    Fields head(list[i], item);
    const std::string& tag = read_string(head.required("type"), head.at("type"));
    if (std::ranges::find(result_tags, std::string_view(tag)) == result_tags.end()) {
      reject_tag(item, tag, {result_tags.begin(), result_tags.end()});
    }
    content.push_back(read_result_item(list[i], tag, item, reading));
  }
  return content;
}

ToolResultBlock read_tool_result(const JsonValue& value, const std::string& path,
                                 Reading& reading) {
  Fields fields(value, path);
  (void)fields.required("type");
  ToolResultBlock block;
  block.tool_use_id = read_identifier(fields.required("tool_use_id"), fields.at("tool_use_id"), 0);
  if (const JsonValue* content = fields.optional("content")) {
    block.content = read_result_content(*content, fields.at("content"), reading);
  }
  if (const JsonValue* is_error = fields.optional("is_error")) {
    block.is_error = read_boolean(*is_error, fields.at("is_error"));
  }
  refuse_toolset(fields, reading);
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  return block;
}

// What was signed is checked later, by `check_thoughts`. There is no marker among the fields (E-6).
ContentBlock read_thought(const JsonValue& value, const std::string& path) {
  Fields fields(value, path);
  const std::string& type = read_string(fields.required("type"), fields.at("type"));
  const auto text = [&](std::string_view name) {
    return read_string(fields.required(name), fields.at(name));
  };
  const auto read = [&]() -> ContentBlock {
    if (type == "redacted_thinking") return RedactedThinkingBlock{text("data")};
    ThinkingBlock block;
    block.thinking = text("thinking");
    block.signature = text("signature");
    return block;
  };
  ContentBlock block = read();
  fields.reject_others();
  return block;
}

// Kinds that only one side of the conversation may send.
void check_side(const std::string& tag, const std::string& base, MessageRole role,
                const Reading& reading) {
  const auto only_in = [&](std::string_view side) {
    throw invalid_request(base + ": `" + tag + "` blocks can only be in `" + std::string(side)
                          + "` messages");
  };
  const bool is_reply = tag == "tool_use" || tag == "thinking" || tag == "redacted_thinking";
  if (is_reply && role != MessageRole::assistant) only_in("assistant");
  if (role == MessageRole::user) return;
  if (tag == "tool_result" || tag == "image" || tag == "search_result") only_in("user");
  if (tag == "document" && reading.context.version_2026_10_21) only_in("user");  // W-4
}

ContentBlock read_content(const JsonValue& value, const std::string& tag, const std::string& base,
                          MessageRole role, Reading& reading) {
  const std::string path = base + "." + tag;
  if (tag == "text") return read_text(value, path, role, reading);
  if (tag == "tool_use") return read_tool_use(value, path, reading);
  if (tag == "tool_result") return read_tool_result(value, path, reading);
  if (tag == "document") return read_document(value, base, role, reading);
  if (tag == "search_result") return read_search_result(value, base, role, reading);
  if (tag == "image") return read_image(value, base, reading);
  if (tag == "thinking" || tag == "redacted_thinking") {
    return read_thought(value, path);
  }
  return read_unserved(value, tag, base, reading);
}

void read_block(const JsonValue& value, const std::string& base, MessageParam& message,
                Reading& reading) {
  Fields head(value, base);
  const std::string& tag = read_string(head.required("type"), head.at("type"));
  require_known(tag, base, reading);
  if (message.role == MessageRole::system && tag != "text") {
    throw invalid_request(base + ": `" + tag + "` blocks cannot be in `system` messages");
  }
  message.content.push_back(read_content(value, tag, base, message.role, reading));
  check_side(tag, base, message.role, reading);
}

// C-76.
void reject_markers(const MessageParam& message, const std::string& content_path) {
  for (std::size_t i = 0; i < message.content.size(); ++i) {
    if (!message.content[i].cache_control()) continue;
    throw invalid_request(element(content_path, i)
                          + ".text.cache_control: cannot be set in a system message with "
                            "`clear_at`, which leaves the prompt again");
  }
}

MessageParam read_message(const JsonValue& value, const std::string& path, Reading& reading) {
  Fields fields(value, path);
  MessageParam message;
  const std::string& role = read_string(fields.required("role"), fields.at("role"));
  if (role == "assistant") {
    message.role = MessageRole::assistant;
  } else if (role == "system") {
    message.role = MessageRole::system;
  } else if (role != "user") {
    throw invalid_request(fields.at("role") + ": Input should be 'user' or 'assistant'");
  }
  const JsonValue& content = fields.required("content");
  const std::string content_path = fields.at("content");
  if (content.is_string()) {
    if (!content.as_string().empty()) {
      message.content.emplace_back(TextBlock{content.as_string()});
    }
  } else if (content.is_array()) {
    const JsonValue::Array& blocks = content.as_array();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      read_block(blocks[i], element(content_path, i), message, reading);
    }
  } else {
    throw invalid_request(content_path + ": Input should be a valid string or list");
  }
  if (message.role == MessageRole::system && reading.has_beta("mid-conversation-system-clear-at-")
      && fields.unless_null("clear_at") != nullptr) {
    (void)fields.choice("clear_at", {"next_user_message"});
    message.extra = JsonText::trusted(R"({"clear_at":"next_user_message"})");
    reject_markers(message, content_path);
  }
  fields.reject_others();
  return message;
}

}  // namespace

std::vector<TextBlock> read_system(const JsonValue& system, Reading& reading) {
  std::vector<TextBlock> blocks;
  if (system.is_string()) {
    if (!system.as_string().empty()) blocks.push_back({system.as_string()});
    return blocks;
  }
  if (!system.is_array()) throw invalid_request("system: Input should be a valid string or list");
  const JsonValue::Array& list = system.as_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    blocks.push_back(read_text(list[i], element("system", i), MessageRole::system, reading));
  }
  return blocks;
}

std::vector<MessageParam> read_messages(const JsonValue& messages, Reading& reading) {
  constexpr std::size_t limit = 100'000;
  const JsonValue::Array& list = read_list(messages, "messages");
  if (list.empty()) throw invalid_request("messages: at least one message is required");
  if (list.size() > limit) {
    throw invalid_request("messages: List should have at most " + std::to_string(limit)
                          + " items after validation, not " + std::to_string(list.size()));
  }
  std::vector<MessageParam> result;
  result.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    result.push_back(read_message(list[i], element("messages", i), reading));
  }
  return result;
}

}  // namespace incipit::gateway
