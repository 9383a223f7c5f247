#include "gateway/cache/ledger.h"

#include "gateway/cache/anthropic_rules.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace incipit::gateway {

using anthropic::Lifetime;

// Entries by (scope, model) and key, and one index by expiry over all of them. The index serves the
// sweep and the bound: what expires first is at its front.
struct Ledger::State {
  struct Space;

  struct Place {
    Space* space;
    PrefixKey key;
  };

  using ByExpiry = std::multimap<TimePoint, Place>;

  struct Entry {
    Ttl ttl;
    int tokens;
    std::int64_t hits;
    std::uint64_t generation;  // the ledger's when it was written
    ByExpiry::iterator expiry;

    [[nodiscard]] Lifetime lifetime() const { return {ttl, expiry->first}; }
  };

  using SpaceId = std::pair<Scope, std::string>;

  struct Space {
    const SpaceId* id = nullptr;  // the key under which it is kept
    std::unordered_map<PrefixKey, Entry> entries;
  };

  explicit State(std::size_t capacity_) : capacity(capacity_) {}

  const std::size_t capacity;
  mutable std::mutex mutex;
  std::map<SpaceId, Space> spaces;  // none is empty
  ByExpiry by_expiry;
  std::uint64_t generation = 0;
  std::int64_t lost = 0;

  [[nodiscard]] Space* find_space(const SpaceId& id) {
    const auto found = spaces.find(id);
    return found == spaces.end() ? nullptr : &found->second;
  }

  [[nodiscard]] static Entry* find_live(Space* space, const PrefixKey& key, TimePoint now) {
    if (!space) return nullptr;
    const auto found = space->entries.find(key);
    if (found == space->entries.end()) return nullptr;
    return anthropic::is_live_at(found->second.expiry->first, now) ? &found->second : nullptr;
  }

  void set_lifetime(Entry& entry, const Lifetime& lifetime) {
    entry.ttl = lifetime.ttl;
    if (entry.expiry->first == lifetime.expires) return;
    auto node = by_expiry.extract(entry.expiry);
    node.key() = lifetime.expires;
    entry.expiry = by_expiry.insert(std::move(node));
  }

  void erase(const Place& place) {
    const auto found = place.space->entries.find(place.key);
    if (found == place.space->entries.end()) return;
    by_expiry.erase(found->second.expiry);
    place.space->entries.erase(found);
    if (place.space->entries.empty()) spaces.erase(spaces.find(*place.space->id));
  }

  // A few expired entries per call keep up with any client (a request writes at most four), and no
  // request waits for a million of them that ran out together.
  void sweep(TimePoint now) {
    constexpr int most = 64;
    for (int i = 0; i < most && !by_expiry.empty(); ++i) {
      if (anthropic::is_live_at(by_expiry.begin()->first, now)) return;
      erase(Place(by_expiry.begin()->second));
    }
  }

  // Erases what was already there when the plan with `plan_generation` was made. What was written
  // since comes from a request that has just computed that prefix.
  void erase_stale(const SpaceId& id, const PrefixKey& key, std::uint64_t plan_generation) {
    Space* space = find_space(id);
    if (!space) return;
    const auto found = space->entries.find(key);
    if (found == space->entries.end() || found->second.generation > plan_generation) return;
    erase({space, key});
  }

  void publish(const SpaceId& id, const Boundary& boundary, Lifetime lifetime, TimePoint now) {
    // A prefill longer than the lifetime leaves nothing to read (C-17).
    if (!anthropic::is_live_at(lifetime.expires, now)) return;
    if (Entry* live = find_live(find_space(id), boundary.key, now)) {
      live->generation = generation;
      set_lifetime(*live, anthropic::after_double_write(live->lifetime(), lifetime));
      return;
    }
    if (Space* space = find_space(id)) erase({space, boundary.key});  // expired, not yet swept
    while (by_expiry.size() >= capacity)
      erase(Place(by_expiry.begin()->second));
    const auto [place, is_new] = spaces.try_emplace(id);
    Space& space = place->second;
    space.id = &place->first;
    const auto expiry = by_expiry.emplace(lifetime.expires, Place{&space, boundary.key});
    space.entries.emplace(boundary.key,
                          Entry{lifetime.ttl, boundary.token_end, 0, generation, expiry});
  }
};

Ledger::Ledger(std::size_t capacity)
    : state_(std::make_unique<State>(std::max<std::size_t>(capacity, 1))) {}

Ledger::~Ledger() = default;

