// A valid request to the items of the prompt: tools, system, messages (C-1), each with the bytes
// that identify it (C-2..C-4, C-7, C-8).
#pragma once

#include "gateway/api/anthropic_traits.h"
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

struct Flattened {
  std::vector<Item> items;      // without markers yet
  std::vector<Marker> markers;  // in prompt order
  int dropped_billing_lines = 0;
};

// Tools with defer_loading are left out (C-73). Markers inside a tool_result belong to its end
// (C-12).
//
// Claude Code opens its system text with a line that changes with every request; it is dropped
// unless `keep_billing_line`. A block that held nothing else disappears, and a marker on it moves
// to the item before, where the prefix that it marked ends now; with no item before it marks
// nothing but still counts in the rules.
[[nodiscard]] Flattened flatten(const MessageRequest& request, bool keep_billing_line);

// Fills model and key_before_* (C-54, C-53: thinking and effort before the messages).
void describe_settings(const MessageRequest& request, const std::string& model,
                       const ModelTraits& traits, Conversation& conversation);

}  // namespace incipit::gateway
