#include "gateway/constrain/schema_writer.h"

#include "gateway/constrain/pattern.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace incipit::constrain {
namespace {

// Digits that every reader keeps exactly; no "-0", which some read as another number than 0.
constexpr std::string_view integer_pattern = "0|-?[1-9]\\d{0,14}";
constexpr std::string_view number_pattern =
    "(0|-?[1-9]\\d{0,14})(\\.\\d{1,15})?([eE][+-]?\\d{1,2})?|-0\\.\\d{1,15}([eE][+-]?\\d{1,2})?";

unsigned type_of(const JsonValue& value) {
  switch (value.kind()) {
    case JsonValue::Kind::null:
      return type_null;
    case JsonValue::Kind::boolean:
      return type_boolean;
    case JsonValue::Kind::string:
      return type_string;
    case JsonValue::Kind::array:
      return type_array;
    case JsonValue::Kind::object:
      return type_object;
    case JsonValue::Kind::number:
      break;
  }
  return value.as_integer() ? type_integer : type_fraction;
}

std::string json_string(const std::string& text) {
  std::string spelled;
  JsonWriter(spelled).string(text);
  return spelled;
}

bool fits(const Region& region, std::string_view inside_of_quotes) {
  Region::Place place = 0;
  for (const char c : inside_of_quotes) {
    place = region.table()[place][static_cast<unsigned char>(c)];
    if (place == Region::nowhere || place == Region::exit) return false;
  }
  return region.table()[place]['"'] == Region::exit;
}

[[noreturn]] void fail(const std::string& keyword, const Conjunction& schemas,
                       const std::string& message) {
  throw SchemaError(keyword, schemas.empty() ? "" : schemas.front().path, message);
}

}  // namespace

SchemaWriter::SchemaWriter(Nfa& nfa, const Regions& regions, const PutRegion& put_region,
                           const Shape::Parts& schema, const Limits& limits)
    : nfa_(nfa),
      regions_(regions),
      put_region_(put_region),
      schema_(schema),
      reader_(schema, limits) {}

Nfa::Node SchemaWriter::write(Node from) {
  return write_value(from, {{&schema_.schema, schema_.text, nullptr, 0}}, 0);
}

Nfa::Node SchemaWriter::write_value(Node from, const Conjunction& schemas, int freedom) {
  const std::vector<Alternative> ways = reader_.read(schemas);
  const Node end = nfa_.add();
  bool wrote = false;
  for (const Alternative& way : ways) {
    wrote = write_alternative(from, way, schemas, freedom, end) || wrote;
  }
  if (!wrote) {
    const std::string keyword = schemas.front().schema->find("const") ? "const" : "enum";
    throw SchemaError(keyword, schemas.front().path,
                      "None of the listed values has the type and the format asked for.");
  }
  return end;
}

bool SchemaWriter::write_alternative(Node from, const Alternative& way, const Conjunction& schemas,
                                     int freedom, Node end) {
  const unsigned types = types_to_write(way, schemas, freedom);
  if (way.values) return write_listed(from, way, types, end);
  const auto join = [&](Node last) { nfa_.skip(last, end); };
  if (types & type_null) join(nfa_.literal(from, "null"));
  if (types & type_boolean) {
    join(nfa_.literal(from, "true"));
    join(nfa_.literal(from, "false"));
  }
  if (types & type_fraction) {
    join(write_number(from, false));
  } else if (types & type_integer) {
    join(write_number(from, true));
  }
  if (types & type_string) join(write_string(from, way.format));
  if (types & type_array) join(write_array(from, way, freedom));
  if (types & type_object) join(write_object(from, way, schemas, freedom));
  return true;
}

// Also decides for a schema that leaves it open.
unsigned SchemaWriter::types_to_write(const Alternative& way, const Conjunction& schemas,
                                      int freedom) const {
  if (schemas.empty()) {
    const bool is_deep = freedom >= most_free_nesting;
    return is_deep ? all_types & ~(type_array | type_object) : all_types;
  }
  if (way.says_type || way.values) return way.types;
  if (schema_.dialect == Dialect::strict) {
    fail("type", schemas, "The schema needs a `type` (or `enum`, `const`, `anyOf`, `$ref`).");
  }
  unsigned types = 0;
  if (!way.properties.empty() || !way.required.empty() || way.is_closed
      || !way.additional.empty()) {
    types |= type_object;
  }
  if (way.says_items) types |= type_array;
  if (!way.format.empty()) types |= type_string;
  if (types != 0) return types;
  return freedom >= most_free_nesting ? all_types & ~(type_array | type_object) : all_types;
}

bool SchemaWriter::write_listed(Node from, const Alternative& way, unsigned types, Node end) {
  bool wrote = false;
  for (const JsonValue* value : *way.values) {
    if (!(type_of(*value) & types)) continue;
    // Whether a container fits the keywords for its parts is not looked into: it must be alone.
    if (value->is_object()
        && (!way.properties.empty() || !way.required.empty() || way.is_closed
            || !way.additional.empty())) {
      continue;
    }
    if (value->is_array() && way.says_items) continue;
    if (value->is_string() && !way.format.empty()) {
      const std::string spelled = json_string(value->as_string());
      const auto region = regions_.string(way.format);
      if (!fits(*region, std::string_view(spelled).substr(1, spelled.size() - 2))) continue;
    }
    nfa_.skip(write_json(from, *value), end);
    wrote = true;
  }
  return wrote;
}

