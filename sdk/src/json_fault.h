// Where and why a text is not JSON. Private to the SDK.
#pragma once

#include "incipit/json.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace incipit {

struct JsonFault {
  std::string message;
  std::size_t offset;  // bytes
};

// The first fault of `text` as one strict JSON document of at most `depth` levels; nothing when it
// is one. simdjson says quickly that a text is broken, but seldom where: this says where.
[[nodiscard]] std::optional<JsonFault> find_json_fault(std::string_view text, int depth);

// Throws ParseError unless `text` is one strict JSON document of at most `depth` levels.
void require_json(std::string_view text, int depth = JsonLimits{}.depth);

// Throws ParseError about the byte at `offset` of `text`.
[[noreturn]] void throw_parse_error(std::string_view text, const std::string& message,
                                    std::size_t offset, std::string path = {});

// The length of the JSON number that `text` starts with; 0 when it starts with none.
[[nodiscard]] std::size_t json_number_length(std::string_view text);

}  // namespace incipit
