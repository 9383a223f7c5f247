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
enum class ItemKind : std::uint8_t { tool, text, tool_use, tool_result, thinking };

// One content block of the flattened prompt.
struct Item {
  Section section = Section::messages;
  Role role = Role::user;
  ItemKind kind = ItemKind::text;
  int turn = 0;           // messages only: items of one turn are consecutive and share this number
  std::string text;       // text: the text · tool: description · tool_use: input JSON ·
                          // tool_result: its text · thinking: the thought
  std::string name;       // tool and tool_use: the tool's name
  std::string id;         // tool_use: its id · tool_result: the id it answers
  std::string schema;     // tool: input_schema JSON, as received, minified
  bool is_error = false;  // tool_result
  std::string key_bytes;  // what identifies the content for C-2 (no cache_control in it)
  std::optional<Ttl> marker;
};

// A tool that the reply may call.
struct CallableTool {
  std::string name;
  std::string schema;  // of its input, JSON as received
  bool strict = false;
  std::string path = {};  // of the schema in the request, for errors
};

// Whether a model that thinks aloud does so before its answer.
struct ThinkingPlan {
  bool wanted = false;
  int most_tokens = 0;    // of the thought; it is closed then. 0: only max_tokens ends it
  bool is_shown = false;  // else its block is empty and carries only the signature
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
  // What the reply may call; none where tool_choice is "none", one where it names one.
  std::vector<CallableTool> callable;
  bool must_call = false;  // tool_choice "any" or "tool": the reply is calls and nothing else
  bool parallel_tool_calls = true;
  // The text of the reply is a value of this JSON schema (output_config.format); empty: any text.
  std::string output_schema;
  ThinkingPlan thinking;
  int max_tokens = 0;
  Sampling sampling;
  std::vector<std::string> stop_sequences;
};

}  // namespace incipit::gateway
