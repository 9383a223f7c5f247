#include "tests/constrain/random_schema.h"
#include "tests/constrain/schema_check.h"
#include "tests/constrain/walk.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace incipit::constrain {
namespace {

using Vocabularies = std::vector<std::shared_ptr<const Vocabulary>>;

void check_replies(const std::string& schema_text, Dialect dialect,
                   const Vocabularies& vocabularies, Random& random) {
  CAPTURE(schema_text);
  const JsonValue schema = JsonValue::parse(schema_text);
  const Shape shape = Shape::schema(schema, dialect);
  for (const auto& vocabulary : vocabularies) {
    const auto compiled = std::make_shared<const CompiledShape>(shape, vocabulary, no_limits);
    const Constraint constraint(compiled);
    const int least = constraint.shortest_completion();
    for (const int budget : {least, least + static_cast<int>(random() % 8), least + 120}) {
      CAPTURE(budget);
      const Reply reply = random_reply(constraint, *vocabulary, budget, random);
      CAPTURE(reply.text);
      REQUIRE(reply.fault == "");
      REQUIRE(reply.is_whole);
      JsonValue value;
      REQUIRE_NOTHROW(value = JsonValue::parse(reply.text));
      REQUIRE(is_valid(value, schema));
    }
  }
}

TEST_CASE("whatever is written under a random schema is JSON and valid for it") {
  const Vocabularies vocabularies = {byte_vocabulary(), mixed_vocabulary(3000, 5)};
  Random random(11);
  for (const Dialect dialect : {Dialect::strict, Dialect::lenient}) {
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
      check_replies(SchemaMaker(seed, dialect).make(), dialect, vocabularies, random);
    }
  }
}

TEST_CASE("strings of a format are of that format, whatever their length") {
  const Vocabularies vocabularies = {byte_vocabulary(), mixed_vocabulary(3000, 6)};
  Random random(12);
  for (const std::string_view format : all_formats) {
    const std::string schema = R"({"type": "string", "format": ")" + std::string(format) + "\"}";
    for (int i = 0; i < 100; ++i)
      check_replies(schema, Dialect::strict, vocabularies, random);
  }
}

TEST_CASE("a mask has exactly the tokens whose bytes can follow one by one") {
  const auto vocabulary = mixed_vocabulary(1500, 7);
  Random random(13);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::string text = SchemaMaker(seed, Dialect::lenient).make();
    CAPTURE(text);
    const Shape schema = Shape::schema(JsonValue::parse(text), Dialect::lenient);
    const Shape shape =
        seed % 3 == 0 ? Shape::free_until("<tool_call>", schema, 0, std::nullopt) : schema;
    const auto compiled = std::make_shared<const CompiledShape>(shape, vocabulary, no_limits);
    Constraint constraint(compiled);
    for (int step = 0; step < 25 && !constraint.done(); ++step) {
      const std::vector<TokenId> allowed = tokens_of(constraint.allowed(1'000'000));
      std::vector<TokenId> possible;
      for (std::size_t i = 0; i < vocabulary->size(); ++i) {
        const auto token = static_cast<TokenId>(i);
        if (Constraint(constraint).advance(token)) possible.push_back(token);
      }
      REQUIRE(allowed == possible);

      // With little left: those from which the rest is enough.
      const int least = constraint.shortest_completion();
      for (const int left : {least, least + 1, least + 3}) {
        if (left == 0) continue;
        std::vector<TokenId> completing;
        for (const TokenId token : possible) {
          Constraint after = constraint;
          after.advance(token);
          if (after.shortest_completion() < left) completing.push_back(token);
        }
        REQUIRE(tokens_of(constraint.allowed(left)) == completing);
      }
      if (allowed.empty()) break;
      constraint.advance(allowed[random() % allowed.size()]);
    }
  }
}

}  // namespace
}  // namespace incipit::constrain
