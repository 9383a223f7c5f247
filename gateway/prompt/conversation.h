// A request as the prompt sees it: the flattened items in the order tools, system, messages (C-1),
// free of wire words. Made by `gateway/api`, consumed by `encode`.
#pragma once

#include "gateway/engine/generation.h"
#include "incipit/usage.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {

enum class Section : std::uint8_t { tools, system, messages };
enum class Role : std::uint8_t { system, user, assistant };
enum class ItemKind : std::uint8_t { tool, text, tool_use, tool_result };

// One content block of the flattened prompt.
struct Item {
  Section section = Section::messages;
  Role role = Role::user;
  ItemKind kind = ItemKind::text;
  int turn = 0;           // messages only: items of one turn are consecutive and share this number
  std::string text;       // text: the text · tool: description · tool_use: input JSON ·
                          // tool_result: its text
  std::string name;       // tool and tool_use: the tool's name
  std::string id;         // tool_use: its id · tool_result: the id it answers
  std::string schema;     // tool: input_schema JSON, as received, minified
  bool is_error = false;  // tool_result
  std::string key_bytes;  // what identifies the content for C-2 (no cache_control in it)
  std::optional<Ttl> marker;
};

struct Conversation {
  std::string model;  // canonical id: `Ledger::lookup`'s model
  // Mixed into the prefix key where C-54 says; rendered settings, not content.
  std::string key_before_tools;     // model id
  std::string key_before_system;    // citations, speed, …
  std::string key_before_messages;  // tool_choice, thinking, effort, …
  std::vector<Item> items;
  // The last turn is the assistant's and is to be continued (prefill).
  bool continues_assistant = false;
  // The model may answer with tool calls (tools present and tool_choice is not "none").
  bool may_call_tools = false;
  bool parallel_tool_calls = true;
  int max_tokens = 0;
  Sampling sampling;
  std::vector<std::string> stop_sequences;
};

}  // namespace incipit::gateway
