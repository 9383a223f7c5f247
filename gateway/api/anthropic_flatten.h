// A valid request to the items of the prompt: tools, system, messages (C-1), each with the bytes
// that identify it (C-2..C-4, C-7, C-8).
#pragma once

#include "gateway/api/anthropic_file_text.h"
#include "gateway/api/anthropic_traits.h"
#include "gateway/cache/prefix_key.h"
#include "gateway/prompt/conversation.h"
#include "incipit/anthropic.h"

#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {

// A marker as sent, at the place that an error names.
struct Marker {
  std::optional<std::size_t> item;  // the one whose end it marks; none: there is nothing before it
  std::string path;                 // of the block that carries it
  Ttl ttl = Ttl::five_minutes;
};

// Where an item of `messages` was in the request, and what is known of it besides.
struct Origin {
  std::size_t message = 0, block = 0;
  bool is_turn_scoped = false;      // of a system message with clear_at (C-76)
  bool follows_its_content = true;  // a thought: what it was signed for is what precedes it here
  friend bool operator==(const Origin&, const Origin&) = default;
};

// Everything that was sent, thinking and turn-scoped messages too.
struct Flattened {
  std::vector<Item> items;      // without markers yet
  std::vector<Origin> origins;  // of each item
  std::vector<Marker> markers;  // in prompt order
  std::vector<bool> offered;    // by place in `tools`: what the model has been told of
  int dropped_billing_lines = 0;
  // Of all items but thoughts, and without billing lines, which change with every request.
  PrefixKey content_key;
};

// Tools with defer_loading are left out until a tool_reference names them (C-73). Markers on parts
// of a block belong to its end (C-12).
//
// Claude Code opens its system text with a line that changes with every request; it is dropped
// unless `keep_billing_line`. A block that held nothing else disappears, and a marker on it moves
// to the item before, where the prefix that it marked ends now; with no item before it marks
// nothing but still counts in the rules.
//
// Thoughts must have been checked (`check_thoughts`). One may have been signed anywhere within the
// assistant's turn that it is in, since a reply with several thoughts is signed as it begins.
[[nodiscard]] Flattened flatten(const MessageRequest& request, bool keep_billing_line,
                                FileTexts& files);

// Takes out the items with `is_gone`, as if they had never been there: turns that meet become one.
// Markers must have been placed. None of those items may have one.
void remove_items(Flattened& prompt, const std::vector<bool>& is_gone);

// What context_management leaves of a tool_result and of a tool_use: that they were there.
void clear_result(Item& item);
void clear_input(Item& item);

// Fills model and key_before_* (C-54). Thinking and effort stand before the messages, or before
// the tools with `settings_before_tools` (C-53).
void describe_settings(const MessageRequest& request, const std::string& model,
                       const ModelTraits& traits, bool settings_before_tools,
                       Conversation& conversation);

}  // namespace incipit::gateway
