// What the vectors cannot say: time within a request, loss, protections, bounds, views, threads.
#include "gateway/cache/ledger.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

using incipit::Ttl;
using incipit::Usage;
using namespace incipit::gateway;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint t0{};
const Scope scope{"org", "workspace"};
const std::string model = "claude-sonnet-4-6";  // minimum 1,024

struct Block {
  std::string content;
  int tokens;
  std::optional<Ttl> marker = {};
  BoundaryKind kind = BoundaryKind::other;
};

std::vector<Boundary> prompt(const std::vector<Block>& blocks) {
  std::vector<Boundary> boundaries;
  PrefixHasher hasher;
  int end = 0;
  for (const Block& block : blocks) {
    hasher.add(block.content);
    end += block.tokens;
    boundaries.push_back({hasher.key(), end, block.kind, block.marker});
  }
  return boundaries;
}

constexpr auto m5 = Ttl::five_minutes;
constexpr auto h1 = Ttl::one_hour;

Usage usage(std::int64_t input, std::int64_t w5, std::int64_t w1, std::int64_t read) {
  Usage u;
  u.input_tokens = input;
  u.cache_creation_5m = w5;
  u.cache_creation_1h = w1;
  u.cache_read_input_tokens = read;
  return u;
}

// One whole request that reuses everything it was promised.
Usage ask(Ledger& ledger, const std::vector<Block>& blocks, TimePoint now) {
  const CachePlan plan = ledger.lookup(scope, model, prompt(blocks), now);
  const Usage settled = ledger.settle(plan, plan.prompt_tokens, now);
  CHECK(settled == plan.usage);
  ledger.check_integrity();
  return settled;
}

const std::vector<Block> marked = {{"system", 2000, m5}, {"user", 10}};

}  // namespace

TEST_CASE("every model of the table has its minimum") {
  const std::map<std::string, int> minimums = {{"claude-fable-5-2", 512},
                                               {"claude-mythos-5-2", 512},
                                               {"claude-fable-5-1", 512},
                                               {"claude-mythos-5-1", 512},
                                               {"claude-fable-5", 512},
                                               {"claude-mythos-5", 512},
                                               {"claude-opus-5-5", 512},
                                               {"claude-opus-5", 512},
                                               {"claude-sonnet-5-5", 512},
                                               {"claude-haiku-5-5", 512},
                                               {"claude-opus-4-8", 1024},
                                               {"claude-sonnet-5", 1024},
                                               {"claude-sonnet-4-6", 1024},
                                               {"claude-sonnet-4-5", 1024},
                                               {"claude-sonnet-4-5-20250929", 1024},
                                               {"claude-opus-4-1-20250805", 1024},
                                               {"claude-opus-4-20250514", 1024},
                                               {"claude-sonnet-4-20250514", 1024},
                                               {"claude-opus-4-7", 2048},
                                               {"claude-mythos-preview", 2048},
                                               {"claude-3-5-haiku-20241022", 2048},
                                               {"claude-3-5-haiku-latest", 2048},
                                               {"claude-opus-4-6", 4096},
                                               {"claude-opus-4-5", 4096},
                                               {"claude-opus-4-5-20251101", 4096},
                                               {"claude-haiku-4-5", 4096},
                                               {"claude-haiku-4-5-20251001", 4096}};
  for (const auto& [name, tokens] : minimums) {
    CAPTURE(name);
    CHECK(cache_profile(name).minimum_tokens == tokens);
    Ledger ledger;
    const auto at_minimum = prompt({{"s", tokens, m5}, {"u", 1}});
    const auto below = prompt({{"s", tokens - 1, m5}, {"u", 1}});
    CHECK(ledger.lookup(scope, name, at_minimum, t0).usage == usage(1, tokens, 0, 0));
    CHECK(ledger.lookup(scope, name, below, t0).usage == usage(tokens, 0, 0, 0));
  }
  for (const char* unknown : {"", "-", "tiny", "SmolLM2-135M-Instruct", "claude-opus-9"}) {
    CHECK(cache_profile(unknown).minimum_tokens == 1024);
  }
}

TEST_CASE("a lifetime counts from the start of the request, not from the end of its prefill") {
  Ledger ledger;
  const CachePlan plan = ledger.lookup(scope, model, prompt(marked), t0);
  (void)ledger.settle(plan, 0, t0 + 240s);  // a response of four minutes
  CHECK(ask(ledger, marked, t0 + 299s) == usage(10, 0, 0, 2000));

  Ledger other;
  const CachePlan slow = other.lookup(scope, model, prompt(marked), t0);
  (void)other.settle(slow, 0, t0 + 240s);
  CHECK(ask(other, marked, t0 + 300s) == usage(10, 2000, 0, 0));
}

