#include "gateway/model/json_object.h"

#include "gateway/model/mapped_file.h"

namespace incipit::gateway {
namespace {

template <typename T>
std::optional<T> get(const JsonObject& object, std::string_view key, const char* expected) {
  const std::optional<simdjson::dom::element> element = object.element(key);
  if (!element) return std::nullopt;
  T value;
  if (element->get(value) != simdjson::SUCCESS) object.fail(key, std::string("is not ") + expected);
  return value;
}

}  // namespace

void JsonObject::fail(std::string_view key, const std::string& problem) const {
  throw std::runtime_error(where_ + ": member \"" + std::string(key) + "\" " + problem);
}

std::optional<simdjson::dom::element> JsonObject::element(std::string_view key) const {
  simdjson::dom::element element;
  if (object_.at_key(key).get(element) != simdjson::SUCCESS || element.is_null()) {
    return std::nullopt;
  }
  return element;
}

std::optional<std::int64_t> JsonObject::integer(std::string_view key) const {
  return get<std::int64_t>(*this, key, "an integer");
}

std::optional<double> JsonObject::number(std::string_view key) const {
  return get<double>(*this, key, "a number");
}

std::optional<bool> JsonObject::boolean(std::string_view key) const {
  return get<bool>(*this, key, "true or false");
}

std::optional<std::string_view> JsonObject::text(std::string_view key) const {
  return get<std::string_view>(*this, key, "a string");
}

std::optional<JsonObject> JsonObject::object(std::string_view key) const {
  const auto value = get<simdjson::dom::object>(*this, key, "an object");
  if (!value) return std::nullopt;
  return JsonObject(*value, where_ + ": " + std::string(key));
}

std::optional<simdjson::dom::array> JsonObject::array(std::string_view key) const {
  return get<simdjson::dom::array>(*this, key, "an array");
}

JsonDocument::JsonDocument(std::string_view text, const std::string& where) {
  parse(text, where);
}

JsonDocument::JsonDocument(const std::filesystem::path& path) {
  const MappedFile file(path);
  parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
}

void JsonDocument::parse(std::string_view text, const std::string& where) {
  simdjson::dom::object object;
  const simdjson::padded_string padded(text);
  const simdjson::error_code error = parser_.parse(padded).get(object);
  if (error == simdjson::INCORRECT_TYPE) {
    throw std::runtime_error(where + ": the JSON text is not an object");
  }
  if (error != simdjson::SUCCESS) {
    throw std::runtime_error(where + ": not valid JSON (" + std::to_string(text.size())
                             + " bytes; is it truncated?): " + simdjson::error_message(error));
  }
  root_.emplace(object, where);
}

}  // namespace incipit::gateway
