// Values of a Messages API request, as typed as they can be without losing bytes that matter to a
// prompt cache. Plain data: no validation and no I/O here.
// Source: anthropic-wire sections 4-7.
#pragma once

#include "incipit/json.h"
#include "incipit/usage.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace incipit {

// {"type":"ephemeral","ttl":…}: the prompt up to the end of what carries it is worth keeping.
struct CacheControl {
  Ttl ttl = Ttl::five_minutes;
  friend bool operator==(const CacheControl&, const CacheControl&) = default;
};

struct TextBlock {
  std::string text;
  std::optional<CacheControl> cache_control;
};

// The assistant calls a tool.
struct ToolUseBlock {
  std::string id;
  std::string name;
  JsonValue input;  // an object; its key order is part of the prompt (C-7)
  std::optional<CacheControl> cache_control;
};

// The user answers a call.
struct ToolResultBlock {
  std::string tool_use_id;
  std::vector<TextBlock> content;  // a string on the wire is one block; none is an empty answer
  bool is_error = false;
  std::optional<CacheControl> cache_control;
};

using ContentBlock = std::variant<TextBlock, ToolUseBlock, ToolResultBlock>;

enum class MessageRole : std::uint8_t { user, assistant, system };

struct Message {
  MessageRole role = MessageRole::user;
  std::vector<ContentBlock> content;  // a string on the wire is one text block
};

// A tool that the caller runs.
struct Tool {
  std::string name;
  std::optional<std::string> description;
  JsonValue input_schema;                 // an object; key order is part of the prompt (C-7)
  std::vector<JsonValue> input_examples;  // objects
  bool defer_loading = false;             // kept out of the prompt (C-73)
  std::optional<CacheControl> cache_control;
};

struct ToolChoice {
  enum class Type : std::uint8_t { automatic, any, tool, none };
  Type type = Type::automatic;
  std::string name;  // Type::tool only
  bool disable_parallel_tool_use = false;
};

struct Thinking {
  enum class Type : std::uint8_t { adaptive, enabled, between_tools, disabled };
  Type type = Type::disabled;
  std::int64_t budget_tokens = 0;  // Type::enabled only
};

enum class Effort : std::uint8_t { low, medium, high, xhigh, max };

struct MessageRequest {
  std::string model;
  std::int64_t max_tokens = 0;  // 0 = fill the cache, generate nothing
  std::vector<Tool> tools;
  std::vector<TextBlock> system;  // a string on the wire is one block
  std::vector<Message> messages;
  std::optional<CacheControl> cache_control;  // automatic caching
  std::optional<ToolChoice> tool_choice;
  std::optional<Thinking> thinking;
  std::optional<Effort> effort;            // output_config.effort
  std::optional<JsonValue> output_format;  // output_config.format
  std::vector<std::string> stop_sequences;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
  bool stream = false;
};

}  // namespace incipit
