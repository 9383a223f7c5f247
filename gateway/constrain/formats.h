// How strings are spelled, plain ones and those of the formats that schemas may name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace incipit::constrain {

struct StringFormat {
  std::string pattern;         // what stands between the quotes of the JSON string
  std::size_t most_bytes = 0;  // 0: no limit
};

[[nodiscard]] bool is_known_format(std::string_view name);
// `name` is known, or empty: any string.
[[nodiscard]] StringFormat string_format(std::string_view name);
// For error messages.
[[nodiscard]] std::string known_formats();

}  // namespace incipit::constrain
