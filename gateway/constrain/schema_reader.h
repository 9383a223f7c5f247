// From the keywords of a JSON Schema to the alternatives that it allows: references followed, anyOf
// spread out, allOf merged.
#pragma once

#include "gateway/constrain/shape.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace incipit::constrain {

// Bits of a set of types; a number with a fraction is a type of its own, so that sets intersect.
enum Type : unsigned {
  type_null = 1,
  type_boolean = 2,
  type_integer = 4,
  type_fraction = 8,
  type_string = 16,
  type_array = 32,
  type_object = 64,
  all_types = 127
};

// A reference that was followed on the way to a schema.
struct Reference {
  const JsonValue* target;
  const Reference* before;  // null: the first one
};

// A schema and how it was come by.
struct SchemaPlace {
  const JsonValue* schema;
  std::string path;
  const Reference* references;  // null: none
  int depth;
};

// Schemas that all hold for one value; none at all: any value.
using Conjunction = std::vector<SchemaPlace>;

// One way to satisfy a schema, in terms that can be written down in order.
struct Alternative {
  struct Property {
    std::string name;
    Conjunction schemas;
  };

  unsigned types = all_types;
  bool says_type = false;  // some `type` was there
  std::optional<std::vector<const JsonValue*>> values;
  std::vector<Property> properties;
  std::vector<std::string> required;
  bool is_closed = false;  // additionalProperties: false
  Conjunction additional;
  Conjunction items;
  bool says_items = false;  // items or minItems was there
  int min_items = 0;
  std::string format;
};

class SchemaReader {
 public:
  // `schema` and `limits` must outlive this.
  SchemaReader(const Shape::Parts& schema, const Limits& limits)
      : root_(schema.schema), root_path_(schema.text), dialect_(schema.dialect), limits_(limits) {}

  // The ways to satisfy all of `schemas`. Throws SchemaError, also when there is none.
  [[nodiscard]] std::vector<Alternative> read(const Conjunction& schemas);

  // Of the schemas read so far, each counted once.
  [[nodiscard]] int union_types() const { return static_cast<int>(unions_.size()); }

 private:
  using Alternatives = std::vector<Alternative>;

  Alternatives read_one(const SchemaPlace& place);
  Alternative read_keywords(const SchemaPlace& place);
  void read_keyword(const SchemaPlace& place, const JsonMember& member, Alternative& found);
  void read_values(const SchemaPlace& place, const JsonMember& member, Alternative& found);
  void read_properties(const SchemaPlace& place, const JsonValue& properties, Alternative& found);
  void read_required(const SchemaPlace& place, const JsonValue& names, Alternative& found);
  void read_additional(const SchemaPlace& place, const JsonValue& value, Alternative& found);
  void read_format(const SchemaPlace& place, const JsonValue& name, Alternative& found);
  void refuse_keyword(const SchemaPlace& place, const std::string& keyword) const;
  void count_steps(const SchemaPlace& place, std::size_t steps);
  [[nodiscard]] unsigned types_of(const SchemaPlace& place, const JsonValue& value);
  [[nodiscard]] SchemaPlace follow(const SchemaPlace& place, const JsonValue& reference);
  [[nodiscard]] Alternatives both(const Alternatives& left, const Alternatives& right,
                                  const std::string& keyword, const SchemaPlace& place);

  const JsonValue& root_;  // where references lead to
  const std::string& root_path_;
  Dialect dialect_;
  const Limits& limits_;
  std::deque<Reference> references_;  // stable addresses
  std::unordered_set<const JsonValue*> unions_;
  std::size_t steps_ = 0;
};

// The place of a part of the schema at `place`.
[[nodiscard]] SchemaPlace inside(const SchemaPlace& place, const std::string& step,
                                 const JsonValue& schema);

}  // namespace incipit::constrain