Nfa::Node SchemaWriter::write_json(Node from, const JsonValue& value) {
  if (value.is_array()) {
    Node node = nfa_.literal(from, "[");
    bool is_first = true;
    for (const JsonValue& item : value.as_array()) {
      if (!is_first) node = after_separator(node, ',');
      is_first = false;
      node = write_json(node, item);
    }
    return nfa_.literal(node, "]");
  }
  if (value.is_object()) {
    Node node = nfa_.literal(from, "{");
    bool is_first = true;
    for (const JsonMember& member : value.as_object()) {
      if (!is_first) node = after_separator(node, ',');
      is_first = false;
      node = after_separator(nfa_.literal(node, json_string(member.name)), ':');
      node = write_json(node, member.value);
    }
    return nfa_.literal(node, "}");
  }
  return nfa_.literal(from, value.minified());
}

Nfa::Node SchemaWriter::write_number(Node from, bool is_integer) {
  const Node start = nfa_.add();
  nfa_.skip(from, start);
  return add_pattern(nfa_, start, is_integer ? integer_pattern : number_pattern);
}

Nfa::Node SchemaWriter::write_string(Node from, const std::string& format) {
  return put_region_(nfa_.literal(from, "\""), regions_.string(format));
}

Nfa::Node SchemaWriter::after_separator(Node from, char separator) {
  const Node behind = nfa_.literal(from, std::string_view(&separator, 1));
  const Node end = nfa_.literal(behind, " ");
  nfa_.skip(behind, end);
  return end;
}

Nfa::Node SchemaWriter::write_array(Node from, const Alternative& way, int freedom) {
  const Node open = nfa_.literal(from, "[");
  const Node item = nfa_.add();
  nfa_.skip(open, item);
  const Node behind = write_value(item, way.items, way.items.empty() ? freedom + 1 : freedom);
  nfa_.skip(after_separator(behind, ','), item);
  const Node end = nfa_.literal(behind, "]");
  if (way.min_items == 0) nfa_.edge(open, ']', ']', end);
  return end;
}

Nfa::Node SchemaWriter::write_object(Node from, const Alternative& way, const Conjunction& schemas,
                                     int freedom) {
  if (schema_.dialect == Dialect::strict && !way.is_closed && !schemas.empty()) {
    fail("additionalProperties", schemas, "Objects must have `additionalProperties: false`.");
  }
  const Node open = nfa_.literal(from, "{");
  const std::vector<Member> members = members_of(way, schemas);
  if (!members.empty() || way.is_closed) return write_members(open, members, freedom);
  return write_map(open, way.additional, way.additional.empty() ? freedom + 1 : freedom);
}

std::vector<SchemaWriter::Member> SchemaWriter::members_of(const Alternative& way,
                                                           const Conjunction& schemas) {
  const std::unordered_set<std::string_view> required(way.required.begin(), way.required.end());
  std::unordered_set<std::string_view> listed;
  std::vector<Member> members;
  for (const Alternative::Property& property : way.properties) {
    const bool is_required = required.contains(property.name);
    members.push_back({property.name, property.schemas, is_required});
    listed.insert(property.name);
    if (!is_required) optionals_.insert(property.schemas.front().schema);
  }
  for (const std::string& name : way.required) {
    if (!listed.insert(name).second) continue;
    if (way.is_closed) {
      fail("required", schemas,
           "`" + name + "` is required, but not among the properties that are allowed.");
    }
    members.push_back({name, way.additional, true});
  }
  return members;
}

// From `before[i]` property i or one behind it can come; whether a comma is due is known from how
// the node was reached.
Nfa::Node SchemaWriter::write_members(Node open, const std::vector<Member>& members, int freedom) {
  const Node end = nfa_.add();
  const auto first_required = std::ranges::find(members, true, &Member::is_required);
  if (first_required == members.end()) nfa_.edge(open, '}', '}', end);
  std::size_t last_required = members.size();  // none
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].is_required) last_required = i;
  }
  std::vector<Node> before;
  for (std::size_t i = 0; i < members.size(); ++i)
    before.push_back(nfa_.add());
  if (!members.empty()) nfa_.skip(open, before[0]);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const Node key = nfa_.literal(before[i], json_string(member.name));
    const Node behind = write_value(after_separator(key, ':'), member.schemas,
                                    member.schemas.empty() ? freedom + 1 : freedom);
    const bool is_last = i + 1 == members.size();
    if (!is_last) {
      nfa_.skip(after_separator(behind, ','), before[i + 1]);
      if (!member.is_required) nfa_.skip(before[i], before[i + 1]);
    }
    if (last_required == members.size() || i >= last_required) nfa_.edge(behind, '}', '}', end);
  }
  return end;
}

Nfa::Node SchemaWriter::write_map(Node open, const Conjunction& schemas, int freedom) {
  const Node key = nfa_.add();
  nfa_.skip(open, key);
  const Node name = write_string(key, "");
  const Node behind = write_value(after_separator(name, ':'), schemas, freedom);
  nfa_.skip(after_separator(behind, ','), key);
  const Node end = nfa_.literal(behind, "}");
  nfa_.edge(open, '}', '}', end);
  return end;
}

}  // namespace incipit::constrain
