// What the readers of whole replies and of streams share. Private to the SDK.
// Source: openai-wire sections 1.8, 2.1, 2.3, 2.5 and 2.6.
#pragma once

#include "incipit/openai.h"
#include "json_place.h"

#include <optional>
#include <string_view>
#include <vector>

namespace incipit::openai {

// Servers differ in what they leave out and what they send as null: both read as nothing.
[[nodiscard]] std::optional<JsonObject> find_object(const JsonObject& parent,
                                                    std::string_view name);
[[nodiscard]] std::vector<JsonPlace> find_items(const JsonObject& parent, std::string_view name);

// The `usage` of `parent`, in the words of either API.
[[nodiscard]] std::optional<Usage> read_usage(const JsonObject& parent);

// A tool call, or the fragment of one that a stream brings.
[[nodiscard]] ToolCall read_call(const JsonObject& call);

[[nodiscard]] Response read_response(const JsonObject& response);

// The error of a response with that status and body (`Provider::parse_error`).
[[nodiscard]] ApiError parse_api_error(int status, std::string_view body);

// Throws ApiError, with status 0, when an event of a stream is an error: one with a member `error`
// that is not null, or the flat form of it (section 2.6, item 7). `name` is what `event:` said.
void throw_if_error(std::string_view name, const JsonObject& event);

}  // namespace incipit::openai
