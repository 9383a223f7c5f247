// JSON in and out without losing what a prompt cache sees: key order, number spelling, exact bytes.
#pragma once

#include "incipit/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace incipit {

// Appends compact JSON to a string: the only place in the project that decides bytes. Keys come out
// in the order of the calls; commas are put in by the writer. Balanced calls are the caller's duty.
//
//   JsonWriter(out).begin_object().key("type").string("text").key("n").integer(3).end_object();
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  // UTF-8 goes out as it is; only what JSON demands is escaped (`"`, `\`, control characters). Each
  // ill-formed UTF-8 sequence becomes U+FFFD, so the output is always valid.
  JsonWriter& string(std::string_view text);
  JsonWriter& integer(std::int64_t number);
  // The shortest digits that read back as the same double. JSON has no NaN or infinity: null.
  JsonWriter& number(double number);
  JsonWriter& boolean(bool truth);
  JsonWriter& null();
  // Text that is JSON already, put in unchanged.
  JsonWriter& raw(std::string_view json);

 private:
  void separate();

  std::string& out_;
  bool comma_ = false;  // a value was written at this level: the next one needs a comma
};

// What `JsonValue::parse` takes from a stranger.
struct JsonLimits {
  int depth = 200;                 // arrays and objects inside one another
  std::size_t values = 8'000'000;  // bounds memory: a value of two bytes costs about 50
  bool unique_keys = false;        // a key that is there twice is an error
};

struct JsonMember;

// A parsed document. Object members keep their order and numbers their spelling, so that
// `minified()` of a tool's schema is the same for the same bytes and differs when keys are swapped.
// Of duplicate keys the last value wins, in the place of the first (as a Python dict does), unless
// `JsonLimits::unique_keys` forbids them.
class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  JsonValue() = default;  // null

  // Throws ParseError. `text` needs no padding and may hold anything.
  [[nodiscard]] static JsonValue parse(std::string_view text, const JsonLimits& limits = {});

  [[nodiscard]] static JsonValue boolean(bool truth);
  // `text` must be a JSON number; it is kept as spelled.
  [[nodiscard]] static JsonValue number(std::string text);
  [[nodiscard]] static JsonValue string(std::string text);
  [[nodiscard]] static JsonValue array(Array items);
  [[nodiscard]] static JsonValue object(Object members);

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(value_.index()); }

  [[nodiscard]] bool is_null() const { return kind() == Kind::null; }

  [[nodiscard]] bool is_boolean() const { return kind() == Kind::boolean; }

  [[nodiscard]] bool is_number() const { return kind() == Kind::number; }

  [[nodiscard]] bool is_string() const { return kind() == Kind::string; }

  [[nodiscard]] bool is_array() const { return kind() == Kind::array; }

  [[nodiscard]] bool is_object() const { return kind() == Kind::object; }

  // The value, when it is of that kind; std::bad_variant_access otherwise.
  [[nodiscard]] bool as_boolean() const { return std::get<bool>(value_); }

  [[nodiscard]] const std::string& as_string() const { return std::get<String>(value_).text; }

  [[nodiscard]] const std::string& number_text() const { return std::get<Number>(value_).text; }

  [[nodiscard]] const Array& as_array() const { return std::get<Array>(value_); }

  [[nodiscard]] const Object& as_object() const { return std::get<Object>(value_); }

  // A number without a fraction (`3`, `3.0`, `3e2`) that fits; nothing for any other value.
  [[nodiscard]] std::optional<std::int64_t> as_integer() const;
  // A number as the nearest double, infinite when too large; nothing for any other value.
  [[nodiscard]] std::optional<double> as_double() const;

  // The member of that name, or null when there is none or this is no object. Linear.
  [[nodiscard]] const JsonValue* find(std::string_view name) const;

  void write(JsonWriter& writer) const;
  // Without white space, string escapes canonical, order and numbers as parsed.
  [[nodiscard]] std::string minified() const;

  friend bool operator==(const JsonValue&, const JsonValue&);

 private:
  struct Number {
    std::string text;
    friend bool operator==(const Number&, const Number&) = default;
  };

  struct String {
    std::string text;
    friend bool operator==(const String&, const String&) = default;
  };

  std::variant<std::monostate, bool, Number, String, Array, Object> value_;  // order: Kind
};

struct JsonMember {
  std::string name;
  JsonValue value;
  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

// JSON that is somebody else's: one document, kept and sent byte for byte (C-7). Compares by bytes.
class JsonText {
 public:
  JsonText() = default;  // empty: no document at all, not even `null`

  // Throws ParseError, with the offset, unless `text` is one strict JSON document in UTF-8. White
  // space around the document is dropped, that inside it kept.
  explicit JsonText(std::string text);

  explicit JsonText(const char* text) : JsonText(std::string(text)) {}

  JsonText(const JsonValue& value) : text_(value.minified()) {}  // NOLINT: a document as well

  [[nodiscard]] bool empty() const { return text_.empty(); }

  [[nodiscard]] const std::string& text() const { return text_; }

  [[nodiscard]] bool is_object() const { return text_.starts_with('{'); }

  // Parses anew on each call; null when empty.
  [[nodiscard]] JsonValue value() const;

  // For text that came out of a parser or a JsonWriter: not looked at again.
  [[nodiscard]] static JsonText trusted(std::string text);

  friend bool operator==(const JsonText&, const JsonText&) = default;

 private:
  std::string text_;
};

// Where the value at `path` (`messages.3.content.0.text`, as in `ParseError::path`) starts in
// `document`, in bytes. Of a path that leads nowhere: the last value on the way.
[[nodiscard]] std::size_t json_offset(std::string_view document, std::string_view path);

// What can be said of a document of which only the beginning has arrived (streamed tool input):
// open strings and brackets are closed; an unfinished number, literal or escape, and a key without
// a value, are left out. Null for nothing or white space. Throws ParseError where no continuation
// could make it JSON. Source: anthropic-wire section 19.4.
[[nodiscard]] JsonValue parse_partial_json(std::string_view beginning);

}  // namespace incipit
