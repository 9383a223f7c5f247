// Typed reading of JSON objects, with the provider's words and field path for whatever is wrong.
// Source: anthropic-wire section 8.
#pragma once

#include "incipit/json.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// A whole body. Throws ApiError (400) for what is no JSON, or names a key twice.
[[nodiscard]] JsonValue read_json(std::string_view body);

// One JSON object being read. Each name asked for counts as known; `reject_others` then refuses the
// rest. All functions throw ApiError (400).
class Fields {
 public:
  // `path` leads to the object and is empty for the body itself. Keeps a reference to `object`.
  Fields(const JsonValue& object, std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }

  // The path of a member.
  [[nodiscard]] std::string at(std::string_view name) const;

  // Null when absent. `optional` yields a JSON null as it is, `unless_null` counts it as absent.
  [[nodiscard]] const JsonValue* optional(std::string_view name);
  [[nodiscard]] const JsonValue* unless_null(std::string_view name);
  // "NAME: Field required" when absent.
  [[nodiscard]] const JsonValue& required(std::string_view name);
  // The member "type", or another that selects: one of `choices`, else
  // "PATH.NAME: Input should be 'a' or 'b'". Returns its place in `choices`.
  [[nodiscard]] std::size_t choice(std::string_view name,
                                   std::initializer_list<std::string_view> choices);

  // "NAME: Extra inputs are not permitted" for the first member nobody asked for.
  void reject_others() const;

 private:
  const JsonValue& object_;
  std::string path_;
  std::vector<std::string_view> known_;
};

// A value of that type, or "PATH: Input should be a valid …".
[[nodiscard]] const std::string& read_string(const JsonValue& value, const std::string& path);
[[nodiscard]] bool read_boolean(const JsonValue& value, const std::string& path);
[[nodiscard]] std::int64_t read_integer(const JsonValue& value, const std::string& path);
[[nodiscard]] const JsonValue::Array& read_list(const JsonValue& value, const std::string& path);
[[nodiscard]] const JsonValue& read_object(const JsonValue& value, const std::string& path);
// Also within 0..1.
[[nodiscard]] double read_fraction(const JsonValue& value, const std::string& path);
// Also made of 1..`limit` letters, digits, `_` and `-`; no limit when 0.
[[nodiscard]] const std::string& read_identifier(const JsonValue& value, const std::string& path,
                                                 std::size_t limit);

// "Input tag 'x' found using 'type' does not match any of the expected tags: 'a', 'b'".
[[noreturn]] void reject_tag(const std::string& path, std::string_view found,
                             const std::vector<std::string_view>& expected);

// "PATH.INDEX"
[[nodiscard]] std::string element(const std::string& path, std::size_t index);

// A caller's text as an error message may echo it: at most some 200 bytes, cut between characters.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace incipit::gateway