TEST_CASE("a prefill longer than the lifetime leaves no entry") {
  Ledger ledger;
  const CachePlan plan = ledger.lookup(scope, model, prompt(marked), t0);
  CHECK(ledger.settle(plan, 0, t0 + 301s) == usage(10, 2000, 0, 0));
  CHECK(ledger.entries(t0 + 301s).empty());
  ledger.check_integrity();
}

TEST_CASE("what is not yet settled is not seen; a third request after it reads") {
  // Section 11: two start at 0 s, the first begins to answer at 1.2 s, a third starts at 1.3 s.
  Ledger ledger;
  const std::vector<Block> blocks = {{"system", 10000, m5}, {"user", 10}};
  const CachePlan first = ledger.lookup(scope, model, prompt(blocks), t0);
  const CachePlan second = ledger.lookup(scope, model, prompt(blocks), t0);
  CHECK(ledger.settle(first, 0, t0 + 1200ms) == usage(10, 10000, 0, 0));
  const CachePlan third = ledger.lookup(scope, model, prompt(blocks), t0 + 1300ms);
  CHECK(third.usage == usage(10, 0, 0, 10000));
  // The second keeps its miss although its KV was there by then (C-58).
  CHECK(ledger.settle(second, 10000, t0 + 1400ms) == usage(10, 10000, 0, 0));
  CHECK(ledger.entries(t0 + 2s).size() == 1);
}

TEST_CASE("a request that is never settled writes nothing") {
  Ledger ledger;
  (void)ledger.lookup(scope, model, prompt(marked), t0);
  CHECK(ledger.entries(t0).empty());
  CHECK(ask(ledger, marked, t0 + 1s) == usage(10, 2000, 0, 0));
}

TEST_CASE("parallel writes of both classes leave an hour, in either order") {
  for (const bool hour_first : {true, false}) {
    Ledger ledger;
    const CachePlan hour =
        ledger.lookup(scope, model, prompt({{"system", 2000, h1}, {"user", 10}}), t0);
    const CachePlan minutes = ledger.lookup(scope, model, prompt(marked), t0);
    CHECK(ledger.settle(hour_first ? hour : minutes, 0, t0).cache_creation_input_tokens() == 2000);
    CHECK(ledger.settle(hour_first ? minutes : hour, 0, t0).cache_creation_input_tokens() == 2000);
    REQUIRE(ledger.entries(t0).size() == 1);
    CHECK(ledger.entries(t0)[0].ttl == h1);
    CHECK(ledger.entries(t0)[0].seconds_left == doctest::Approx(3600));
    CHECK(ask(ledger, marked, t0 + 3599s) == usage(10, 0, 0, 2000));
  }
}

TEST_CASE("requests that reach the ledger out of order do not shorten a lifetime") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  (void)ledger.lookup(scope, model, prompt(marked), t0 + 200s);
  (void)ledger.lookup(scope, model, prompt(marked), t0 + 100s);  // started earlier, came later
  CHECK(ledger.entries(t0 + 200s).at(0).seconds_left == doctest::Approx(300));
}

TEST_CASE("a lost read becomes a shorter read and a write at the marked place") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  const CachePlan plan = ledger.lookup(scope, model, prompt(marked), t0 + 10s);
  CHECK(plan.usage == usage(10, 0, 0, 2000));
  CHECK(ledger.settle(plan, 1500, t0 + 11s) == usage(10, 500, 0, 1500));
  CHECK(ledger.entries_lost() == 1);
  // Replaced: it lives from the second request on, and nobody has read the new one yet.
  const std::vector<EntryView> entries = ledger.entries(t0 + 10s);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].seconds_left == doctest::Approx(300));
  CHECK(entries[0].hits == 0);
  CHECK(ask(ledger, marked, t0 + 20s) == usage(10, 0, 0, 2000));
  CHECK(ledger.entries_lost() == 1);
}

TEST_CASE("a lost read of everything is a full write") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  const CachePlan plan = ledger.lookup(scope, model, prompt(marked), t0);
  CHECK(ledger.settle(plan, 0, t0) == usage(10, 2000, 0, 0));
  CHECK(ledger.entries_lost() == 1);
}

TEST_CASE(
    "a lost entry that the request does not mark is removed; what it marks beyond is written") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  const std::vector<Block> moved = {
      {"system", 2000}, {"user", 10}, {"answer", 90}, {"u2", 100, m5}};
  const CachePlan plan = ledger.lookup(scope, model, prompt(moved), t0);
  CHECK(plan.usage == usage(0, 200, 0, 2000));
  CHECK(ledger.settle(plan, 640, t0) == usage(0, 1560, 0, 640));
  const std::vector<EntryView> entries = ledger.entries(t0);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].tokens == 2200);
  CHECK(ledger.entries_lost() == 1);
}

