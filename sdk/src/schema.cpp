#include "incipit/schema.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

using Object = JsonValue::Object;

constexpr std::array<std::string_view, 10> known_formats = {
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"};

std::optional<JsonValue> take(Object& members, std::string_view name) {
  const auto at = std::ranges::find(members, name, &JsonMember::name);
  if (at == members.end()) return std::nullopt;
  JsonValue value = std::move(at->value);
  members.erase(at);
  return value;
}

// The same when the member satisfies `wanted`; otherwise it stays, to be told in the description.
template <class Predicate>
std::optional<JsonValue> take_if(Object& members, std::string_view name, Predicate wanted) {
  const auto at = std::ranges::find(members, name, &JsonMember::name);
  if (at == members.end() || !wanted(at->value)) return std::nullopt;
  return take(members, name);
}

bool is_array(const JsonValue& value) {
  return value.is_array();
}

bool is_object(const JsonValue& value) {
  return value.is_object();
}

bool is_string(const JsonValue& value) {
  return value.is_string();
}

bool is_primitive(const JsonValue& value) {
  return !value.is_array() && !value.is_object();
}

bool is_list_of(const JsonValue& value, bool (*kind)(const JsonValue&)) {
  return value.is_array() && !value.as_array().empty()
         && std::ranges::all_of(value.as_array(), kind);
}

bool is_enumeration(const JsonValue& value) {
  return is_list_of(value, is_primitive);
}

bool is_type(const JsonValue& value) {
  return value.is_string() || is_list_of(value, is_string);
}

// Whether a schema's `type`, a word or a list of words, is or names `word`.
bool names_type(const std::optional<JsonValue>& type, std::string_view word) {
  if (!type) return false;
  if (type->is_string()) return type->as_string() == word;
  return std::ranges::any_of(type->as_array(),
                             [&](const JsonValue& item) { return item.as_string() == word; });
}

JsonValue supported(const JsonValue& schema, const std::string& path);

JsonValue supported_members(const JsonValue& schemas, const std::string& path) {
  Object members = schemas.as_object();
  for (JsonMember& member : members)
    member.value = supported(member.value, schema_detail::child(path, member.name));
  return JsonValue::object(std::move(members));
}

JsonValue supported_items(const JsonValue& schemas, const std::string& path) {
  JsonValue::Array items = schemas.as_array();
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i] = supported(items[i], schema_detail::child(path, std::to_string(i)));
  return JsonValue::array(std::move(items));
}

// Moves what only one type has from `rest` to `kept`.
void keep_parts_of_type(const std::optional<JsonValue>& type, Object& rest, Object& kept,
                        const std::string& path) {
  if (names_type(type, "object")) {
    const JsonValue properties =
        take_if(rest, "properties", is_object).value_or(JsonValue::object({}));
    kept.push_back(
        {"properties", supported_members(properties, schema_detail::child(path, "properties"))});
    (void)take(rest, "additionalProperties");
    kept.push_back({"additionalProperties", JsonValue::boolean(false)});
    if (auto required = take(rest, "required")) kept.push_back({"required", std::move(*required)});
  }
  if (names_type(type, "string")) {
    if (auto format = take(rest, "format")) {
      const bool known =
          format->is_string() && std::ranges::count(known_formats, format->as_string()) != 0;
      (known ? kept : rest).push_back({"format", std::move(*format)});
    }
  }
  if (names_type(type, "array")) {
    if (const auto items = take(rest, "items"))
      kept.push_back({"items", supported(*items, schema_detail::child(path, "items"))});
    if (auto least = take(rest, "minItems")) {
      const std::optional<std::int64_t> count = least->as_integer();
      const bool known = count == 0 || count == 1;
      (known ? kept : rest).push_back({"minItems", std::move(*least)});
    }
  }
}

// Tells in the description what the API would not enforce: the model may still follow it.
void describe(const Object& rest, Object& kept) {
  std::string told = "{";
  for (const JsonMember& member : rest) {
    if (told.size() > 1) told += ", ";
    told += member.name + ": ";
    told += member.value.is_string() ? member.value.as_string() : member.value.minified();
  }
  told += "}";
  const auto description = std::ranges::find(kept, "description", &JsonMember::name);
  if (description == kept.end()) {
    kept.push_back({"description", JsonValue::string(std::move(told))});
  } else {
    description->value = JsonValue::string(description->value.as_string() + "\n\n" + told);
  }
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw PromptError({}, path, (path.empty() ? "the schema" : path) + why);
}

