// What masks cost in processor time: compiling schemas, and each token, for vocabularies of two
// sizes.

#include "gateway/constrain/constraint.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace incipit::constrain;
using incipit::JsonValue;
using Random = std::mt19937_64;

// Of processor time: what else the machine does is not to count.
struct Clock {
  using time_point = double;

  static double now() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }
};

double milliseconds_since(Clock::time_point start) {
  return Clock::now() - start;
}

// Words with and without a blank, with punctuation of JSON, numbers, characters of other scripts.
std::shared_ptr<const Vocabulary> made_up_vocabulary(int size) {
  Random random(1);
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.emplace_back(1, static_cast<char>(byte));
  for (int number = 0; number < 1110; ++number)
    tokens.push_back(std::to_string(number));
  const std::vector<std::string> ends = {"\"", "\",", "\":", "\": ", "\"}", "\"],", ",", ".", "}"};
  while (tokens.size() < static_cast<std::size_t>(size)) {
    std::string word = random() % 2 == 0 ? " " : "";
    if (random() % 8 == 0) {
      for (auto count = 1 + random() % 3; count > 0; --count) {
        const auto code = 0x4E00 + random() % 0x5000;
        word += static_cast<char>(0xE0 | (code >> 12));
        word += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        word += static_cast<char>(0x80 | (code & 0x3F));
      }
    } else {
      static const std::string vowels = "aeiou", consonants = "bcdfghklmnprstvwz";
      for (auto count = 1 + random() % 4; count > 0; --count) {
        word += consonants[random() % consonants.size()];
        word += vowels[random() % vowels.size()];
      }
    }
    if (random() % 100 == 0) word += ends[random() % ends.size()];
    tokens.push_back(word);
  }
  return std::make_shared<const Vocabulary>(std::move(tokens));
}

std::string many_properties(int count, bool is_required) {
  static const std::vector<std::string> types = {
      R"({"type": "string"})",
      R"({"type": "integer"})",
      R"({"type": ["number", "null"]})",
      R"({"type": "boolean"})",
      R"({"enum": ["low", "medium", "high"]})",
      R"({"type": "array", "items": {"type": "string"}})"};
  std::string properties, required;
  for (int i = 0; i < count; ++i) {
    const std::string name = "property_" + std::to_string(i);
    const std::string key = std::string(i == 0 ? "" : ", ") + '"' + name + '"';
    properties += key + ": " + types[static_cast<std::size_t>(i) % types.size()];
    required += key;
  }
  return R"({"type": "object", "properties": {)" + properties + R"(}, "required": [)"
         + (is_required ? required : "") + R"(], "additionalProperties": false})";
}

const char* const person = R"({"type": "object", "additionalProperties": false,
  "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
    "email": {"type": "string", "format": "email"}, "born": {"type": "string", "format": "date"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "address": {"type": "object", "additionalProperties": false, "required": ["street", "city"],
      "properties": {"street": {"type": "string"}, "city": {"type": "string"},
        "kind": {"enum": ["home", "work"]}}}},
  "required": ["name", "age", "email", "born", "tags", "address"]})";

Shape shape_of(const std::string& schema) {
  return Shape::schema(JsonValue::parse(schema), Dialect::lenient);
}

void bench_compile(const std::shared_ptr<const Vocabulary>& vocabulary) {
  struct Case {
    const char* name;
    std::string schema;
  };

  const std::vector<Case> cases = {{"a person, nested, 2 formats", person},
                                   {"100 required properties", many_properties(100, true)},
                                   {"100 optional properties", many_properties(100, false)},
                                   {"any JSON value", "{}"}};
  for (const Case& c : cases) {
    const Shape shape = shape_of(c.schema);
    double best = 1e9;
    std::size_t states = 0;
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      const CompiledShape compiled(shape, vocabulary);
      best = std::min(best, milliseconds_since(start));
      states = compiled.states();
    }
    std::printf("  compile %-28s %8.2f ms  %6zu states\n", c.name, best, states);
  }
}

// A token of the mask, mostly one of several bytes, as models write.
TokenId choose(const Vocabulary& vocabulary, std::span<const std::uint64_t> mask, Random& random) {
  TokenId chosen = -1;
  for (int tries = 0; tries < 400; ++tries) {
    const auto token = static_cast<TokenId>(random() % vocabulary.size());
    const auto bit = static_cast<std::size_t>(token);
    if ((mask[bit / 64] >> (bit % 64) & 1) == 0) continue;
    chosen = token;
    break;
  }
  if (chosen >= 0) return chosen;
  std::vector<TokenId> tokens;
  for (std::size_t bit = 0; bit < vocabulary.size(); ++bit) {
    if (mask[bit / 64] >> (bit % 64) & 1) tokens.push_back(static_cast<TokenId>(bit));
  }
  return tokens.empty() ? -1 : tokens[random() % tokens.size()];
}

void bench_tokens(const std::shared_ptr<const Vocabulary>& vocabulary, const char* name,
                  const std::string& schema, int replies) {
  const Shape shape = shape_of(schema);
  const auto compiled = std::make_shared<const CompiledShape>(shape, vocabulary);
  Random random(7);
  TokenId quote = 0;
  while (vocabulary->bytes(quote) != "\"")
    ++quote;
  const auto quote_bit = static_cast<std::size_t>(quote);
  double masks = 0, advances = 0, worst = 0, first_reply = 0;
  int tokens = 0, first_tokens = 0;
  for (int reply = 0; reply < replies; ++reply) {
    Constraint constraint(compiled);
    for (int left = 600; left > 0 && !constraint.done(); --left) {
      auto start = Clock::now();
      const auto mask = constraint.allowed(left);
      const double took = milliseconds_since(start);
      masks += took;
      worst = std::max(worst, took);
      ++tokens;
      // Strings are to have some 6 tokens.
      const bool can_close = mask[quote_bit / 64] >> (quote_bit % 64) & 1;
      const TokenId token =
          can_close && random() % 6 == 0 ? quote : choose(*vocabulary, mask, random);
      start = Clock::now();
      if (!constraint.advance(token)) return;
      advances += milliseconds_since(start);
    }
    if (reply == 0) {
      first_reply = masks;
      first_tokens = tokens;
    }
  }
  std::printf(
      "  mask    %-28s first reply %.3f ms per token (%d), all %.4f (%d), worst %.1f ms; "
      "advance %.4f\n",
      name, first_reply / first_tokens, first_tokens, masks / tokens, tokens, worst,
      advances / tokens);
}

void bench(const std::shared_ptr<const Vocabulary>& vocabulary) {
  bench_compile(vocabulary);
  bench_tokens(vocabulary, "a person", person, 20);
  bench_tokens(vocabulary, "100 required properties", many_properties(100, true), 10);
  bench_tokens(vocabulary, "any JSON value", R"({"type": "object"})", 20);
}

}  // namespace

int main() {
  for (const int size : {49'152, 262'144}) {
    const auto start = Clock::now();
    const auto vocabulary = made_up_vocabulary(size);
    std::printf("%d made-up tokens, ready in %.0f ms\n", size, milliseconds_since(start));
    bench(vocabulary);
  }
  return 0;
}
