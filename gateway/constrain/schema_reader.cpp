#include "gateway/constrain/schema_reader.h"

#include "gateway/constrain/formats.h"
#include "gateway/constrain/schema_merge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace incipit::constrain {
namespace {

// Schemas read, counted at each reading, and a good deal of what is copied to merge them.
constexpr std::size_t most_steps = 200'000;
constexpr std::size_t most_alternatives = 1'000;  // of one schema

constexpr std::array<std::string_view, 12> annotations = {
    "title",    "description", "default",  "examples",  "example", "$schema",
    "$comment", "deprecated",  "readOnly", "writeOnly", "$defs",   "definitions"};

// Of JSON Schema 2020-12 and its predecessors, apart from those that are read.
// clang-format off
constexpr std::array<std::string_view, 36> refused_keywords = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "pattern", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
    "prefixItems", "additionalItems", "unevaluatedItems", "minProperties", "maxProperties",
    "patternProperties", "propertyNames", "unevaluatedProperties", "dependentRequired",
    "dependentSchemas", "dependencies", "oneOf", "not", "if", "then", "else", "$dynamicRef",
    "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$id", "id"};
// clang-format on

constexpr std::array<std::pair<std::string_view, unsigned>, 7> type_names = {{
    {"null", type_null},
    {"boolean", type_boolean},
    {"integer", type_integer},
    {"number", type_integer | type_fraction},
    {"string", type_string},
    {"array", type_array},
    {"object", type_object},
}};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_container(const JsonValue& value) {
  return value.is_array() || value.is_object();
}

std::size_t weight(const Alternative& way) {
  return way.properties.size() + way.required.size() + (way.values ? way.values->size() : 0);
}

// One step of a JSON pointer (RFC 6901) in a URI fragment; nothing when it is ill-formed.
std::optional<std::string> unescape(std::string_view step) {
  std::string name;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '%') {
      unsigned char byte = 0;
      if (i + 2 >= step.size()) return std::nullopt;
      const char* last = step.data() + i + 3;
      if (std::from_chars(step.data() + i + 1, last, byte, 16).ptr != last) return std::nullopt;
      name += static_cast<char>(byte);
      i += 2;
    } else {
      name += step[i];
    }
  }
  std::string unescaped;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_escape = name[i] == '~' && i + 1 < name.size();
    if (is_escape && (name[i + 1] == '0' || name[i + 1] == '1')) {
      unescaped += name[++i] == '0' ? '~' : '/';
    } else {
      unescaped += name[i];
    }
  }
  return unescaped;
}

const JsonValue* step_into(const JsonValue& value, const std::string& name) {
  if (!value.is_array()) return value.find(name);
  std::size_t index = 0;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, index);
  if (error != std::errc{} || end != last || index >= value.as_array().size()) return nullptr;
  return &value.as_array()[index];
}

}  // namespace

SchemaPlace inside(const SchemaPlace& place, const std::string& step, const JsonValue& schema) {
  return {&schema, place.path.empty() ? step : place.path + "." + step, place.references,
          place.depth + 1};
}

std::vector<Alternative> SchemaReader::read(const Conjunction& schemas) {
  if (schemas.empty()) return {Alternative{}};
  Alternatives found = read_one(schemas[0]);
  for (std::size_t i = 1; i < schemas.size(); ++i) {
    found = both(found, read_one(schemas[i]), "allOf", schemas[i]);
  }
  return found;
}

SchemaReader::Alternatives SchemaReader::read_one(const SchemaPlace& place) {
  if (place.depth > limits_.nesting) {
    throw SchemaError("", place.path,
                      "The schema is nested more than " + std::to_string(limits_.nesting)
                          + " levels deep, references included.");
  }
  count_steps(place, 4);
  const JsonValue& schema = *place.schema;
  if (schema.kind() == JsonValue::Kind::boolean && schema.as_boolean()
      && dialect_ == Dialect::lenient) {
    return {Alternative{}};
  }
  if (!schema.is_object()) {
    throw SchemaError("", place.path,
                      schema.kind() == JsonValue::Kind::boolean
                          ? "Schemas that are `true` or `false` are not supported here."
                          : "A schema must be an object.");
  }
  Alternatives found = {read_keywords(place)};
  if (const JsonValue* reference = schema.find("$ref")) {
    found = both(found, read_one(follow(place, *reference)), "$ref", place);
  }
  for (const std::string keyword : {"allOf", "anyOf"}) {
    const JsonValue* branches = schema.find(keyword);
    if (!branches) continue;
    if (!branches->is_array() || branches->as_array().empty()) {
      throw SchemaError(keyword, place.path, "`" + keyword + "` must be a list of schemas.");
    }
    Alternatives any;
    for (std::size_t i = 0; i < branches->as_array().size(); ++i) {
      const SchemaPlace branch =
          inside(place, keyword + "." + std::to_string(i), branches->as_array()[i]);
      Alternatives ways = read_one(branch);
      if (keyword == "allOf") {
        found = both(found, ways, keyword, place);
      } else {
        std::ranges::move(ways, std::back_inserter(any));
      }
    }
    if (keyword == "anyOf") {
      unions_.insert(&schema);
      found = both(found, any, keyword, place);
    }
  }
  return found;
}

