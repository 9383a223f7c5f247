#include "gateway/engine/block_pool.h"

#include "tests/engine/schedule_bench.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace incipit::gateway {

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr int block_tokens = 4;

BlockHash always_the_same(const BlockHash& /*parent*/, std::span<const std::int32_t> /*tokens*/) {
  return {7, 7};
}

Tokens concat(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A pool whose sequences are plain token lists, computed in one go.
struct PoolBench {
  explicit PoolBench(int blocks, ChainHash hash = xxh3_chain)
      : pool(blocks, block_tokens, Digest{}, hash) {}

  // Computes a sequence from nothing; its blocks are in use until `release`.
  BlockTable compute(const Tokens& tokens, const Digest& salt = {}) {
    BlockTable table;
    for (std::size_t room = 0; room < tokens.size(); room += block_tokens) {
      table.push_back(pool.allocate(at_second(now)));
      REQUIRE(table.back() != BlockPool::none);
    }
    pool.record(table, salt, tokens, 0, static_cast<int>(tokens.size()));
    pool.check_integrity();
    return table;
  }

  void release(const BlockTable& table) {
    pool.release(table, at_second(now));
    pool.check_integrity();
  }

  void cache(const Tokens& tokens, const Digest& salt = {}) { release(compute(tokens, salt)); }

  void cache_protected(const Tokens& tokens, Ttl ttl, double seconds) {
    const BlockTable table = compute(tokens);
    pool.protect(table, ttl, at_second(now + seconds));
    release(table);
  }

  // Tokens of a prompt whose KV is resident.
  int resident(const Tokens& tokens, const Digest& salt = {}) const {
    const BlockIndex::Match match = pool.match(salt, tokens);
    return static_cast<int>(match.full.size()) * block_tokens + match.tail_tokens;
  }

  // Takes blocks for good, as pressure.
  void squeeze(int count) {
    for (int i = 0; i < count; ++i) {
      REQUIRE(pool.allocate(at_second(now)) != BlockPool::none);
      pool.check_integrity();
    }
  }

  double now = 0;
  BlockPool pool;
};

const Tokens a{1, 2, 3, 4}, b{5, 6, 7, 8}, c{9, 10, 11, 12}, d{13, 14, 15, 16};

}  // namespace

TEST_CASE("a cached path is found whole, in part, and to the token") {
  PoolBench bench(8);
  const Tokens whole = concat(concat(a, b), {9, 10});
  bench.cache(whole);
  CHECK(bench.resident(whole) == 10);
  CHECK(bench.resident(concat(whole, {11, 12, 13})) == 10);
  CHECK(bench.resident(concat(concat(a, b), {9, 99})) == 9);
  CHECK(bench.resident(concat(a, {5, 6, 99})) == 6);
  CHECK(bench.resident({1, 2}) == 2);
  CHECK(bench.resident({2, 2}) == 0);
  CHECK(bench.resident(b) == 0);
  CHECK(bench.pool.cached() == 3);
}

TEST_CASE("what is not computed yet is not found") {
  PoolBench bench(8);
  const Tokens whole = concat(a, b);
  BlockTable table{bench.pool.allocate(at_second(0)), bench.pool.allocate(at_second(0))};
  CHECK(bench.resident(whole) == 0);
  bench.pool.record(table, {}, whole, 0, 3);
  CHECK(bench.resident(whole) == 3);
  bench.pool.record(table, {}, whole, 3, 6);
  CHECK(bench.resident(whole) == 6);
}

TEST_CASE("different salts share nothing") {
  PoolBench bench(8);
  Digest other{};
  other[15] = 1;
  bench.cache(concat(a, b));
  CHECK(bench.resident(concat(a, b), other) == 0);
  bench.cache(concat(a, b), other);
  CHECK(bench.pool.cached() == 4);
  CHECK(bench.resident(concat(a, b), other) == 8);
}

TEST_CASE("when every hash collides, tokens and parents still decide") {
  PoolBench bench(16, always_the_same);
  Digest other{};
  other[0] = 1;
  bench.cache(concat(concat(a, b), c));
  bench.cache(concat(b, a));
  bench.cache(concat(c, b), other);
  CHECK(bench.resident(concat(concat(a, b), c)) == 12);
  CHECK(bench.resident(concat(b, a)) == 8);
  CHECK(bench.resident(concat(c, b)) == 0);
  CHECK(bench.resident(concat(a, c)) == 4);
  CHECK(bench.resident(concat(concat(b, a), c)) == 8);
  CHECK(bench.resident(concat(c, b), other) == 8);
  CHECK(bench.resident(a, other) == 0);
}

