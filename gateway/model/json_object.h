// JSON files and their objects with typed access, for the loaders of Hugging Face checkpoints.
// Includes simdjson: only for the .cpp files of this folder that need it.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// A view into a parsed document. Members that are null count as absent; a member of another type
// throws std::runtime_error with the file and the member's path.
class JsonObject {
 public:
  JsonObject(simdjson::dom::object object, std::string where)
      : object_(object), where_(std::move(where)) {}

  [[nodiscard]] std::optional<simdjson::dom::element> element(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  [[nodiscard]] std::optional<std::string_view> text(std::string_view key) const;
  [[nodiscard]] std::optional<JsonObject> object(std::string_view key) const;
  [[nodiscard]] std::optional<simdjson::dom::array> array(std::string_view key) const;

  [[nodiscard]] simdjson::dom::object members() const { return object_; }

  // "config.json: rope_scaling"
  [[nodiscard]] const std::string& where() const { return where_; }

  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  simdjson::dom::object object_;
  std::string where_;
};

// A document that holds an object, and the memory behind it.
class JsonDocument {
 public:
  // Throws std::runtime_error that names `where` when the text is not one JSON object.
  JsonDocument(std::string_view text, const std::string& where);
  // Reads a file.
  explicit JsonDocument(const std::filesystem::path& path);
  JsonDocument(const JsonDocument&) = delete;  // root() points into the parser
  JsonDocument& operator=(const JsonDocument&) = delete;

  [[nodiscard]] const JsonObject& root() const { return *root_; }

 private:
  void parse(std::string_view text, const std::string& where);

  simdjson::dom::parser parser_;
  std::optional<JsonObject> root_;
};

}  // namespace incipit::gateway
