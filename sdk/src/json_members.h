// Takes JSON text apart one level at a time, without copying or parsing it. Private to the SDK.
//
// Made for text that is known to be JSON. Of other text the pieces mean nothing, but they lie
// within it.
#pragma once

#include <cstddef>
#include <string_view>

namespace incipit {

// Behind the string that starts at `at` with its quote.
[[nodiscard]] std::size_t json_string_end(std::string_view text, std::size_t at);

// Behind the value that starts at `at`.
[[nodiscard]] std::size_t json_value_end(std::string_view text, std::size_t at);

// The next byte at or after `at` that is no white space.
[[nodiscard]] std::size_t json_token(std::string_view text, std::size_t at);

// Calls `take(value)` for each element of the array that `text` is.
template <class Take>
void each_json_element(std::string_view text, Take&& take) {
  std::size_t at = json_token(text, 1);
  while (at < text.size() && text[at] != ']') {
    const std::size_t end = json_value_end(text, at);
    take(text.substr(at, end - at));
    at = json_token(text, end);
    if (at < text.size() && text[at] == ',') at = json_token(text, at + 1);
  }
}

// Calls `take(name, value)` for each member of the object that `text` is; the name is the literal.
template <class Take>
void each_json_member(std::string_view text, Take&& take) {
  std::size_t at = json_token(text, 1);
  while (at < text.size() && text[at] == '"') {
    const std::size_t name_end = json_string_end(text, at);
    const std::string_view name = text.substr(at + 1, name_end - at - 2);
    const std::size_t value = json_token(text, json_token(text, name_end) + 1);
    const std::size_t end = json_value_end(text, value);
    take(name, text.substr(value, end - value));
    at = json_token(text, end);
    if (at < text.size() && text[at] == ',') at = json_token(text, at + 1);
  }
}

}  // namespace incipit
