// A value of a document on its way to a typed one: it knows where it stands, so that a wrong shape
// is refused with path and offset. Private to the SDK.
#pragma once

#include "incipit/json.h"
#include "json_slices.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// Refers to the text of the document. Every getter throws ParseError for a value of another kind.
class JsonPlace {
 public:
  // The root of a document that is known to be valid.
  explicit JsonPlace(std::string_view document) : document_(document), text_(document) {}

  // The root of any text. Throws ParseError when that is no JSON.
  [[nodiscard]] static JsonPlace check(std::string_view text);

  // `text` must be a part of the same document.
  [[nodiscard]] JsonPlace part(std::string_view text) const { return {document_, text}; }

  // Exactly as written.
  [[nodiscard]] std::string_view text() const { return text_; }

  [[nodiscard]] JsonText json() const { return JsonText::trusted(std::string(text_)); }

  [[nodiscard]] bool is_null() const { return text_.starts_with('n'); }

  [[nodiscard]] bool is_string() const { return text_.starts_with('"'); }

  [[nodiscard]] bool is_array() const { return text_.starts_with('['); }

  [[nodiscard]] bool is_object() const { return text_.starts_with('{'); }

  [[nodiscard]] std::string string() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::vector<JsonPlace> items() const;
  [[nodiscard]] std::vector<std::string> strings() const;

  // Throws ParseError about this value; `member` is one it should have.
  [[noreturn]] void fail(const std::string& problem, std::string_view member = {}) const;

 private:
  JsonPlace(std::string_view document, std::string_view text) : document_(document), text_(text) {}

  [[noreturn]] void expected(std::string_view what) const;

  std::string_view document_;
  std::string_view text_;
};

class JsonObject {
 public:
  explicit JsonObject(const JsonPlace& place);

  // A member of that name, be it null.
  [[nodiscard]] bool has(std::string_view name) const;

  // The member, unless it is absent or null. Of several with one name: the last.
  [[nodiscard]] std::optional<JsonPlace> find(std::string_view name) const;
  // The same; throws ParseError when there is none.
  [[nodiscard]] JsonPlace at(std::string_view name) const;

  // Of a member that may be absent or null, for which they give nothing, or an empty string.
  [[nodiscard]] std::optional<std::string> string(std::string_view name) const;
  [[nodiscard]] std::string string_or_empty(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view name) const;
  [[nodiscard]] JsonText json(std::string_view name) const;

  [[nodiscard]] const std::vector<JsonMemberSlice>& members() const { return members_; }

  [[nodiscard]] const JsonPlace& place() const { return place_; }

 private:
  JsonPlace place_;
  std::vector<JsonMemberSlice> members_;
};

// The path (`messages.3.content.0.text`) of the value that starts at `offset` of a valid document.
[[nodiscard]] std::string json_path(std::string_view document, std::size_t offset);

}  // namespace incipit
