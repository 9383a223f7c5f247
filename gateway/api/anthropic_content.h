// The kinds of content blocks, one function each: shape, types and names. `path` leads to the block
// and ends in its tag, `base` does without it. What is valid but cannot be served is noted in
// `reading.refusal` and still stands in the message, so that every rule sees the whole request.
// Source: anthropic-wire section 5.
#pragma once

#include "gateway/api/anthropic_body.h"
#include "incipit/anthropic.h"

#include <string>
#include <string_view>

namespace incipit::gateway {

// Also the blocks of `system` and of search results, whose paths carry no tag.
[[nodiscard]] TextBlock read_text(const JsonValue& value, const std::string& path, MessageRole role,
                                  Reading& reading);

[[nodiscard]] ContentBlock read_image(const JsonValue& value, const std::string& base,
                                      Reading& reading);
[[nodiscard]] ContentBlock read_document(const JsonValue& value, const std::string& base,
                                         MessageRole role, Reading& reading);
[[nodiscard]] ContentBlock read_search_result(const JsonValue& value, const std::string& base,
                                              MessageRole role, Reading& reading);

// Blocks of features that this gateway does not have: server tools, containers, MCP, compaction.
[[nodiscard]] ContentBlock read_unserved(const JsonValue& value, std::string_view tag,
                                         const std::string& base, Reading& reading);

}  // namespace incipit::gateway