TEST_CASE("a loss between two markers keeps the entry before it and replaces the one after it") {
  Ledger ledger;
  const std::vector<Block> both = {{"system", 2000, h1}, {"conversation", 500, m5}, {"user", 5}};
  (void)ask(ledger, both, t0);
  const CachePlan plan = ledger.lookup(scope, model, prompt(both), t0 + 60s);
  CHECK(plan.usage == usage(5, 0, 0, 2500));
  CHECK(ledger.settle(plan, 2048, t0 + 60s) == usage(5, 452, 0, 2048));
  std::map<int, double> left;
  for (const EntryView& entry : ledger.entries(t0 + 60s))
    left[entry.tokens] = entry.seconds_left;
  CHECK(left == std::map<int, double>{{2000, 3600}, {2500, 300}});
  CHECK(ledger.entries_lost() == 1);
}

TEST_CASE("a loss that begins exactly at a marked place leaves its entry as it was") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  (void)ask(ledger, marked, t0);
  const std::vector<Block> both = {{"system", 2000, m5}, {"conversation", 500, m5}, {"user", 5}};
  (void)ask(ledger, both, t0);
  const CachePlan plan = ledger.lookup(scope, model, prompt(both), t0);
  CHECK(ledger.settle(plan, 2000, t0) == usage(5, 500, 0, 2000));
  std::map<int, std::int64_t> hits;
  for (const EntryView& entry : ledger.entries(t0))
    hits[entry.tokens] = entry.hits;
  CHECK(hits == std::map<int, std::int64_t>{{2000, 2}, {2500, 0}});
}

TEST_CASE("a loss before both markers splits the write by class again") {
  Ledger ledger;
  const std::vector<Block> both = {{"system", 2000, h1}, {"conversation", 500, m5}, {"user", 5}};
  (void)ask(ledger, both, t0);
  const CachePlan plan = ledger.lookup(scope, model, prompt(both), t0);
  CHECK(ledger.settle(plan, 128, t0) == usage(5, 500, 1872, 128));
  CHECK(ledger.entries_lost() == 1);
}

TEST_CASE("a lost hour entry under a 5-minute marker is replaced by a 5-minute entry") {
  Ledger ledger;
  (void)ask(ledger, {{"system", 2000, h1}, {"user", 10}}, t0);
  const CachePlan plan = ledger.lookup(scope, model, prompt(marked), t0);
  CHECK(ledger.settle(plan, 0, t0) == usage(10, 2000, 0, 0));
  REQUIRE(ledger.entries(t0).size() == 1);
  CHECK(ledger.entries(t0)[0].ttl == m5);
}

TEST_CASE("a loss does not remove what another request has written since") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  const std::vector<Block> unmarked = {{"system", 2000}, {"other", 100, m5}};
  const CachePlan late = ledger.lookup(scope, model, prompt(unmarked), t0);
  const CachePlan early = ledger.lookup(scope, model, prompt(marked), t0);
  (void)ledger.settle(early, 0, t0);  // finds the loss and writes the prefix anew
  (void)ledger.settle(late, 0, t0);   // found the same loss, before that
  CHECK(ledger.entries_lost() == 2);
  std::set<int> tokens;
  for (const EntryView& entry : ledger.entries(t0))
    tokens.insert(entry.tokens);
  CHECK(tokens == std::set<int>{2000, 2100});
}

TEST_CASE("more reuse than promised is not a read, and nonsense from the engine is bounded") {
  Ledger ledger;
  const CachePlan cold = ledger.lookup(scope, model, prompt(marked), t0);
  CHECK(ledger.settle(cold, 1700, t0) == usage(10, 2000, 0, 0));
  const CachePlan warm = ledger.lookup(scope, model, prompt(marked), t0);
  CHECK(ledger.settle(warm, 1 << 30, t0) == usage(10, 0, 0, 2000));
  CHECK(ledger.settle(warm, -5, t0) == usage(10, 2000, 0, 0));
}

TEST_CASE("protections name what is read and what will be written, with their deadlines") {
  Ledger ledger;
  (void)ask(ledger, {{"system", 2000, h1}, {"user", 10}}, t0);
  const CachePlan plan = ledger.lookup(
      scope, model, prompt({{"system", 2000, h1}, {"conversation", 500, m5}, {"user", 5}}),
      t0 + 60s);
  REQUIRE(plan.protections.size() == 2);
  CHECK(plan.protections[0].token_end == 2000);
  CHECK(plan.protections[0].ttl == h1);
  CHECK(plan.protections[0].expires == t0 + 60s + 1h);
  CHECK(plan.protections[1].token_end == 2500);
  CHECK(plan.protections[1].ttl == m5);
  CHECK(plan.protections[1].expires == t0 + 60s + 5min);
}

