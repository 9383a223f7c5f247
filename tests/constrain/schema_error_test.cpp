#include "gateway/constrain/compiled_shape.h"
#include "tests/constrain/random_schema.h"
#include "tests/constrain/vocabularies.h"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>

namespace incipit::constrain {
namespace {

const std::shared_ptr<const Vocabulary>& bytes() {
  static const auto vocabulary = byte_vocabulary();
  return vocabulary;
}

void compile(const std::string& schema, Dialect dialect = Dialect::strict,
             const Limits& limits = {}) {
  const CompiledShape compiled(Shape::schema(JsonValue::parse(schema), dialect, "root"), bytes(),
                               limits);
}

// "keyword at path", or nothing when it compiles.
std::string refusal(const std::string& schema, Dialect dialect = Dialect::strict,
                    const Limits& limits = {}) {
  try {
    compile(schema, dialect, limits);
  } catch (const SchemaError& error) {
    CHECK(std::string(error.what()) != "");
    return error.keyword + " at " + error.path;
  }
  return "";
}

TEST_CASE("keywords that cannot be honoured are named, in both dialects") {
  for (const Dialect dialect : {Dialect::strict, Dialect::lenient}) {
    for (const auto& [keyword, value] :
         std::vector<std::pair<std::string, std::string>>{{"minimum", "0"},
                                                          {"maximum", "9"},
                                                          {"exclusiveMinimum", "0"},
                                                          {"exclusiveMaximum", "9"},
                                                          {"multipleOf", "2"},
                                                          {"minLength", "1"},
                                                          {"maxLength", "9"},
                                                          {"pattern", "\"^a$\""},
                                                          {"maxItems", "3"},
                                                          {"uniqueItems", "true"},
                                                          {"contains", "{}"},
                                                          {"prefixItems", "[{}]"},
                                                          {"minProperties", "1"},
                                                          {"maxProperties", "2"},
                                                          {"patternProperties", "{}"},
                                                          {"propertyNames", "{}"},
                                                          {"dependentRequired", "{}"},
                                                          {"dependentSchemas", "{}"},
                                                          {"unevaluatedProperties", "false"},
                                                          {"oneOf", "[{}]"},
                                                          {"not", "{}"},
                                                          {"if", "{}"},
                                                          {"then", "{}"},
                                                          {"else", "{}"},
                                                          {"$dynamicRef", "\"#x\""},
                                                          {"$anchor", "\"x\""}}) {
      CAPTURE(keyword);
      const std::string property = R"({"type": "string", ")" + keyword + "\": " + value + "}";
      CHECK(refusal(R"({"type": "object", "additionalProperties": false, "properties": {"p": )"
                        + property + "}}",
                    dialect)
            == keyword + " at root.properties.p");
    }
  }
}

TEST_CASE("what a strict schema may not have or lack") {
  CHECK(refusal(R"({"type": "object", "properties": {}})") == "additionalProperties at root");
  CHECK(refusal(R"({"type": "object", "additionalProperties": true})")
        == "additionalProperties at root");
  CHECK(refusal(R"({"type": "object", "additionalProperties": {"type": "null"}})")
        == "additionalProperties at root");
  CHECK(refusal(R"({"type": "array", "items": {"type": "object"}})")
        == "additionalProperties at root.items");
  CHECK(refusal(R"({"type": "array", "items": {}})") == "type at root.items");
  CHECK(refusal(R"({"type": "array", "items": true})") == " at root.items");
  CHECK(refusal(R"({"description": "x"})") == "type at root");
  CHECK(refusal(R"({"type": "string", "unheardOf": 1})") == "unheardOf at root");
  CHECK(refusal(R"({"type": "string", "format": "password"})") == "format at root");
  CHECK(refusal(R"({"enum": [1, [2]]})") == "enum at root");
  CHECK(refusal(R"({"type": "object", "properties": {}, "required": ["a"],
                    "additionalProperties": false})")
        == "required at root");
}