// The order of the members is that of the official Python SDK, so that both give the same prompt.
JsonValue supported(const JsonValue& schema, const std::string& path) {
  if (!schema.is_object()) refuse(path, " must be an object, as every JSON schema here");
  Object rest = schema.as_object();
  Object kept;
  (void)take(rest, "$schema");
  if (const auto definitions = take_if(rest, "$defs", is_object)) {
    kept.push_back({"$defs", supported_members(*definitions, schema_detail::child(path, "$defs"))});
  }
  if (auto reference = take(rest, "$ref")) {
    kept.push_back({"$ref", std::move(*reference)});
    return JsonValue::object(std::move(kept));
  }

  std::optional<JsonValue> type = take_if(rest, "type", is_type);
  auto enumeration = take_if(rest, "enum", is_enumeration);
  auto constant = take_if(rest, "const", is_primitive);
  const bool literal = enumeration || constant;
  if (enumeration) kept.push_back({"enum", std::move(*enumeration)});
  if (constant) kept.push_back({"const", std::move(*constant)});
  const char* any_name = schema.find("anyOf") != nullptr ? "anyOf" : "oneOf";
  const auto any = take_if(rest, any_name, is_array);
  const auto all = take_if(rest, "allOf", is_array);
  if (any) kept.push_back({"anyOf", supported_items(*any, schema_detail::child(path, any_name))});
  if (all) kept.push_back({"allOf", supported_items(*all, schema_detail::child(path, "allOf"))});
  if (!literal && !any && !all) {
    if (!type)
      refuse(path, " says nothing of its type: give it type, anyOf, oneOf, allOf, enum or const");
    kept.push_back({"type", *type});
  }
  if (literal) type.reset();  // the words say it already

  if (auto description = take_if(rest, "description", is_string))
    kept.push_back({"description", std::move(*description)});
  if (auto title = take(rest, "title")) kept.push_back({"title", std::move(*title)});
  keep_parts_of_type(type, rest, kept, path);
  if (!rest.empty()) describe(rest, kept);
  return JsonValue::object(std::move(kept));
}

// What the stop reason has to do with it.
std::string hint(const Message& message) {
  if (!message.stop_reason) return {};
  switch (message.stop_reason->known) {
    case StopReason::max_tokens:
      return " (the reply was cut off: raise max_tokens)";
    case StopReason::model_context_window_exceeded:
      return " (the reply was cut off: the context window is full)";
    case StopReason::refusal:
      return " (the model refused)";
    case StopReason::end_turn:
      return {};
    default:
      return " (stop reason: " + message.stop_reason->text + ")";
  }
}

}  // namespace

namespace schema_detail {

void mismatch(std::string_view path, std::string_view wanted) {
  const std::string name = path.empty() ? "the value" : std::string(path);
  throw ParseError(name + " must be " + std::string(wanted), 0, 1, 1, 0, std::string(path));
}

std::string child(std::string_view path, std::string_view name) {
  std::string result(path);
  if (!result.empty()) result += '.';
  return result += name;
}

void unfit_output(const Message& message, const ParseError& why) {
  throw ParseError("Failed to parse structured output: " + std::string(why.what()) + hint(message),
                   why.offset, why.line, why.column, why.character, why.path);
}

}  // namespace schema_detail

JsonText supported_schema(const JsonText& schema) {
  return supported(schema.value(), {});
}

JsonText json_schema_format(const JsonText& schema) {
  if (!schema.is_object()) refuse({}, " must be a JSON object");
  std::string json;
  JsonWriter(json)
      .begin_object()
      .key("type")
      .string("json_schema")
      .key("schema")
      .raw(schema.text())
      .end_object();
  return JsonText::trusted(std::move(json));
}

JsonValue parsed_output(const Message& message) {
  const auto block = std::ranges::find_if(
      message.content, [](const ContentBlock& each) { return each.is<TextBlock>(); });
  try {
    if (block == message.content.end()) throw ParseError("the reply has no text", 0, 1, 1, 0);
    return JsonValue::parse(block->get_if<TextBlock>()->text);
  } catch (const ParseError& error) {
    schema_detail::unfit_output(message, error);
  }
}

}  // namespace incipit
