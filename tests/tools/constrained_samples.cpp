// Replies under random schemas, for validators that are not ours: one JSON object per line with
// `schema` (an object) and `text` (what was written under it).
//
//   incipit-constrained-samples COUNT [SEED]

#include "tests/constrain/random_schema.h"
#include "tests/constrain/walk.h"

#include <cstdio>
#include <string>

namespace {

using namespace incipit;
using namespace incipit::constrain;

std::string line_for(const std::string& schema, Dialect dialect,
                     const std::shared_ptr<const Vocabulary>& vocabulary, Random& random) {
  const auto compiled = std::make_shared<const CompiledShape>(
      Shape::schema(JsonValue::parse(schema), dialect), vocabulary, no_limits);
  const Constraint constraint(compiled);
  const int budget = constraint.shortest_completion() + static_cast<int>(random() % 100);
  std::string line;
  JsonWriter(line)
      .begin_object()
      .key("schema")
      .raw(schema)
      .key("text")
      .string(random_reply(constraint, *vocabulary, budget, random).text)
      .end_object();
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: incipit-constrained-samples COUNT [SEED]\n");
    return 2;
  }
  const std::uint64_t count = std::stoull(argv[1]);
  const std::uint64_t seed = argc > 2 ? std::stoull(argv[2]) : 0;
  const auto vocabulary = mixed_vocabulary(3000, seed);
  Random random(seed);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Dialect dialect = i % 2 == 0 ? Dialect::strict : Dialect::lenient;
    // Every tenth is of a format, so that each is checked often.
    const std::string schema = i % 10 == 9 ? R"({"type": "string", "format": ")"
                                                 + std::string(all_formats[i / 10 % 10]) + "\"}"
                                           : SchemaMaker(seed * 1'000'003 + i, dialect).make();
    std::puts(line_for(schema, dialect, vocabulary, random).c_str());
  }
  return 0;
}
