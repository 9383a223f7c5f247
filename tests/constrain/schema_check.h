// A plain JSON Schema validator, written from the JSON Schema specification and the RFCs of the
// formats and sharing nothing with what it checks.
#pragma once

#include "incipit/json.h"

#include <string>

namespace incipit::constrain {

// Whether `value` is valid for `schema`, formats checked strictly. Keywords: type, enum, const,
// properties, required, additionalProperties, items, minItems, anyOf, allOf, $ref, format.
[[nodiscard]] bool is_valid(const JsonValue& value, const JsonValue& schema);

[[nodiscard]] bool is_of_format(const std::string& text, const std::string& format);

}  // namespace incipit::constrain
