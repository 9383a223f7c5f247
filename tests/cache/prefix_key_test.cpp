#include "gateway/cache/prefix_key.h"

#include <doctest/doctest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

using incipit::gateway::PrefixHasher;
using incipit::gateway::PrefixKey;

namespace {

PrefixKey key_of(const std::vector<std::string>& parts) {
  PrefixHasher hasher;
  for (const std::string& part : parts)
    hasher.add(part);
  return hasher.key();
}

// The definition once more, in one shot: 8 bytes of little-endian length, then the bytes.
PrefixKey one_shot(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) {
    for (int i = 0; i < 8; ++i) {
      all += static_cast<char>((static_cast<unsigned long long>(part.size()) >> (8 * i)) & 0xff);
    }
    all += part;
  }
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return {hash.high64, hash.low64};
}

}  // namespace

TEST_CASE("a key equals the one-shot hash of the length-delimited parts") {
  std::vector<std::string> parts;
  for (std::size_t size :
       {0, 1, 7, 8, 15, 16, 17, 128, 129, 240, 241, 255, 256, 257, 4096, 100000}) {
    parts.emplace_back(size, static_cast<char>('a' + size % 26));
    CHECK(key_of(parts) == one_shot(parts));
  }
}

TEST_CASE("parts that join to the same bytes have different keys") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (const auto& parts : std::vector<std::vector<std::string>>{
           {}, {""}, {"", ""}, {"abc"}, {"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}}) {
    const PrefixKey key = key_of(parts);
    CHECK(seen.emplace(key.high, key.low).second);
  }
}

TEST_CASE("a change in any part changes the key of every later boundary and of no earlier one") {
  const std::vector<std::string> parts = {"tool A", "tool B", "system", "user 1"};
  for (std::size_t changed = 0; changed < parts.size(); ++changed) {
    PrefixHasher original;
    PrefixHasher edited;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      original.add(parts[i]);
      edited.add(i == changed ? parts[i] + "!" : parts[i]);
      CHECK((original.key() == edited.key()) == (i < changed));
    }
  }
}

TEST_CASE("taking a key does not disturb what follows") {
  PrefixHasher asked;
  PrefixHasher silent;
  for (int i = 0; i < 2000; ++i) {
    const std::string part(static_cast<std::size_t>(i % 37), 'x');
    asked.add(part);
    silent.add(part);
    CHECK(asked.key() == asked.key());
  }
  CHECK(asked.key() == silent.key());
}

TEST_CASE("a moved hasher goes on where it stood") {
  PrefixHasher first;
  first.add("tools");
  PrefixHasher second = std::move(first);
  second.add("system");
  CHECK(second.key() == key_of({"tools", "system"}));
}

TEST_CASE("a key costs the same after a long prompt as after a short one") {
  // 100,000 keys of a 64 MiB prompt: if a key reread the prompt this would take an hour.
  PrefixHasher hasher;
  hasher.add(std::string(64u << 20, 'p'));
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t sum = 0;
  for (int i = 0; i < 100000; ++i)
    sum += hasher.key().low;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  CHECK(sum == 100000 * hasher.key().low);
  CHECK(spent.count() < 5.0);
}