void SchemaReader::count_steps(const SchemaPlace& place, std::size_t steps) {
  steps_ += steps;
  if (steps_ > most_steps) {
    throw SchemaError("", place.path, "The schema is too large once its references are followed.");
  }
}

SchemaReader::Alternatives SchemaReader::both(const Alternatives& left, const Alternatives& right,
                                              const std::string& keyword,
                                              const SchemaPlace& place) {
  if (left.size() * right.size() > most_alternatives) {
    throw SchemaError(keyword, place.path,
                      "The schema allows more than " + std::to_string(most_alternatives)
                          + " combinations of alternatives.");
  }
  Alternatives merged;
  for (const Alternative& one : left) {
    for (const Alternative& other : right) {
      count_steps(place, weight(one) + weight(other));
      if (auto way = merge(one, other)) merged.push_back(std::move(*way));
    }
  }
  if (merged.empty()) {
    throw SchemaError(keyword, place.path,
                      "`" + keyword + "` leaves no value: types, values or formats exclude each "
                                      "other.");
  }
  return merged;
}

Alternative SchemaReader::read_keywords(const SchemaPlace& place) {
  Alternative found;
  for (const JsonMember& member : place.schema->as_object())
    read_keyword(place, member, found);
  // A tool of no parameters says so by an empty list, and means no object whatever.
  const JsonValue* properties = place.schema->find("properties");
  if (dialect_ == Dialect::lenient && place.depth == 0 && properties != nullptr
      && found.properties.empty() && found.additional.empty()
      && place.schema->find("additionalProperties") == nullptr) {
    found.is_closed = true;
  }
  if (found.values && found.values->empty()) {
    throw SchemaError("const", place.path, "`const` is none of the values of `enum`.");
  }
  return found;
}

void SchemaReader::read_keyword(const SchemaPlace& place, const JsonMember& member,
                                Alternative& found) {
  const std::string& name = member.name;
  const JsonValue& value = member.value;
  if (name == "type") {
    found.types = types_of(place, value);
    found.says_type = true;
  } else if (name == "enum" || name == "const") {
    read_values(place, member, found);
  } else if (name == "properties") {
    read_properties(place, value, found);
  } else if (name == "required") {
    read_required(place, value, found);
  } else if (name == "additionalProperties") {
    read_additional(place, value, found);
  } else if (name == "items") {
    if (!value.is_object() && value.kind() != JsonValue::Kind::boolean) {
      throw SchemaError("items", place.path, "`items` must be a schema.");
    }
    found.items = {inside(place, "items", value)};
    found.says_items = true;
  } else if (name == "minItems") {
    const auto least = value.as_integer();
    if (!least || *least < 0 || *least > 1) {
      throw SchemaError("minItems", place.path, "`minItems` can only be 0 or 1.");
    }
    found.min_items = static_cast<int>(*least);
    found.says_items = true;
  } else if (name == "format") {
    read_format(place, value, found);
  } else if (name != "$ref" && name != "anyOf" && name != "allOf" && !contains(annotations, name)) {
    refuse_keyword(place, name);
  }
}

void SchemaReader::refuse_keyword(const SchemaPlace& place, const std::string& keyword) const {
  if (keyword == "$id" && place.depth == 0) return;  // names the document that all of this is
  const bool is_known = contains(refused_keywords, keyword);
  if (!is_known && dialect_ == Dialect::lenient) return;
  const std::string instead = keyword == "oneOf" ? " Use `anyOf`." : "";
  throw SchemaError(keyword, place.path,
                    (is_known ? "The keyword `" : "The unknown keyword `") + keyword
                        + "` is not supported." + instead);
}

unsigned SchemaReader::types_of(const SchemaPlace& place, const JsonValue& value) {
  unsigned types = 0;
  const auto add = [&](const JsonValue& name) {
    for (const auto& [known, bits] : type_names) {
      if (name.is_string() && name.as_string() == known) {
        types |= bits;
        return;
      }
    }
    throw SchemaError("type", place.path,
                      name.is_string() ? "There is no type `" + name.as_string() + "`."
                                       : "`type` must be the name of a type or a list of names.");
  };
  if (!value.is_array()) {
    add(value);
    return types;
  }
  for (const JsonValue& name : value.as_array())
    add(name);
  if (types == 0) throw SchemaError("type", place.path, "`type` lists no type.");
  if (value.as_array().size() > 1) unions_.insert(place.schema);
  return types;
}

