// Random schemas of the supported subset.
#pragma once

#include "gateway/constrain/shape.h"
#include "incipit/json.h"
#include "tests/constrain/vocabularies.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace incipit::constrain {

inline constexpr std::array<std::string_view, 10> all_formats = {
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"};

// Random schemas may have more of these than requests.
inline constexpr Limits no_limits = {.optional_properties = 10'000, .union_types = 10'000};

class SchemaMaker {
 public:
  SchemaMaker(std::uint64_t seed, Dialect dialect) : random_(seed), dialect_(dialect) {}

  // JSON text; `$defs` are earlier schemas, so that there is no recursion.
  std::string make() {
    definitions_ = 0;
    std::string definitions;
    for (auto count = below(3); count > 0; --count) {
      const std::string one = any(2);
      definitions +=
          (definitions_ == 0 ? "\"d" : ", \"d") + std::to_string(definitions_) + "\": " + one;
      ++definitions_;
    }
    std::string schema = any(3);
    if (definitions_ > 0) schema = "{\"$defs\": {" + definitions + "}, " + schema.substr(1);
    return schema;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  bool chance(std::size_t one_in) { return below(one_in) == 0; }

  template <std::size_t n>
  std::string_view one_of(const std::array<std::string_view, n>& choices) {
    return choices[below(n)];
  }

  static std::string quoted(std::string_view text) {
    std::string out;
    JsonWriter(out).string(text);
    return out;
  }

  std::string primitive() {
    static constexpr std::array<std::string_view, 14> values = {
        "null",     "true",          "false",    "0",          "-7",
        "12.5",     "1e3",           "\"\"",     "\"a\"",      "\"ab\"",
        "\"é 漢\"", "\"x\\ny\\\"\"", "\"auto\"", "\"\\u0001\""};
    return std::string(one_of(values));
  }

  std::string any(int depth) {
    const std::string note = chance(6) ? R"(, "description": "some text", "title": "T")" : "";
    switch (below(depth > 0 ? 14 : 8)) {
      case 0:
        return R"({"type": "string")" + note + "}";
      case 1:
        return R"({"type": "string", "format": )" + quoted(one_of(all_formats)) + "}";
      case 2:
        return R"({"type": "integer")" + note + "}";
      case 3:
        return R"({"type": "number"})";
      case 4:
        return R"({"type": ["null", "boolean"]})";
      case 5:
        return R"({"type": ["string", "integer", "null"])" + note + "}";
      case 6:
        return R"({"enum": [)" + primitive() + ", " + primitive() + ", " + primitive() + "]}";
      case 7:
        if (definitions_ > 0) {
          return R"({"$ref": "#/$defs/d)" + std::to_string(below(definitions_)) + "\"" + note + "}";
        }
        return R"({"const": )" + primitive() + "}";
      case 8:
        return R"({"anyOf": [)" + any(depth - 1) + ", " + any(depth - 1) + "]}";
      case 9:
      case 10:
        return array(depth);
      case 11:
        return refined(depth);
      default:
        return object(depth);
    }
  }

  std::string array(int depth) {
    std::string schema = R"({"type": "array", "items": )" + any(depth - 1);
    if (chance(2)) schema += std::string(R"(, "minItems": )") + (chance(2) ? "1" : "0");
    return schema + "}";
  }

  // Two schemas that have to hold at once, and can.
  std::string refined(int depth) {
    if (chance(2)) {
      return R"({"allOf": [{"type": ["string", "null", "number"]}, {"type": ["integer", "string"]}]})";
    }
    const std::string kind = any(depth - 1);
    return R"({"allOf": [{"type": "object", "properties": {"kind": )" + kind + R"(, "b": )"
           + any(depth - 1) + R"(}, "additionalProperties": false}, {"type": "object", )"
           + R"("properties": {"kind": )" + kind + R"(}, "required": ["kind"]}]})";
  }

  std::string object(int depth) {
    static constexpr std::array<std::string_view, 8> names = {
        "a", "ab", "name", "count", "naïve", "with \"quotes\"", "names", ""};
    std::string properties, required;
    const std::size_t first = below(names.size());
    const auto count = below(5);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = quoted(names[(first + i) % names.size()]);
      properties += (i == 0 ? "" : ", ") + name + ": " + any(depth - 1);
      if (chance(2)) required += (required.empty() ? "" : ", ") + name;
    }
    std::string schema = R"({"type": "object", "properties": {)" + properties + "}";
    if (!required.empty() || chance(2)) schema += R"(, "required": [)" + required + "]";
    if (dialect_ == Dialect::strict || chance(3)) {
      schema += R"(, "additionalProperties": false)";
    } else if (chance(2)) {
      schema += R"(, "additionalProperties": )" + any(depth - 1);
    }
    return schema + "}";
  }

  Random random_;
  Dialect dialect_;
  std::size_t definitions_ = 0;
};

}  // namespace incipit::constrain