TEST_CASE("broken schemas") {
  CHECK(refusal("[]") == " at root");
  CHECK(refusal("3") == " at root");
  CHECK(refusal(R"({"type": "text"})") == "type at root");
  CHECK(refusal(R"({"type": 3})") == "type at root");
  CHECK(refusal(R"({"type": []})") == "type at root");
  CHECK(refusal(R"({"type": ["string", null]})") == "type at root");
  CHECK(refusal(R"({"type": "array", "items": [{}]})") == "items at root");
  CHECK(refusal(R"({"type": "array", "minItems": 2})") == "minItems at root");
  CHECK(refusal(R"({"type": "array", "minItems": -1})") == "minItems at root");
  CHECK(refusal(R"({"type": "array", "minItems": "1"})") == "minItems at root");
  CHECK(refusal(R"({"enum": []})") == "enum at root");
  CHECK(refusal(R"({"enum": "a"})") == "enum at root");
  CHECK(refusal(R"({"anyOf": []})") == "anyOf at root");
  CHECK(refusal(R"({"anyOf": {}})") == "anyOf at root");
  CHECK(refusal(R"({"anyOf": [1]})") == " at root.anyOf.0");
  CHECK(refusal(R"({"type": "string", "format": 1})") == "format at root");
  CHECK(refusal(R"({"type": "object", "properties": []})") == "properties at root");
  CHECK(refusal(R"({"type": "object", "required": "a"})") == "required at root");
  CHECK(refusal(R"({"type": "object", "required": [1]})") == "required at root");
  CHECK(refusal(R"({"type": "object", "additionalProperties": 1})", Dialect::lenient)
        == "additionalProperties at root");
}

TEST_CASE("schemas that leave no value") {
  CHECK(refusal(R"({"type": "string", "enum": [1, 2]})") == "enum at root");
  CHECK(refusal(R"({"type": "integer", "const": "x"})") == "const at root");
  CHECK(refusal(R"({"enum": [1, 2], "const": 3})") == "const at root");
  CHECK(refusal(R"({"allOf": [{"type": "string"}, {"type": "null"}]})") == "allOf at root");
  CHECK(refusal(R"({"type": "null", "anyOf": [{"type": "string"}]})") == "anyOf at root");
  CHECK(refusal(R"({"allOf": [{"enum": [1]}, {"enum": [2]}]})") == "allOf at root");
  CHECK(refusal(R"({"type": "string", "format": "date", "allOf": [{"format": "time"}]})")
        == "allOf at root");
  // Each closed object forbids what the other demands.
  CHECK(refusal(R"({"allOf": [
      {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"],
       "additionalProperties": false},
      {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"],
       "additionalProperties": false}]})")
        == "required at root");
}