CachePlan Ledger::lookup(Scope scope, std::string model, std::vector<Boundary> boundaries,
                         TimePoint start) {
  assert(std::is_sorted(
      boundaries.begin(), boundaries.end(),
      [](const Boundary& a, const Boundary& b) { return a.token_end < b.token_end; }));
  CachePlan plan;
  plan.start = start;
  plan.minimum_tokens = cache_profile(model).minimum_tokens;
  plan.prompt_tokens = boundaries.empty() ? 0 : boundaries.back().token_end;
  plan.boundaries = std::move(boundaries);
  const auto at = [&](int k) -> const Boundary& {
    return plan.boundaries[static_cast<std::size_t>(k)];
  };
  State::SpaceId id(std::move(scope), std::move(model));
  anthropic::Decision decision;
  {
    const std::lock_guard lock(state_->mutex);
    state_->sweep(start);
    plan.generation = state_->generation;
    State::Space* space = state_->find_space(id);
    decision = anthropic::decide(plan.boundaries, plan.minimum_tokens, [&](int k) {
      return State::find_live(space, at(k).key, start) != nullptr;
    });
    for (const int k : decision.refreshed) {
      State::Entry& entry = *State::find_live(space, at(k).key, start);
      state_->set_lifetime(entry, anthropic::after_read(entry.lifetime(), start));
      if (k == decision.matched) ++entry.hits;
      plan.protections.push_back({at(k).token_end, entry.ttl, entry.expiry->first});
    }
  }
  for (const int k : decision.written) {
    const Lifetime lifetime = anthropic::written_at(start, *at(k).marker);
    plan.protections.push_back({at(k).token_end, lifetime.ttl, lifetime.expires});
  }
  plan.matched = decision.matched;
  plan.usage = anthropic::usage_of(plan.boundaries, decision.written,
                                   plan.matched < 0 ? 0 : at(plan.matched).token_end);
  plan.scope = std::move(id.first);
  plan.model = std::move(id.second);
  return plan;
}

Usage Ledger::settle(const CachePlan& plan, int reused_tokens, TimePoint now) {
  const auto at = [&](int k) -> const Boundary& {
    return plan.boundaries[static_cast<std::size_t>(k)];
  };
  const int promised = plan.matched < 0 ? 0 : at(plan.matched).token_end;
  const int read = std::clamp(reused_tokens, 0, promised);
  const bool is_lost = read < promised;
  const std::vector<int> written =
      is_lost ? anthropic::breakpoints_past(plan.boundaries, plan.minimum_tokens, read)
              : anthropic::breakpoints_after(plan.boundaries, plan.minimum_tokens, plan.matched);
  const State::SpaceId id(plan.scope, plan.model);

  const std::lock_guard lock(state_->mutex);
  state_->sweep(now);
  ++state_->generation;
  if (is_lost) {
    ++state_->lost;
    state_->erase_stale(id, at(plan.matched).key, plan.generation);
    for (const int k : written) {
      if (k < plan.matched) state_->erase_stale(id, at(k).key, plan.generation);
    }
  }
  for (const int k : written) {
    state_->publish(id, at(k), anthropic::written_at(plan.start, *at(k).marker), now);
  }
  return anthropic::usage_of(plan.boundaries, written, read);
}

std::vector<EntryView> Ledger::entries(TimePoint now) const {
  std::vector<EntryView> views;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [id, space] : state_->spaces) {
    for (const auto& [key, entry] : space.entries) {
      if (!anthropic::is_live_at(entry.expiry->first, now)) continue;
      const std::chrono::duration<double> left = entry.expiry->first - now;
      views.push_back(
          {id.first, id.second, key, entry.tokens, entry.ttl, left.count(), entry.hits});
    }
  }
  return views;
}

std::int64_t Ledger::entries_lost() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lost;
}

std::size_t Ledger::entries_held() const {
  const std::lock_guard lock(state_->mutex);
  return state_->by_expiry.size();
}

void Ledger::check_integrity() const {
  const std::lock_guard lock(state_->mutex);
  std::size_t count = 0;
  for (const auto& [id, space] : state_->spaces) {
    if (space.id != &id) throw std::logic_error("ledger: a space does not know its own id");
    if (space.entries.empty()) throw std::logic_error("ledger: an empty space was kept");
    for (const auto& [key, entry] : space.entries) {
      const State::Place& place = entry.expiry->second;
      if (place.space != &space || place.key != key) {
        throw std::logic_error("ledger: the expiry index points to another entry");
      }
      if (entry.tokens < cache_profile(id.second).minimum_tokens) {
        throw std::logic_error("ledger: an entry is shorter than its model's minimum");
      }
      if (entry.generation > state_->generation) {
        throw std::logic_error("ledger: an entry is newer than the ledger");
      }
      ++count;
    }
  }
  if (count != state_->by_expiry.size()) {
    throw std::logic_error("ledger: the expiry index and the entries differ in number");
  }
  if (count > state_->capacity) throw std::logic_error("ledger: more entries than its capacity");
}

}  // namespace incipit::gateway
