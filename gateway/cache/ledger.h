// What the API promises: live cache entries by scope, model and prefix key, and the usage numbers
// that follow from them. Knows nothing of tokens' values or KV memory.
//
// A request takes three steps: `lookup` when it arrives, `settle` when its prefill has ended and
// the engine has said how many tokens of KV it really reused, and nothing if it fails before that
// (C-44). Between the two, other requests may look up: they do not see what is not yet settled
// (C-56..C-58).
//
// Threads: any; one mutex inside. Time is an argument.
#pragma once

#include "gateway/cache/prefix_key.h"
#include "gateway/clock.h"
#include "incipit/usage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// Who may share entries (C-59..C-61). Derived from the API key.
struct Scope {
  std::string organization;
  std::string workspace;
  friend auto operator<=>(const Scope&, const Scope&) = default;
};

// How a model name caches (section 10).
struct CacheProfile {
  int minimum_tokens = 1024;
};

// The profile of a canonical model id; names that are not in the table get the default.
[[nodiscard]] CacheProfile cache_profile(std::string_view model);

// The duration of a TTL class.
[[nodiscard]] Duration lifetime(Ttl ttl);

// What the engine should know of a prefix: prefer to keep its blocks until then (a bias, not a
// lock).
struct Protection {
  int token_end = 0;
  Ttl ttl = Ttl::five_minutes;
  TimePoint expires;
};

// What a request reads and will write, decided at its arrival.
struct CachePlan {
  Scope scope;
  std::string model;
  TimePoint start;  // lifetimes count from here (C-17)
  int prompt_tokens = 0;
  std::vector<Boundary> boundaries;  // as given
  int minimum_tokens = 0;
  int matched = -1;  // index into boundaries; -1 = miss
  Usage usage;       // what is promised, output_tokens 0
  std::vector<Protection> protections;
  std::uint64_t generation = 0;  // of the ledger at lookup: tells later writes from earlier ones
};

// One live entry, for `GET /incipit/entries`.
struct EntryView {
  Scope scope;
  std::string model;
  PrefixKey key;
  int tokens = 0;
  Ttl ttl = Ttl::five_minutes;
  double seconds_left = 0;
  std::int64_t hits = 0;
};

class Ledger {
 public:
  // Beyond this many live entries the one that would expire first makes room. An entry takes about
  // 200 bytes, so the default bounds the ledger to some 200 MB however many distinct prefixes a
  // client marks within an hour.
  static constexpr std::size_t default_capacity = std::size_t{1} << 20;

  explicit Ledger(std::size_t capacity = default_capacity);
  ~Ledger();

  // Lookback, minimum length, TTL (sections 6-8, 10, reference algorithm of section 25). Refreshes
  // the entries read (C-18, C-40). `model` is the canonical id (C-5, C-6).
  [[nodiscard]] CachePlan lookup(Scope scope, std::string model, std::vector<Boundary> boundaries,
                                 TimePoint start);

  // Prefill has ended with `reused_tokens` of the prompt taken from KV memory (the last prompt
  // token counts as reused when everything before it was). Publishes the entries to write and
  // returns the final usage: a read no longer than `reused_tokens`; what the plan promised beyond
  // it is reported as written or plain input, its entry replaced or removed, and counted as lost.
  Usage settle(const CachePlan& plan, int reused_tokens, TimePoint now);

  [[nodiscard]] std::vector<EntryView> entries(TimePoint now) const;
  [[nodiscard]] std::int64_t entries_lost() const;
  // Entries in memory: the live ones and those that have expired and not been swept yet.
  [[nodiscard]] std::size_t entries_held() const;
  // Throws std::logic_error that says what is inconsistent. For tests.
  void check_integrity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