TEST_CASE("references that lead nowhere, outside or back") {
  CHECK(refusal(R"({"$ref": "#/$defs/x"})") == "$ref at root");
  CHECK(refusal(R"({"$ref": "https://example.com/schema"})") == "$ref at root");
  CHECK(refusal(R"({"$ref": "other.json#/x"})") == "$ref at root");
  CHECK(refusal(R"({"$ref": "#x"})") == "$ref at root");
  CHECK(refusal(R"({"$ref": 1})") == "$ref at root");
  CHECK(refusal(R"({"$ref": "#"})") == "$ref at root");
  CHECK(refusal(R"({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})")
        == "$ref at root.$defs.a");
  CHECK(refusal(R"({"$defs": {"n": {"type": "object", "additionalProperties": false, "properties":
                    {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}}}},
                    "$ref": "#/$defs/n"})")
        == "$ref at root.$defs.n.properties.next.anyOf.1");
  CHECK(refusal(R"({"$defs": {"x%": {"type": "null"}}, "$ref": "#/$defs/x%"})") == "$ref at root");
  // The same definition twice beside each other is no recursion.
  CHECK(refusal(R"({"$defs": {"d": {"type": "null"}}, "anyOf": [{"$ref": "#/$defs/d"},
                    {"type": "array", "items": {"$ref": "#/$defs/d"}}]})")
        == "");
}

std::string object_of(int properties, bool are_required, const std::string& property) {
  std::string list, required;
  for (int i = 0; i < properties; ++i) {
    const std::string name = std::string(i == 0 ? "" : ", ") + "\"p" + std::to_string(i) + "\"";
    list += name + ": " + property;
    required += name;
  }
  return R"({"type": "object", "properties": {)" + list + R"(}, "required": [)"
         + (are_required ? required : "") + R"(], "additionalProperties": false})";
}

TEST_CASE("24 optional parameters and 16 union types in strict schemas, any number in others") {
  const std::string text = R"({"type": "string"})";
  const std::string either = R"({"type": ["string", "null"]})";
  CHECK(refusal(object_of(24, false, text)) == "");
  CHECK(refusal(object_of(25, false, text)) == "required at root");
  CHECK(refusal(object_of(100, true, text)) == "");
  CHECK(refusal(object_of(100, false, text), Dialect::lenient) == "");
  CHECK(refusal(object_of(16, true, either)) == "");
  CHECK(refusal(object_of(17, true, either)) == "anyOf at root");
  CHECK(refusal(object_of(17, true, either), Dialect::lenient) == "");
  const auto strict = [](const std::string& schema) {
    return Shape::schema(JsonValue::parse(schema), Dialect::strict);
  };
  const std::string half = object_of(13, false, text);
  CHECK_THROWS_AS(CompiledShape(Shape::any_of({strict(half), strict(half)}), bytes()), SchemaError);

  // One schema that may be used several times counts once.
  for (const std::string& most : {object_of(24, false, text), object_of(16, true, either)}) {
    CHECK_NOTHROW(CompiledShape(Shape::repeated(strict(most), ",", 1, 16), bytes()));
    CHECK_NOTHROW(CompiledShape(Shape::free_until("!", strict(most), 0, 16), bytes()));
  }
}

TEST_CASE("too deep, too large, too many: refused within a moment") {
  const auto start = std::chrono::steady_clock::now();
  std::string deep = R"({"type": "null"})";
  for (int i = 0; i < 64; ++i)
    deep = R"({"type": "array", "items": )" + deep + "}";
  CHECK(refusal(deep) == "");
  deep = R"({"type": "array", "items": )" + deep + "}";
  CHECK(refusal(deep).starts_with(" at root.items.items"));

  std::string values = "0";
  for (int i = 1; i < 30'000; ++i)
    values += ", \"value " + std::to_string(i) + "\"";
  CHECK(refusal("{\"enum\": [" + values + "]}") == " at root");

  CHECK(refusal(object_of(20'000, true, R"({"type": "string"})")) == " at root");
  CHECK(refusal(object_of(5'000, false, R"({"type": "null"})"), Dialect::lenient) != "");

  // Definitions that double at each step: properties, alternatives, refinements.
  for (const std::string pattern :
       {R"({"type": "object", "properties": {"a": N, "b": N}, "additionalProperties": false})",
        R"({"anyOf": [N, N]})", R"({"allOf": [N, N]})"}) {
    std::string definitions = R"("d0": {"type": "null"})";
    for (int i = 1; i <= 40; ++i) {
      std::string definition = pattern;
      for (std::size_t at; (at = definition.find('N')) != std::string::npos;) {
        definition.replace(at, 1, R"({"$ref": "#/$defs/d)" + std::to_string(i - 1) + "\"}");
      }
      definitions += ", \"d" + std::to_string(i) + "\": " + definition;
    }
    const std::string schema = "{\"$defs\": {" + definitions + R"(}, "$ref": "#/$defs/d25"})";
    CAPTURE(pattern);
    CHECK(refusal(schema, Dialect::lenient) != "");
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 30);  // with sanitizers on a busy machine; a second otherwise
}

TEST_CASE("damaged schemas are refused or compile, and never worse") {
  Random random(21);
  int compiled = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::string text = SchemaMaker(seed, Dialect::lenient).make();
    static const std::vector<std::string> splices = {"\"$ref\": \"#/$defs/d0\", ",
                                                     "\"type\": [], ",
                                                     "\"anyOf\": [{}], ",
                                                     "true",
                                                     "null",
                                                     "[",
                                                     "{}",
                                                     "\"items\": {\"$ref\": \"#/properties/a\"}, ",
                                                     "\"required\": [\"a\", \"\"], ",
                                                     "1e999"};
    for (auto count = 1 + random() % 3; count > 0; --count) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, 1 + random() % 12);
          break;
        case 1:
          text[at] = static_cast<char>(32 + random() % 95);
          break;
        default:
          text.insert(at, splices[random() % splices.size()]);
      }
      if (text.empty()) text = "{}";
    }
    JsonValue schema;
    try {
      schema = JsonValue::parse(text);
    } catch (const ParseError&) {
      continue;
    }
    CAPTURE(text);
    for (const Dialect dialect : {Dialect::strict, Dialect::lenient}) {
      try {
        const CompiledShape shape(Shape::schema(schema, dialect), bytes());
        ++compiled;
      } catch (const SchemaError&) {
        ++refused;
      }
    }
  }
  CHECK(compiled > 100);
  CHECK(refused > 100);
}

}  // namespace
}  // namespace incipit::constrain
