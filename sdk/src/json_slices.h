// Values of a valid JSON document as parts of its text: exact bytes, and nothing built. On text
// that is not valid they find something or nothing, within its bounds. Private to the SDK.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

struct JsonMemberSlice {
  std::string_view key;  // as written, with its quotes
  std::string_view value;

  [[nodiscard]] bool is_named(std::string_view name) const;

  // Key, colon and value.
  [[nodiscard]] std::string_view text() const {
    return {key.data(), static_cast<std::size_t>(value.data() + value.size() - key.data())};
  }
};

// The next byte at or after `at` that is no white space.
[[nodiscard]] std::size_t json_token(std::string_view text, std::size_t at);

// Behind the string whose quote is at `at`; behind the value that starts there.
[[nodiscard]] std::size_t json_string_end(std::string_view text, std::size_t at);
[[nodiscard]] std::size_t json_value_end(std::string_view text, std::size_t at);

// `object` and `array` start with their bracket.
[[nodiscard]] std::vector<JsonMemberSlice> json_members(std::string_view object);
[[nodiscard]] std::vector<std::string_view> json_items(std::string_view array);

// What stands between the brackets of an array or object, without white space around it.
[[nodiscard]] std::string_view json_inside(std::string_view container);

// What a string literal says; `literal` includes its quotes.
[[nodiscard]] std::string json_unescaped(std::string_view literal);

// `object` without the members of that name and their commas; every other member keeps its bytes.
[[nodiscard]] std::string json_without(std::string_view object, std::string_view name);

}  // namespace incipit
