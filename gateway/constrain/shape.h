// What a model is to write: literals and values of JSON Schemas, put together.
#pragma once

#include "incipit/json.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace incipit::constrain {

// A schema outside of what can be guaranteed, or a broken one.
struct SchemaError : std::runtime_error {
  SchemaError(std::string key, std::string json_path, const std::string& message)
      : std::runtime_error(message), keyword(std::move(key)), path(std::move(json_path)) {}

  std::string keyword;  // "minimum"; empty when it is no single keyword's fault
  std::string path;     // of the schema with the keyword: `tools.0.custom.input_schema.items`;
                        // empty for all schemas of a shape together
};

// A shape that makes no sense, or that the vocabulary cannot write.
struct ShapeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What is asked of a schema (anthropic-wire section 7.3). In both dialects whatever is written is
// valid for the schema. Known in both: type (also a list), properties, required,
// additionalProperties, items, minItems 0 or 1, enum, const, anyOf, allOf as far as its branches
// can be merged, $ref to #/… without recursion, format; title, description, default, examples,
// $schema, $comment and the like say nothing about the value and are passed over.
enum class Dialect : std::uint8_t {
  // Output formats and strict tools. Every object says `additionalProperties: false`, every schema
  // has a type (or enum, const, anyOf, allOf, $ref); an unknown keyword or format is an error.
  strict,
  // Other tools. Objects may be open: no more than the listed properties are written, or, where
  // none are listed, any (`additionalProperties` may then be a schema), though not where the
  // outermost schema lists none on purpose (`"properties": {}`); a schema without a type
  // allows any value, of at most `most_free_nesting` arrays and objects inside one another.
  // Unknown keywords and formats are ignored; known ones that cannot be honoured are errors.
  lenient
};

inline constexpr int most_free_nesting = 4;

// The values of a schema are written in one spelling: compact, with at most one space after `:` and
// `,`; properties in the order of the schema, optional ones perhaps left out; strings in
// well-formed UTF-8 with any escapes, those of enum, const and property names as a JsonWriter
// spells them; integers of at most 15 digits, other numbers with at most 15 before and 15 behind
// the point and an exponent of at most two, no "-0". Formats are narrower than their RFCs allow: no
// leap seconds, hosts of at most 63 and e-mail addresses of at most 64 bytes, no IPv4 inside IPv6.
class Shape {
 public:
  [[nodiscard]] static Shape literal(std::string text);
  // A value of `schema`. `path` is where the schema stands in the request, for error messages.
  [[nodiscard]] static Shape schema(JsonValue schema, Dialect dialect, std::string path = {});
  [[nodiscard]] static Shape sequence(std::vector<Shape> parts);
  [[nodiscard]] static Shape any_of(std::vector<Shape> alternatives);
  // `item` at least `min` and at most `max` times (nothing: no limit), with `separator` between.
  [[nodiscard]] static Shape repeated(Shape item, std::string separator, int min,
                                      std::optional<int> max);
  // Any text, also none and no JSON; each time that `trigger` has been written it goes on with
  // `then` and is free again. The text can end where it is free, once there have been `min`;
  // behind the last of `max` it must. A trigger is found wherever it stands.
  //
  //   free_until("<tool_call>", then, 0, 1)      at most one call
  //   free_until("</think>", schema, 1, 1)       a schema's value after any thoughts
  [[nodiscard]] static Shape free_until(std::string trigger, Shape then, int min,
                                        std::optional<int> max);

  // Equal shapes have equal keys, different ones different keys: for caches of compiled shapes.
  [[nodiscard]] std::string key() const;

  enum class Kind : std::uint8_t { literal, schema, sequence, any_of, repeated, free_until };

  struct Parts {
    Kind kind = Kind::literal;
    std::string text;  // literal, separator, trigger; path of a schema
    JsonValue schema;
    Dialect dialect = Dialect::strict;
    std::vector<Shape> shapes;
    int min = 0;
    std::optional<int> max;
  };

  [[nodiscard]] const Parts& parts() const { return *parts_; }

 private:
  explicit Shape(Parts parts);

  void append_key(std::string& key) const;

  std::shared_ptr<const Parts> parts_;
};

// Beyond these a SchemaError says so. Time and memory of compiling are linear in `states`.
struct Limits {
  int nesting = 64;              // schemas inside one another, references included
  std::size_t states = 100'000;  // of the automaton; a string takes about 20
  int optional_properties = 24;  // of all strict schemas of a shape together …
  int union_types = 16;          // … and schemas among them with anyOf or several types
};

}  // namespace incipit::constrain
