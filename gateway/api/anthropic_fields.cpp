#include "gateway/api/anthropic_fields.h"

#include "gateway/api/error.h"

#include <algorithm>
#include <utility>

namespace incipit::gateway {
namespace {

[[noreturn]] void reject(const std::string& path, const std::string& why) {
  throw invalid_request(path + ": " + why);
}

bool is_identifier_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
         || c == '-';
}

}  // namespace

JsonValue read_json(std::string_view body) {
  try {
    return JsonValue::parse(body, {.unique_keys = true});
  } catch (const ParseError& error) {
    throw invalid_request("The request body is not valid JSON: " + std::string(error.what())
                          + ": line " + std::to_string(error.line) + " column "
                          + std::to_string(error.column) + " (char "
                          + std::to_string(error.character) + ")");
  }
}

Fields::Fields(const JsonValue& object, std::string path)
    : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  if (path_.empty()) throw invalid_request("The request body should be a JSON object");
  reject(path_, "Input should be a valid dictionary");
}

std::string Fields::at(std::string_view name) const {
  if (path_.empty()) return std::string(name);
  std::string path;
  path.reserve(path_.size() + 1 + name.size());
  return path.append(path_).append(1, '.').append(name);
}

const JsonValue* Fields::optional(std::string_view name) {
  known_.push_back(name);
  return object_.find(name);
}

const JsonValue* Fields::unless_null(std::string_view name) {
  const JsonValue* value = optional(name);
  return value != nullptr && value->is_null() ? nullptr : value;
}

const JsonValue& Fields::required(std::string_view name) {
  const JsonValue* value = optional(name);
  if (value == nullptr) reject(at(name), "Field required");
  return *value;
}

std::size_t Fields::choice(std::string_view name, std::initializer_list<std::string_view> choices) {
  const JsonValue& value = required(name);
  if (value.is_string()) {
    const auto found = std::ranges::find(choices, std::string_view(value.as_string()));
    if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  }
  std::string list;
  for (const std::string_view& choice : choices) {
    if (!list.empty()) list += &choice + 1 == choices.end() ? " or " : ", ";
    list.append(1, '\'').append(choice).append(1, '\'');
  }
  reject(at(name), "Input should be " + list);
}

void Fields::reject_others() const {
  for (const JsonMember& member : object_.as_object()) {
    if (std::ranges::find(known_, std::string_view(member.name)) == known_.end()) {
      reject(at(shown(member.name)), "Extra inputs are not permitted");
    }
  }
}

const std::string& read_string(const JsonValue& value, const std::string& path) {
  if (!value.is_string()) reject(path, "Input should be a valid string");
  return value.as_string();
}

bool read_boolean(const JsonValue& value, const std::string& path) {
  if (!value.is_boolean()) reject(path, "Input should be a valid boolean");
  return value.as_boolean();
}

std::int64_t read_integer(const JsonValue& value, const std::string& path) {
  const auto integer = value.as_integer();
  if (!integer) reject(path, "Input should be a valid integer");
  return *integer;
}

const JsonValue::Array& read_list(const JsonValue& value, const std::string& path) {
  if (!value.is_array()) reject(path, "Input should be a valid list");
  return value.as_array();
}

const JsonValue& read_object(const JsonValue& value, const std::string& path) {
  if (!value.is_object()) reject(path, "Input should be a valid dictionary");
  return value;
}

double read_fraction(const JsonValue& value, const std::string& path) {
  const auto number = value.as_double();
  if (!number) reject(path, "Input should be a valid number");
  if (*number < 0) reject(path, "Input should be greater than or equal to 0");
  if (*number > 1) reject(path, "Input should be less than or equal to 1");
  return *number;
}

const std::string& read_identifier(const JsonValue& value, const std::string& path,
                                   std::size_t limit) {
  const std::string& text = read_string(value, path);
  const bool short_enough = limit == 0 || text.size() <= limit;
  if (!text.empty() && short_enough && std::ranges::all_of(text, is_identifier_character)) {
    return text;
  }
  const std::string count = limit == 0 ? "+" : "{1," + std::to_string(limit) + "}";
  reject(path, "String should match pattern '^[a-zA-Z0-9_-]" + count + "$'");
}

void reject_tag(const std::string& path, std::string_view found,
                const std::vector<std::string_view>& expected) {
  std::string list;
  for (const std::string_view tag : expected) {
    list.append(list.empty() ? "'" : ", '").append(tag).append(1, '\'');
  }
  reject(path, "Input tag '" + shown(found)
                   + "' found using 'type' does not match any of the expected tags: " + list);
}

std::string element(const std::string& path, std::size_t index) {
  return path + "." + std::to_string(index);
}

std::string shown(std::string_view text) {
  constexpr std::size_t limit = 200;
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace incipit::gateway
