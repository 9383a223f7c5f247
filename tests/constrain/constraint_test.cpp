#include "gateway/constrain/constraint.h"

#include "tests/constrain/walk.h"

#include <doctest/doctest.h>

#include <thread>

namespace incipit::constrain {
namespace {

Shape schema(std::string_view text) {
  return Shape::schema(JsonValue::parse(text), Dialect::strict);
}

Constraint constraint_of(const Shape& shape, std::shared_ptr<const Vocabulary> vocabulary) {
  return Constraint(std::make_shared<const CompiledShape>(shape, std::move(vocabulary)));
}

bool contains(std::span<const std::uint64_t> mask, TokenId token) {
  return mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1;
}

TEST_CASE("the shortest completion counts the longest tokens on the way") {
  std::vector<std::string> tokens = byte_tokens();
  tokens.emplace_back("{\"name\": \"f\", ");  // 256
  tokens.emplace_back("name");
  const auto vocabulary = std::make_shared<const Vocabulary>(tokens);
  const Shape shape = Shape::sequence({Shape::literal(R"({"name": "f", "n": )"),
                                       schema(R"({"type": "integer"})"), Shape::literal("}")});
  Constraint constraint = constraint_of(shape, vocabulary);
  CHECK(constraint.shortest_completion() == 1 + 5 + 1 + 1);  // `"n": `, a digit, `}`
  CHECK(constraint_of(shape, byte_vocabulary()).shortest_completion() == 14 + 5 + 1 + 1);

  // With no more than that, only the long token will do; with more the brace alone as well.
  CHECK(tokens_of(constraint.allowed(8)) == std::vector<TokenId>{256});
  CHECK(tokens_of(constraint.allowed(100)) == std::vector<TokenId>{'{', 256});
  REQUIRE(constraint.advance(256));
  CHECK(constraint.shortest_completion() == 7);
}

TEST_CASE("a reply that cannot be whole any more goes on as if there were no limit") {
  Constraint constraint = constraint_of(schema(R"({"type": "string"})"), byte_vocabulary());
  REQUIRE(constraint.advance('"'));
  CHECK(tokens_of(constraint.allowed(1)) == std::vector<TokenId>{'"'});
  CHECK(tokens_of(constraint.allowed(0)).size() > 100);
  const Shape thoughts = Shape::free_until("##", Shape::literal("end"), 1, 1);
  Constraint free = constraint_of(thoughts, byte_vocabulary());
  CHECK(free.shortest_completion() == 5);
  CHECK(tokens_of(free.allowed(4)).size() == 256);
  CHECK(tokens_of(free.allowed(5)) == std::vector<TokenId>{'#'});
}

TEST_CASE("free text does not enter what the rest of the tokens cannot finish") {
  const Shape calls = Shape::free_until("<c>", Shape::literal("abcd"), 0, std::nullopt);
  Constraint constraint = constraint_of(calls, byte_vocabulary());
  REQUIRE(constraint.advance('<'));
  REQUIRE(constraint.advance('c'));
  CHECK(contains(constraint.allowed(5), '>'));
  CHECK_FALSE(contains(constraint.allowed(4), '>'));
  CHECK(contains(constraint.allowed(4), 'x'));
  CHECK(constraint.end_allowed());
}

TEST_CASE("done means that nothing but the end can follow") {
  Constraint number = constraint_of(schema(R"({"type": "integer"})"), byte_vocabulary());
  CHECK_FALSE(number.end_allowed());
  REQUIRE(number.advance('1'));
  CHECK(number.end_allowed());
  CHECK_FALSE(number.done());
  CHECK(contains(number.allowed(9), '2'));

  Constraint object = constraint_of(
      schema(R"({"type": "object", "properties": {}, "additionalProperties": false})"),
      byte_vocabulary());
  REQUIRE(object.advance('{'));
  CHECK_FALSE(object.end_allowed());
  REQUIRE(object.advance('}'));
  CHECK(object.done());
  CHECK(tokens_of(object.allowed(9)).empty());
  CHECK_FALSE(object.advance('}'));
  CHECK(object.done());
}

TEST_CASE("special tokens and ids outside the vocabulary never follow") {
  std::vector<std::string> tokens = byte_tokens();
  tokens.emplace_back();
  Constraint constraint =
      constraint_of(Shape::free_until("<c>", Shape::literal("x"), 0, std::nullopt),
                    std::make_shared<const Vocabulary>(tokens));
  CHECK_FALSE(contains(constraint.allowed(100), 256));
  CHECK_FALSE(constraint.advance(256));
  CHECK_FALSE(constraint.advance(257));
  CHECK_FALSE(constraint.advance(-1));
  CHECK(tokens_of(constraint.allowed(100)).size() == 256);
}

TEST_CASE("copies go on by themselves, and a replay leads to the same state") {
  const auto compiled = std::make_shared<const CompiledShape>(
      schema(R"({"type": "array", "items": {"type": "string"}})"), byte_vocabulary());
  Constraint one(compiled);
  for (const char c : std::string_view("[\"a"))
    REQUIRE(one.advance(c));
  Constraint other = one;
  REQUIRE(other.advance('"'));
  REQUIRE(other.advance(']'));
  CHECK(other.done());
  CHECK_FALSE(one.end_allowed());
  Constraint replayed(compiled);
  for (const char c : std::string_view("[\"a"))
    REQUIRE(replayed.advance(c));
  CHECK(tokens_of(replayed.allowed(50)) == tokens_of(one.allowed(50)));
}

TEST_CASE("a vocabulary says which bytes it lacks, and shapes that need them are refused") {
  std::vector<std::string> tokens = byte_tokens();
  tokens['{'] = "";
  tokens[0xC3] = "";
  tokens.emplace_back("{\"");
  tokens.emplace_back("é");
  const auto vocabulary = std::make_shared<const Vocabulary>(tokens);
  CHECK(vocabulary->missing_bytes() == std::vector<unsigned char>{'{', 0xC3});
  const Shape object =
      schema(R"({"type": "object", "properties": {}, "additionalProperties": false})");
  CHECK_THROWS_WITH_AS(
      constraint_of(object, vocabulary),
      "The model cannot write this shape: it has no tokens for the single bytes 123, 195.",
      ShapeError);

  // What can do without them goes around them, and takes the tokens that hold them whole.
  Constraint text = constraint_of(schema(R"({"type": ["string", "object"],
      "properties": {}, "additionalProperties": false})"),
                                  vocabulary);
  CHECK(tokens_of(text.allowed(100)) == std::vector<TokenId>{'"'});
  REQUIRE(text.advance('"'));
  CHECK(contains(text.allowed(100), 257));
  CHECK(text.advance(257));
}

TEST_CASE("shapes that make no sense") {
  const Shape x = Shape::literal("x");
  CHECK_THROWS_AS((void)Shape::any_of({}), ShapeError);
  CHECK_THROWS_AS((void)Shape::repeated(x, "", -1, 1), ShapeError);
  CHECK_THROWS_AS((void)Shape::repeated(x, "", 2, 1), ShapeError);
  CHECK_THROWS_AS((void)Shape::free_until("", x, 0, 1), ShapeError);
  CHECK_THROWS_AS(
      constraint_of(Shape::repeated(x, ",", 2'000'000, std::nullopt), byte_vocabulary()),
      SchemaError);
}

TEST_CASE("equal shapes have equal keys, others do not") {
  const auto shape = [](const char* text, Dialect dialect, std::optional<int> max) {
    return Shape::repeated(
        Shape::sequence({Shape::literal("a"), Shape::schema(JsonValue::parse(text), dialect)}), ",",
        1, max);
  };
  const std::string key = shape(R"({"type": "null"})", Dialect::strict, 2).key();
  CHECK(key == shape(R"({ "type" : "null" })", Dialect::strict, 2).key());
  CHECK(key != shape(R"({"type": "null"})", Dialect::lenient, 2).key());
  CHECK(key != shape(R"({"type": "null"})", Dialect::strict, 3).key());
  CHECK(key != shape(R"({"type": "null"})", Dialect::strict, std::nullopt).key());
  CHECK(key != shape(R"({"type": "string"})", Dialect::strict, 2).key());
  const auto pair = [](const char* one, const char* other) {
    return Shape::sequence({Shape::literal(one), Shape::literal(other)}).key();
  };
  CHECK(pair("ab", "c") != pair("a", "bc"));
}

TEST_CASE("many requests share a shape and a vocabulary at once") {
  const auto vocabulary = mixed_vocabulary(500, 3);
  const Shape shape = schema(R"({"type": "object", "additionalProperties": false, "properties": {
      "a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string", "format": "date"}},
      "c": {"type": "number"}}, "required": ["a", "b", "c"]})");
  const auto compiled = std::make_shared<const CompiledShape>(shape, vocabulary);
  std::vector<std::string> faults(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    threads.emplace_back([&, i] {
      Random random(i);
      for (int reply = 0; reply < 10; ++reply) {
        // Some compile for themselves while others write.
        const auto own =
            reply % 5 == 4 ? std::make_shared<const CompiledShape>(shape, vocabulary) : compiled;
        const Reply written = random_reply(Constraint(own), *vocabulary, 150, random);
        if (written.fault != "" || !written.is_whole) faults[i] += written.fault + written.text;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& fault : faults)
    CHECK(fault == "");
}

}  // namespace
}  // namespace incipit::constrain
