// Random request sequences against a slow second opinion. The oracle keeps whole prefixes instead
// of keys, lists instead of indices, and counts every token one by one; it is written from the
// rules of the cache semantics (sections 6 to 8, 11, 12), not from the ledger.
#include "gateway/cache/ledger.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

using incipit::Ttl;
using incipit::Usage;
using namespace incipit::gateway;

namespace {

struct Block {
  int content = 0;
  int tokens = 0;
  BoundaryKind kind = BoundaryKind::other;
  std::optional<Ttl> marker;
};

using Prompt = std::vector<Block>;

constexpr int lifetime_of(Ttl ttl) {
  return ttl == Ttl::one_hour ? 3600 : 300;
}

class Oracle {
 public:
  struct Plan {
    Scope scope;
    std::string model;
    int minimum = 0;
    Prompt prompt;
    int start = 0;
    int matched = 0;  // number of blocks read
    int made_at = 0;
    Usage usage;
  };

  Plan lookup(const Scope& scope, const std::string& model, int minimum, const Prompt& prompt,
              int start) {
    Plan plan{scope, model, minimum, prompt, start, 0, ++events_, {}};
    for (int b = static_cast<int>(prompt.size()); b >= 1 && plan.matched == 0; --b) {
      if (is_breakpoint(plan, b)) plan.matched = walk(plan, b);
    }
    for (int k = 1; k <= plan.matched; ++k) {
      if (k != plan.matched && !is_breakpoint(plan, k)) continue;
      if (Stored* stored = find(plan, k, start)) {
        stored->expires = std::max(stored->expires, start + lifetime_of(stored->ttl));
        if (k == plan.matched) ++stored->hits;
      }
    }
    plan.usage = count(plan, tokens(plan, plan.matched), [&](int k) { return k > plan.matched; });
    return plan;
  }

  Usage settle(const Plan& plan, int reused, int now) {
    const int promised = tokens(plan, plan.matched);
    const int read = std::min(promised, reused);
    const bool is_lost = read < promised;
    ++events_;
    const auto is_written = [&](int k) {
      return is_lost ? tokens(plan, k) > read : k > plan.matched;
    };
    if (is_lost) {
      ++lost;
      for (int k = 1; k <= plan.matched; ++k) {
        const bool rewritten = is_breakpoint(plan, k) && is_written(k);
        if (k != plan.matched && !rewritten) continue;
        std::erase_if(stored_, [&](const Stored& stored) {
          return stored.written_at < plan.made_at && is_same(stored, plan, k);
        });
      }
    }
    for (int k = 1; k <= static_cast<int>(plan.prompt.size()); ++k) {
      if (is_breakpoint(plan, k) && is_written(k)) write(plan, k, now);
    }
    return count(plan, read, is_written);
  }

  // (organization, model, tokens, is an hour, expiry, hits) of all live entries, sorted.
  using Row = std::tuple<std::string, std::string, int, bool, int, std::int64_t>;

