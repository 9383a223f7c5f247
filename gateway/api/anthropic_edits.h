// context_management: edits that the gateway makes to a conversation before the model sees it.
// Source: anthropic-wire section 18.2; anthropic-cache-semantics C-78..C-80.
#pragma once

#include "incipit/json.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {

struct Flattened;
struct Reading;

// clear_thinking_20251015
struct ClearThinking {
  std::optional<std::int64_t> keep;  // the latest turns with thinking; none: all of them
};

// clear_tool_uses_20250919
struct ClearToolUses {
  bool trigger_counts_calls = false;  // else prompt tokens
  std::int64_t trigger = 100'000;     // acts beyond it
  std::int64_t keep = 3;              // the latest calls
  std::int64_t clear_at_least = 0;    // prompt tokens; acts only if it saves so many
  std::vector<std::string> exclude_tools;
  bool clear_inputs = false;                 // of each call whose result is cleared
  std::vector<std::string> clear_inputs_of;  // or of the calls of these tools
};

struct ContextEdits {
  std::optional<ClearThinking> thinking;  // always the first
  std::optional<ClearToolUses> tool_uses;
};

// Throws ApiError. What cannot be served is refused through `reading`.
[[nodiscard]] ContextEdits read_context_management(const JsonValue& value, Reading& reading);

// The prompt tokens of a prompt.
using TokenCount = std::function<std::int64_t(const Flattened&)>;

// Returns the list of applied edits as JSON. Counts at most three times.
[[nodiscard]] std::string apply_edits(Flattened& prompt, const ContextEdits& edits,
                                      const TokenCount& count);

}  // namespace incipit::gateway