TEST_CASE("a slot that is used again under a colliding hash is not taken for its old content") {
  PoolBench bench(3, always_the_same);
  bench.cache(concat(concat(a, b), c));
  bench.cache(concat(concat(d, b), a));  // takes over all three slots
  CHECK(bench.pool.evictions() == 3);
  CHECK(bench.resident(concat(concat(a, b), c)) == 0);
  CHECK(bench.resident(concat(concat(d, b), a)) == 12);
}

TEST_CASE("blocks are evicted least recently used first, leaves before their parents") {
  PoolBench bench(4);
  bench.cache(concat(a, b));
  bench.cache(concat(c, d));
  bench.squeeze(1);
  CHECK(bench.resident(concat(a, b)) == 4);
  bench.squeeze(1);
  CHECK(bench.resident(concat(a, b)) == 0);
  CHECK(bench.resident(concat(c, d)) == 8);
  bench.squeeze(1);
  CHECK(bench.resident(concat(c, d)) == 4);
  CHECK(bench.pool.evictions() == 3);
  CHECK(bench.pool.protected_evictions() == 0);
}

TEST_CASE("a block that was used again is evicted later") {
  PoolBench bench(2);
  bench.cache(a);
  bench.cache(b);
  const BlockIndex::Match match = bench.pool.match({}, a);
  bench.pool.hold(match.full);
  bench.release(match.full);
  bench.squeeze(1);
  CHECK(bench.resident(a) == 4);
  CHECK(bench.resident(b) == 0);
}

TEST_CASE("the victim is free, then unprotected, then 5-minute, then 1-hour") {
  PoolBench bench(5);
  bench.cache_protected(a, Ttl::one_hour, 3600);
  bench.cache_protected(b, Ttl::five_minutes, 300);
  bench.cache(c);
  bench.squeeze(2);  // the free ones
  CHECK(bench.pool.evictions() == 0);
  bench.squeeze(1);
  CHECK(bench.resident(c) == 0);
  CHECK(bench.pool.protected_evictions() == 0);
  bench.squeeze(1);
  CHECK(bench.resident(b) == 0);
  CHECK(bench.resident(a) == 4);
  CHECK(bench.pool.protected_evictions() == 1);
  bench.squeeze(1);  // a bias, not a lock
  CHECK(bench.resident(a) == 0);
  CHECK(bench.pool.protected_evictions() == 2);
  CHECK(bench.pool.allocate(at_second(0)) == BlockPool::none);
}

TEST_CASE("protection ends with its deadline, to the nanosecond") {
  for (const bool is_expired : {false, true}) {
    PoolBench bench(2);
    bench.cache_protected(a, Ttl::five_minutes, 300);
    bench.cache(b);
    // Just before 300 s the unprotected one goes although it was used later; at 300 s age decides.
    bench.now = is_expired ? 300 : 300 - 1e-6;
    bench.squeeze(1);
    CHECK(bench.resident(a) == (is_expired ? 0 : 4));
    CHECK(bench.resident(b) == (is_expired ? 4 : 0));
    CHECK(bench.pool.protected_evictions() == 0);
  }
}

TEST_CASE("a 5-minute read of a 1-hour path keeps it for five minutes beyond the hour") {
  PoolBench bench(2);
  bench.cache_protected(a, Ttl::one_hour, 3600);
  bench.now = 3500;
  const BlockIndex::Match match = bench.pool.match({}, a);
  bench.pool.hold(match.full);
  bench.pool.protect(match.full, Ttl::five_minutes, at_second(3800));
  bench.release(match.full);
  bench.now = 3700;
  bench.cache(b);
  bench.squeeze(1);
  CHECK(bench.resident(a) == 4);
  CHECK(bench.resident(b) == 0);
}

TEST_CASE("a 5-minute leaf under an expired 1-hour parent is evicted before it") {
  PoolBench bench(3);
  bench.cache_protected(a, Ttl::one_hour, 3600);
  bench.now = 3550;
  bench.cache_protected(concat(a, b), Ttl::five_minutes, 300);
  bench.now = 3700;  // the hour is over, the leaf lives
  bench.cache(c);
  bench.squeeze(1);
  CHECK(bench.resident(c) == 0);
  CHECK(bench.resident(concat(a, b)) == 8);
  bench.squeeze(1);
  CHECK(bench.resident(concat(a, b)) == 4);
}