  std::vector<Row> rows(int now) const {
    std::vector<Row> rows;
    for (const Stored& stored : stored_) {
      if (stored.expires <= now) continue;
      rows.emplace_back(stored.scope.organization + "/" + stored.scope.workspace, stored.model,
                        stored.tokens, stored.ttl == Ttl::one_hour, stored.expires, stored.hits);
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  std::int64_t lost = 0;

 private:
  struct Stored {
    Scope scope;
    std::string model;
    std::vector<int> contents;
    int tokens;
    Ttl ttl;
    int expires;
    int written_at;
    std::int64_t hits = 0;
  };

  static int tokens(const Plan& plan, int blocks) {
    int sum = 0;
    for (int k = 0; k < blocks; ++k)
      sum += plan.prompt[static_cast<std::size_t>(k)].tokens;
    return sum;
  }

  static bool is_breakpoint(const Plan& plan, int k) {
    return plan.prompt[static_cast<std::size_t>(k - 1)].marker && tokens(plan, k) >= plan.minimum;
  }

  static bool is_same(const Stored& stored, const Plan& plan, int k) {
    if (stored.scope != plan.scope || stored.model != plan.model) return false;
    if (stored.contents.size() != static_cast<std::size_t>(k)) return false;
    for (std::size_t i = 0; i < stored.contents.size(); ++i) {
      if (stored.contents[i] != plan.prompt[i].content) return false;
    }
    return true;
  }

  Stored* find(const Plan& plan, int k, int now) {
    for (Stored& stored : stored_) {
      if (stored.expires > now && is_same(stored, plan, k)) return &stored;
    }
    return nullptr;
  }

  // Groups the blocks up to b into positions first, then walks the last 20 of them backwards.
  int walk(const Plan& plan, int b) {
    std::vector<std::vector<int>> positions;
    for (int k = 1; k <= b; ++k) {
      const BoundaryKind kind = plan.prompt[static_cast<std::size_t>(k - 1)].kind;
      const bool joins = k > 1 && kind != BoundaryKind::other
                         && kind == plan.prompt[static_cast<std::size_t>(k - 2)].kind;
      if (!joins) positions.emplace_back();
      positions.back().push_back(k);
    }
    std::reverse(positions.begin(), positions.end());
    if (positions.size() > 20) positions.resize(20);
    for (std::vector<int>& position : positions) {
      std::reverse(position.begin(), position.end());
      for (const int k : position) {
        if (find(plan, k, plan.start)) return k;
      }
    }
    return 0;
  }

  // Each token of the prompt by itself: read, or under a written 1h breakpoint, or under a written
  // 5m breakpoint, or input.
  template <typename IsWritten>
  static Usage count(const Plan& plan, int read, const IsWritten& is_written) {
    int under_hour = 0, under_any = 0;
    for (int k = 1; k <= static_cast<int>(plan.prompt.size()); ++k) {
      if (!is_breakpoint(plan, k) || !is_written(k)) continue;
      under_any = tokens(plan, k);
      if (plan.prompt[static_cast<std::size_t>(k - 1)].marker == Ttl::one_hour)
        under_hour = under_any;
    }
    Usage usage;
    const int total = tokens(plan, static_cast<int>(plan.prompt.size()));
    for (int token = 1; token <= total; ++token) {
      if (token <= read) {
        ++usage.cache_read_input_tokens;
      } else if (token <= under_hour) {
        ++usage.cache_creation_1h;
      } else if (token <= under_any) {
        ++usage.cache_creation_5m;
      } else {
        ++usage.input_tokens;
      }
    }
    return usage;
  }

  void write(const Plan& plan, int k, int now) {
    const Ttl ttl = *plan.prompt[static_cast<std::size_t>(k - 1)].marker;
    const int expires = plan.start + lifetime_of(ttl);
    if (expires <= now) return;
    if (Stored* stored = find(plan, k, now)) {
      if (ttl == Ttl::one_hour) stored->ttl = ttl;
      stored->expires = std::max(stored->expires, expires);
      stored->written_at = events_;
      return;
    }
    std::erase_if(stored_, [&](const Stored& stored) { return stored.expires <= now; });
    std::vector<int> contents;
    for (int i = 0; i < k; ++i)
      contents.push_back(plan.prompt[static_cast<std::size_t>(i)].content);
    stored_.push_back({plan.scope, plan.model, contents, tokens(plan, k), ttl, expires, events_});
  }

  std::vector<Stored> stored_;
  int events_ = 0;
};

// Conversations that grow, branch and come back, with few contents so that prefixes meet.
class Requests {
 public:
  explicit Requests(unsigned seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  Prompt next() {
    Prompt prompt;
    if (!past_.empty() && below(8) != 0) {
      prompt = past_[static_cast<std::size_t>(below(static_cast<int>(past_.size())))];
      if (below(5) == 0)
        prompt.resize(static_cast<std::size_t>(below(static_cast<int>(prompt.size())) + 1));
    }
    const int appended = below(6) == 0 ? below(45) : below(5);
    BoundaryKind kind = BoundaryKind::other;
    for (int i = prompt.empty() ? -1 : 0; i < appended; ++i) {
      if (below(3) == 0) kind = static_cast<BoundaryKind>(below(3));
      const int content = below(2) + 2 * static_cast<int>(kind);
      prompt.push_back({content, 60 + 331 * content, kind, {}});
    }
    if (prompt.size() > 90) prompt.resize(90);
    place_markers(prompt);
    if (past_.size() < 12) {
      past_.push_back(prompt);
    } else {
      past_[static_cast<std::size_t>(below(12))] = prompt;
    }
    return prompt;
  }

 private:
  void place_markers(Prompt& prompt) {
    for (Block& block : prompt) {
      if (below(3) != 0) block.marker.reset();  // some stay where they were
    }
    const int wanted = below(5);
    for (int i = 0; i < wanted; ++i) {
      const int from_end = below(3) == 0 ? below(static_cast<int>(prompt.size()))
                                         : below(std::min(4, static_cast<int>(prompt.size())));
      prompt[prompt.size() - 1 - static_cast<std::size_t>(from_end)].marker = Ttl::five_minutes;
    }
    // At most four (E-1), those of an hour first (E-2).
    int left = 4;
    const int hours = below(5);
    for (Block& block : prompt) {
      if (!block.marker) continue;
      if (left-- <= 0) {
        block.marker.reset();
      } else {
        block.marker = 4 - left <= hours ? Ttl::one_hour : Ttl::five_minutes;
      }
    }
  }

  std::mt19937 random_;
  std::vector<Prompt> past_;
};

std::vector<Boundary> boundaries_of(const Prompt& prompt) {
  std::vector<Boundary> boundaries;
  PrefixHasher hasher;
  int end = 0;
  for (const Block& block : prompt) {
    hasher.add(std::to_string(block.content));
    end += block.tokens;
    boundaries.push_back({hasher.key(), end, block.kind, block.marker});
  }
  return boundaries;
}

TimePoint at(int seconds) {
  return TimePoint{} + std::chrono::seconds(seconds);
}

std::vector<Oracle::Row> rows(const Ledger& ledger, int now) {
  std::vector<Oracle::Row> rows;
  for (const EntryView& view : ledger.entries(at(now))) {
    rows.emplace_back(view.scope.organization + "/" + view.scope.workspace, view.model, view.tokens,
                      view.ttl == Ttl::one_hour, now + static_cast<int>(view.seconds_left),
                      view.hits);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

struct Reached {
  int hits = 0, lost = 0, parallel = 0, far = 0;
};

void run(unsigned seed, int steps, Reached& reached) {
  const std::vector<Scope> scopes = {{"a", "1"}, {"a", "2"}, {"b", "1"}};
  const std::vector<std::pair<std::string, int>> models = {
      {"claude-opus-5", 512}, {"claude-sonnet-4-6", 1024}, {"claude-haiku-4-5", 4096}};
  Requests requests(seed);
  Ledger ledger;
  Oracle oracle;
  std::vector<std::pair<CachePlan, Oracle::Plan>> open;
  int now = 0;
  for (int i = 0; i < steps; ++i) {
    CAPTURE(seed);
    CAPTURE(i);
    now += requests.below(25) == 0 ? requests.below(4000) : requests.below(120);
    const bool settles = open.size() > 3 || (!open.empty() && requests.below(2) == 0);
    if (settles) {
      const auto which = requests.below(static_cast<int>(open.size()));
      const auto& [plan, expected] = open[static_cast<std::size_t>(which)];
      const int reused =
          requests.below(6) == 0 ? requests.below(plan.prompt_tokens + 1) : plan.prompt_tokens;
      const Usage usage = ledger.settle(plan, reused, at(now));
      REQUIRE(usage == oracle.settle(expected, reused, now));
      REQUIRE(usage.prompt_tokens() == plan.prompt_tokens);
      REQUIRE(usage.cache_read_input_tokens <= reused);
      REQUIRE(usage.cache_read_input_tokens <= plan.usage.cache_read_input_tokens);
      REQUIRE(std::min({usage.input_tokens, usage.cache_creation_5m, usage.cache_creation_1h})
              >= 0);
      open.erase(open.begin() + which);
    } else {
      const Scope& scope =
          scopes[static_cast<std::size_t>(requests.below(20) == 0 ? requests.below(3) : 0)];
      const auto& [model, minimum] =
          models[static_cast<std::size_t>(requests.below(4) == 0 ? requests.below(3) : 0)];
      const Prompt prompt = requests.next();
      CachePlan plan = ledger.lookup(scope, model, boundaries_of(prompt), at(now));
      Oracle::Plan expected = oracle.lookup(scope, model, minimum, prompt, now);
      REQUIRE(plan.usage == expected.usage);
      REQUIRE(plan.matched == expected.matched - 1);
      REQUIRE(plan.usage.prompt_tokens() == plan.prompt_tokens);
      reached.hits += plan.matched >= 0;
      reached.far +=
          plan.matched >= 0 && prompt.size() - static_cast<std::size_t>(plan.matched) > 21;
      reached.parallel += !open.empty();
      if (requests.below(10) != 0)
        open.emplace_back(std::move(plan), std::move(expected));  // else: failed
    }
    REQUIRE(rows(ledger, now) == oracle.rows(now));
    REQUIRE(ledger.entries_lost() == oracle.lost);
    ledger.check_integrity();
  }
  reached.lost += static_cast<int>(oracle.lost);
}

}  // namespace

TEST_CASE("random requests with loss, parallel arrivals and expiry agree with the slow oracle") {
  Reached reached;
  for (unsigned seed = 1; seed <= 20; ++seed)
    run(seed, 1000, reached);
  // The sequences must have reached the interesting places, or the agreement means nothing.
  CHECK(reached.hits > 1000);
  CHECK(reached.lost > 100);
  CHECK(reached.parallel > 1000);
  CHECK(reached.far > 20);  // matches more than 20 blocks back: through runs or earlier breakpoints
}