TEST_CASE("an entry shows its scope, model, size, class, time left and hits") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  (void)ask(ledger, marked, t0 + 100s);
  (void)ask(ledger, marked, t0 + 200s);
  const std::vector<EntryView> entries = ledger.entries(t0 + 260s);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].scope == scope);
  CHECK(entries[0].model == model);
  CHECK(entries[0].key == prompt(marked)[0].key);
  CHECK(entries[0].tokens == 2000);
  CHECK(entries[0].ttl == m5);
  CHECK(entries[0].seconds_left == doctest::Approx(240));
  CHECK(entries[0].hits == 2);
  CHECK(ledger.entries(t0 + 500s).empty());
}

TEST_CASE("scopes and models share nothing") {
  Ledger ledger;
  (void)ask(ledger, marked, t0);
  for (const Scope& other : {Scope{"org", "other"}, Scope{"other", "workspace"}, Scope{}}) {
    CHECK(ledger.lookup(other, model, prompt(marked), t0).matched == -1);
  }
  CHECK(ledger.lookup(scope, "claude-sonnet-5", prompt(marked), t0).matched == -1);
  CHECK(ledger.lookup(scope, model, prompt(marked), t0).matched == 0);
}

TEST_CASE("an empty prompt and a prompt without markers are all input") {
  Ledger ledger;
  CHECK(ledger.lookup(scope, model, {}, t0).usage == Usage{});
  const CachePlan plan = ledger.lookup(scope, model, prompt({{"a", 3000}, {"b", 7}}), t0);
  CHECK(plan.usage == usage(3007, 0, 0, 0));
  CHECK(ledger.settle(plan, 2000, t0) == usage(3007, 0, 0, 0));
  CHECK(ledger.entries(t0).empty());
}

TEST_CASE("at capacity the entry that expires first makes room") {
  Ledger ledger(8);
  for (int i = 0; i < 8; ++i) {
    (void)ask(ledger, {{std::to_string(i), 2000, i == 0 ? h1 : m5}, {"u", 1}}, t0 + i * 1s);
  }
  CHECK(ledger.entries(t0 + 8s).size() == 8);
  (void)ask(ledger, {{"8", 2000, m5}, {"u", 1}}, t0 + 8s);
  CHECK(ledger.entries(t0 + 8s).size() == 8);
  const auto matched = [&](const std::string& content) {
    return ledger.lookup(scope, model, prompt({{content, 2000, m5}, {"u", 1}}), t0 + 8s).matched;
  };
  CHECK(matched("0") == 0);   // oldest, but lives an hour
  CHECK(matched("1") == -1);  // the 5-minute entry that would have gone first
  CHECK(matched("2") == 0);
  CHECK(matched("8") == 0);
}

TEST_CASE("expired entries leave memory although nobody asks for them again, a few at a time") {
  Ledger ledger;
  for (int i = 0; i < 900; ++i) {
    (void)ask(ledger, {{std::to_string(i), 2000, m5}, {"u", 1}}, t0);
  }
  (void)ask(ledger, {{"later", 2000, m5}, {"u", 1}}, t0 + 301s);
  CHECK(ledger.entries(t0 + 301s).size() == 1);
  CHECK(ledger.entries_held() > 700);  // one request does not wait for all of them
  for (int i = 0; i < 10; ++i)
    (void)ask(ledger, {{"unmarked", 2000}}, t0 + 301s);
  CHECK(ledger.entries_held() == 1);
}

TEST_CASE("endless new prefixes stay within capacity") {
  // Time moves by a millisecond per request: entries neither expire nor fit.
  Ledger ledger(4096);
  TimePoint now = t0;
  for (int i = 0; i < 200000; ++i) {
    Boundary boundary;
    boundary.key = {static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u,
                    static_cast<std::uint64_t>(i)};
    boundary.token_end = 2000;
    boundary.marker = i % 2 == 0 ? m5 : h1;
    const CachePlan plan = ledger.lookup({"org", std::to_string(i % 7)}, model, {boundary}, now);
    (void)ledger.settle(plan, 0, now);
    now += 1ms;
  }
  CHECK(ledger.entries(now).size() == 4096);
  ledger.check_integrity();
}

TEST_CASE("many threads at once leave a consistent ledger and consistent sums") {
  Ledger ledger(64);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3000; ++i) {
        const TimePoint now = t0 + i * 1s;
        const std::vector<Block> blocks = {
            {std::to_string(i % 50), 2000, h1}, {std::to_string((i + t) % 9), 100, m5}, {"u", 1}};
        const CachePlan plan = ledger.lookup(scope, model, prompt(blocks), now);
        const Usage settled = ledger.settle(plan, (i * 37) % 2101, now);
        if (settled.prompt_tokens() != 2101) ++wrong;
        if (i % 100 == 0) (void)ledger.entries(now);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
  ledger.check_integrity();
}