TEST_CASE("a refreshed path outlives one written later") {
  PoolBench bench(2);
  bench.cache_protected(a, Ttl::five_minutes, 300);
  bench.now = 10;
  bench.cache_protected(b, Ttl::five_minutes, 300);
  bench.now = 20;
  const BlockIndex::Match match = bench.pool.match({}, a);
  bench.pool.hold(match.full);
  bench.pool.protect(match.full, Ttl::five_minutes, at_second(320));
  bench.release(match.full);
  bench.squeeze(1);
  CHECK(bench.resident(a) == 4);
  CHECK(bench.resident(b) == 0);
}

TEST_CASE("using a protected path without refreshing it does not prolong it") {
  PoolBench bench(2);
  bench.cache_protected(a, Ttl::five_minutes, 300);
  bench.now = 10;
  bench.cache_protected(b, Ttl::five_minutes, 300);
  const BlockIndex::Match match = bench.pool.match({}, a);
  bench.pool.hold(match.full);
  bench.release(match.full);
  bench.squeeze(1);
  CHECK(bench.resident(a) == 0);
  CHECK(bench.resident(b) == 4);
}

TEST_CASE("a block computed twice is kept once") {
  PoolBench bench(8);
  const BlockTable first = bench.compute(concat(a, b));
  const BlockTable second = bench.compute(concat(concat(a, b), {9}));
  CHECK(second[0] == first[0]);
  CHECK(second[1] == first[1]);
  CHECK(bench.pool.references(first[1]) == 2);
  CHECK(bench.pool.in_use() == 3);
  bench.release(first);
  bench.release(second);
  CHECK(bench.pool.cached() == 3);
  CHECK(bench.pool.in_use() == 0);
}

TEST_CASE("of two tails that begin alike only the longer stays, with the protection of both") {
  PoolBench bench(4);
  const Tokens shorter = concat(a, {5}), longer = concat(a, {5, 6, 7});
  bench.cache_protected(shorter, Ttl::one_hour, 3600);
  bench.cache(longer);
  CHECK(bench.pool.cached() == 2);
  bench.cache(shorter);
  CHECK(bench.pool.cached() == 2);
  CHECK(bench.resident(longer) == 7);
  bench.cache_protected(b, Ttl::five_minutes, 300);
  bench.squeeze(2);
  CHECK(bench.resident(longer) == 7);
  CHECK(bench.resident(b) == 0);
}

TEST_CASE("a cached tail that swallows a protected shorter one is protected from then on") {
  PoolBench bench(4);
  const Tokens shorter = concat(a, {5}), longer = concat(a, {5, 6, 7});
  bench.cache(longer);
  bench.cache_protected(shorter, Ttl::one_hour, 3600);
  CHECK(bench.pool.cached() == 2);
  bench.cache_protected(b, Ttl::five_minutes, 300);
  bench.squeeze(2);
  CHECK(bench.resident(longer) == 7);
  CHECK(bench.resident(b) == 0);
}

TEST_CASE("an empty block goes back to the free ones") {
  PoolBench bench(2);
  const BlockTable table{bench.pool.allocate(at_second(0))};
  CHECK(bench.pool.in_use() == 1);
  bench.release(table);
  CHECK(bench.pool.available() == 2);
  CHECK(bench.pool.cached() == 0);
}

TEST_CASE("forgetting a path frees what nothing else builds on") {
  PoolBench bench(8);
  bench.cache(concat(a, d));
  const BlockTable table = bench.compute(concat(concat(a, b), {9}));
  bench.release(table);
  bench.pool.forget(table, 0);
  bench.pool.check_integrity();
  CHECK(bench.resident(concat(a, b)) == 4);
  CHECK(bench.resident(concat(a, d)) == 8);
}

TEST_CASE("the chain hash depends on parent, tokens and their order") {
  const BlockHash root{1, 2};
  const BlockHash one = xxh3_chain(root, a);
  CHECK(one == xxh3_chain(root, a));
  CHECK_FALSE(one == xxh3_chain({1, 3}, a));
  CHECK_FALSE(one == xxh3_chain({2, 2}, a));
  CHECK_FALSE(one == xxh3_chain(root, Tokens{1, 2, 4, 3}));
  CHECK_FALSE(xxh3_chain(one, b) == xxh3_chain(xxh3_chain(root, b), a));
}

}  // namespace incipit::gateway
