#include "json_place.h"

#include "json_fault.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace incipit {
namespace {

std::string_view kind_of(std::string_view text) {
  switch (text.empty() ? '\0' : text.front()) {
    case '\0':
      return "nothing";
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

}  // namespace

JsonPlace JsonPlace::check(std::string_view text) {
  require_json(text);
  constexpr std::string_view white_space = " \t\n\r";
  const std::size_t begin = text.find_first_not_of(white_space);
  return {text, text.substr(begin, text.find_last_not_of(white_space) + 1 - begin)};
}

std::string JsonPlace::string() const {
  if (!is_string()) expected("a string");
  return json_unescaped(text_);
}

std::int64_t JsonPlace::integer() const {
  std::int64_t plain = 0;
  const char* const end = text_.data() + text_.size();
  const auto read = std::from_chars(text_.data(), end, plain);
  if (read.ec == std::errc() && read.ptr == end) return plain;
  if (json_number_length(text_) == 0) expected("an integer");
  const auto integer = JsonValue::number(std::string(text_)).as_integer();
  if (!integer) fail("should be an integer of 64 bits, found " + std::string(text_.substr(0, 40)));
  return *integer;
}

double JsonPlace::number() const {
  if (json_number_length(text_) == 0) expected("a number");
  return *JsonValue::number(std::string(text_)).as_double();
}

bool JsonPlace::boolean() const {
  if (text_ != "true" && text_ != "false") expected("a boolean");
  return text_ == "true";
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!is_array()) expected("an array");
  std::vector<JsonPlace> places;
  for (const std::string_view item : json_items(text_))
    places.push_back(part(item));
  return places;
}

std::vector<std::string> JsonPlace::strings() const {
  std::vector<std::string> all;
  for (const JsonPlace& item : items())
    all.push_back(item.string());
  return all;
}

void JsonPlace::expected(std::string_view what) const {
  fail("should be " + std::string(what) + ", found " + std::string(kind_of(text_)));
}

void JsonPlace::fail(const std::string& problem, std::string_view member) const {
  const auto offset = static_cast<std::size_t>(text_.data() - document_.data());
  std::string path = json_path(document_, offset);
  if (!path.empty() && !member.empty()) path += '.';
  path += member;
  throw_parse_error(document_, path.empty() ? problem : path + ": " + problem, offset, path);
}

JsonObject::JsonObject(const JsonPlace& place) : place_(place) {
  if (!place.is_object())
    place.fail("should be an object, found " + std::string(kind_of(place.text())));
  members_ = json_members(place.text());
}

bool JsonObject::has(std::string_view name) const {
  return std::ranges::any_of(members_, [&](const auto& member) { return member.is_named(name); });
}

std::optional<JsonPlace> JsonObject::find(std::string_view name) const {
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    if (!member->is_named(name)) continue;
    const JsonPlace place = place_.part(member->value);
    if (place.is_null()) return std::nullopt;
    return place;
  }
  return std::nullopt;
}

JsonPlace JsonObject::at(std::string_view name) const {
  const auto place = find(name);
  if (!place) place_.fail("is missing", name);
  return *place;
}

std::optional<std::string> JsonObject::string(std::string_view name) const {
  const auto place = find(name);
  return place ? std::optional(place->string()) : std::nullopt;
}

std::string JsonObject::string_or_empty(std::string_view name) const {
  const auto place = find(name);
  return place ? place->string() : std::string();
}

std::optional<std::int64_t> JsonObject::integer(std::string_view name) const {
  const auto place = find(name);
  return place ? std::optional(place->integer()) : std::nullopt;
}

std::optional<bool> JsonObject::boolean(std::string_view name) const {
  const auto place = find(name);
  return place ? std::optional(place->boolean()) : std::nullopt;
}

JsonText JsonObject::json(std::string_view name) const {
  const auto place = find(name);
  return place ? place->json() : JsonText();
}

}  // namespace incipit
