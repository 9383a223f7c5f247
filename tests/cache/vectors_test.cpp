// The cache vectors of tests/data/cache/vectors.json on the ledger alone. The same table is run
// over HTTP by tests/clients/test_vectors.py.
#include "gateway/cache/ledger.h"

#include <incipit/json.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using incipit::JsonValue;
using incipit::Ttl;
using incipit::Usage;
using namespace incipit::gateway;

namespace {

JsonValue read_vectors() {
  const std::string path = INCIPIT_TEST_DATA "/cache/vectors.json";
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "cannot read ", path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return JsonValue::parse(text);
}

const JsonValue& at(const JsonValue& object, std::string_view name) {
  const JsonValue* member = object.find(name);
  REQUIRE_MESSAGE(member != nullptr, "no member ", std::string(name));
  return *member;
}

std::string string_or(const JsonValue& object, std::string_view name, std::string fallback) {
  const JsonValue* member = object.find(name);
  return member ? member->as_string() : fallback;
}

std::int64_t integer_or(const JsonValue& object, std::string_view name, std::int64_t fallback) {
  const JsonValue* member = object.find(name);
  return member ? member->as_integer().value() : fallback;
}

Ttl ttl_of(const std::string& text) {
  if (text == "5m") return Ttl::five_minutes;
  if (text == "1h") return Ttl::one_hour;
  throw std::runtime_error("not a ttl: " + text);
}

// "KIND NAME TOKENS [TTL]" to a boundary, the way the prompt encoder makes them (C-2, C-54).
std::vector<Boundary> boundaries_of(const JsonValue& step, const std::string& model) {
  std::vector<Boundary> boundaries;
  PrefixHasher hasher;
  hasher.add(model);
  bool in_messages = false;
  int token_end = 0;
  for (const JsonValue& block : at(step, "blocks").as_array()) {
    std::istringstream words(block.as_string());
    std::string kind, name, ttl;
    int tokens = 0;
    words >> kind >> name >> tokens >> ttl;
    REQUIRE(tokens > 0);
    if (!in_messages && kind != "tool" && kind != "system") {
      in_messages = true;
      const JsonValue* choice = step.find("tool_choice");
      hasher.add(choice ? choice->minified() : "");
    }
    hasher.add(kind);
    hasher.add(name);
    hasher.add(std::to_string(tokens));
    token_end += tokens;
    Boundary boundary;
    boundary.key = hasher.key();
    boundary.token_end = token_end;
    if (kind == "call") boundary.kind = BoundaryKind::tool_use;
    if (kind == "result") boundary.kind = BoundaryKind::tool_result;
    if (!ttl.empty()) boundary.marker = ttl_of(ttl);
    boundaries.push_back(boundary);
  }
  if (const JsonValue* automatic = step.find("automatic")) {
    boundaries.back().marker = ttl_of(automatic->as_string());  // C-22
  }
  return boundaries;
}

void check_usage(const Usage& usage, const JsonValue& expected) {
  CHECK(usage.input_tokens == at(expected, "input").as_integer());
  CHECK(usage.cache_creation_5m == at(expected, "write_5m").as_integer());
  CHECK(usage.cache_creation_1h == at(expected, "write_1h").as_integer());
  CHECK(usage.cache_read_input_tokens == at(expected, "read").as_integer());
}

void run(const JsonValue& vector, const JsonValue& keys) {
  Ledger ledger;
  TimePoint now{};
  int number = 0;
  for (const JsonValue& step : at(vector, "steps").as_array()) {
    CAPTURE(++number);
    now += std::chrono::seconds(integer_or(step, "advance", 0));
    const JsonValue& key = at(keys, string_or(step, "key", "alice"));
    const Scope scope{at(key, "organization").as_string(), at(key, "workspace").as_string()};
    const std::string model = string_or(step, "model", at(vector, "model").as_string());
    std::vector<CachePlan> plans;
    for (std::int64_t i = integer_or(step, "parallel", 1); i > 0; --i) {
      plans.push_back(ledger.lookup(scope, model, boundaries_of(step, model), now));
    }
    for (const CachePlan& plan : plans) {
      check_usage(plan.usage, at(step, "expect"));
      check_usage(ledger.settle(plan, plan.prompt_tokens, now), at(step, "expect"));
      ledger.check_integrity();
    }
  }
  CHECK(ledger.entries_lost() == 0);
}

}  // namespace

TEST_CASE("the ledger gives every vector's numbers") {
  const JsonValue table = read_vectors();
  for (const JsonValue& vector : at(table, "vectors").as_array()) {
    const JsonValue* not_on = vector.find("not_on");
    if (not_on && not_on->find("ledger")) continue;
    INFO(at(vector, "id").as_string(), ": ", at(vector, "title").as_string());
    run(vector, at(table, "keys"));
  }
}

TEST_CASE("V1 to V23 are all in the table, and the ledger runs all that it can see") {
  std::vector<std::string> ids;
  int on_ledger = 0;
  const JsonValue table = read_vectors();
  for (const JsonValue& vector : at(table, "vectors").as_array()) {
    ids.push_back(at(vector, "id").as_string());
    CAPTURE(ids.back());
    const JsonValue* not_on = vector.find("not_on");
    const JsonValue* reason = not_on ? not_on->find("ledger") : nullptr;
    if (reason == nullptr) {
      ++on_ledger;
      continue;
    }
    const std::string& why = reason->as_string();
    CHECK((why.starts_with("a validation error") || why.starts_with("the request parser decides")
           || why == "names are resolved before the ledger is asked"));
  }
  for (int i = 1; i <= 23; ++i) {
    std::string id = "V";
    id += std::to_string(i);
    CHECK(std::count(ids.begin(), ids.end(), id) == 1);
  }
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == ids.size());
  CHECK(ids.size() >= 23 + 60);
  CHECK(on_ledger >= 100);
}