void SchemaReader::read_values(const SchemaPlace& place, const JsonMember& member,
                               Alternative& found) {
  std::vector<const JsonValue*> values;
  if (member.name == "const") {
    values.push_back(&member.value);
  } else {
    if (!member.value.is_array() || member.value.as_array().empty()) {
      throw SchemaError("enum", place.path, "`enum` must be a list of values.");
    }
    for (const JsonValue& value : member.value.as_array()) {
      if (dialect_ == Dialect::strict && is_container(value)) {
        throw SchemaError("enum", place.path,
                          "`enum` can only hold strings, numbers, booleans and null.");
      }
      values.push_back(&value);
    }
  }
  Alternative alone;
  alone.values = std::move(values);
  Alternative before;
  before.values = std::move(found.values);
  auto merged = merge(before, alone);
  found.values = merged ? std::move(merged->values) : std::vector<const JsonValue*>{};
}

void SchemaReader::read_properties(const SchemaPlace& place, const JsonValue& properties,
                                   Alternative& found) {
  if (!properties.is_object()) {
    throw SchemaError("properties", place.path, "`properties` must be an object of schemas.");
  }
  for (const JsonMember& property : properties.as_object()) {
    found.properties.push_back(
        {property.name, {inside(place, "properties." + property.name, property.value)}});
  }
}

void SchemaReader::read_required(const SchemaPlace& place, const JsonValue& names,
                                 Alternative& found) {
  if (!names.is_array()) {
    throw SchemaError("required", place.path, "`required` must be a list of property names.");
  }
  for (const JsonValue& name : names.as_array()) {
    if (!name.is_string()) {
      throw SchemaError("required", place.path, "`required` must be a list of property names.");
    }
    found.required.push_back(name.as_string());
  }
}

void SchemaReader::read_additional(const SchemaPlace& place, const JsonValue& value,
                                   Alternative& found) {
  if (value.kind() == JsonValue::Kind::boolean) {
    found.is_closed = !value.as_boolean();
    return;
  }
  if (dialect_ == Dialect::lenient && value.is_object()) {
    found.additional = {inside(place, "additionalProperties", value)};
    return;
  }
  throw SchemaError("additionalProperties", place.path,
                    dialect_ == Dialect::strict ? "`additionalProperties` must be false."
                                                : "`additionalProperties` must be a schema.");
}

void SchemaReader::read_format(const SchemaPlace& place, const JsonValue& name,
                               Alternative& found) {
  if (!name.is_string()) throw SchemaError("format", place.path, "`format` must be a string.");
  if (is_known_format(name.as_string())) {
    found.format = name.as_string();
  } else if (dialect_ == Dialect::strict) {
    throw SchemaError("format", place.path,
                      "The format `" + name.as_string()
                          + "` is not supported; these are: " + known_formats() + ".");
  }
}

SchemaPlace SchemaReader::follow(const SchemaPlace& place, const JsonValue& reference) {
  const auto fail = [&](const std::string& message) {
    throw SchemaError("$ref", place.path, message);
  };
  if (!reference.is_string()) fail("`$ref` must be a string.");
  const std::string& text = reference.as_string();
  if (!text.starts_with('#')) fail("`$ref` can only refer to this schema, as in `#/$defs/NAME`.");
  const JsonValue* target = &root_;
  std::string path = root_path_;
  std::string_view rest = std::string_view(text).substr(1);
  if (!rest.empty() && rest[0] != '/') fail("`$ref` must be like `#/$defs/NAME`.");
  while (target && !rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view step = rest.substr(0, rest.find('/'));
    rest.remove_prefix(step.size());
    const std::optional<std::string> name = unescape(step);
    target = name ? step_into(*target, *name) : nullptr;
    if (target) path += (path.empty() ? "" : ".") + *name;
  }
  if (!target) fail("`$ref` refers to `" + text + "`, which does not exist.");
  if (target == &root_) fail("`$ref` refers to `" + text + "`: recursion is not supported.");
  for (const Reference* before = place.references; before; before = before->before) {
    if (before->target == target) {
      fail("`$ref` refers to `" + text + "`, which contains it: recursion is not supported.");
    }
  }
  references_.push_back({target, place.references});
  return {target, std::move(path), &references_.back(), place.depth + 1};
}

}  // namespace incipit::constrain
