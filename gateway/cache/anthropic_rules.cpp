#include "gateway/cache/anthropic_rules.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstddef>

namespace incipit::gateway {

namespace {

constexpr int max_lookback_positions = 20;  // C-32

struct Minimum {
  std::string_view model;
  int tokens;
};

// Section 10, without the models of the default. Fable 5.2 and Mythos 5.2 are assumed to be like
// their predecessors: the documentation's number for them has not been seen.
constexpr int default_minimum = 1024;
constexpr std::array minimums = {
    Minimum{"claude-fable-5", 512},    Minimum{"claude-fable-5-1", 512},
    Minimum{"claude-fable-5-2", 512},  Minimum{"claude-mythos-5", 512},
    Minimum{"claude-mythos-5-1", 512}, Minimum{"claude-mythos-5-2", 512},
    Minimum{"claude-opus-5", 512},     Minimum{"claude-opus-5-5", 512},
    Minimum{"claude-sonnet-5-5", 512}, Minimum{"claude-haiku-5-5", 512},
    Minimum{"claude-opus-4-7", 2048},  Minimum{"claude-mythos-preview", 2048},
    Minimum{"claude-3-5-haiku", 2048}, Minimum{"claude-haiku-3-5", 2048},
    Minimum{"claude-opus-4-6", 4096},  Minimum{"claude-opus-4-5", 4096},
    Minimum{"claude-haiku-4-5", 4096},
};

// "claude-haiku-4-5-20251001" and "claude-3-5-haiku-latest" cache like the model they are dated
// versions of.
std::string_view without_date(std::string_view model) {
  const std::size_t dash = model.rfind('-');
  if (dash == std::string_view::npos) return model;
  const std::string_view last = model.substr(dash + 1);
  const bool is_date = last.size() == 8 && last.find_first_not_of("0123456789") == last.npos;
  return is_date || last == "latest" ? model.substr(0, dash) : model;
}

}  // namespace

CacheProfile cache_profile(std::string_view model) {
  const std::string_view name = without_date(model);
  for (const Minimum& row : minimums) {
    if (row.model == name) return {row.tokens};
  }
  return {default_minimum};
}

Duration lifetime(Ttl ttl) {
  return ttl == Ttl::one_hour ? Duration(std::chrono::hours(1)) : Duration(std::chrono::minutes(5));
}

namespace anthropic {

namespace {

bool is_breakpoint(const Boundary& boundary, int minimum_tokens) {
  return boundary.marker && reaches_minimum(boundary.token_end, minimum_tokens);
}

// Whether boundary `at` and the one before it are one position (C-36).
bool continues_run(std::span<const Boundary> boundaries, std::size_t at) {
  return at > 0 && boundaries[at].kind != BoundaryKind::other
         && boundaries[at].kind == boundaries[at - 1].kind;
}

// C-40. That marked entries before the matched one are refreshed too is our choice.
std::vector<int> refreshed_by_read(std::span<const Boundary> boundaries, int minimum_tokens,
                                   int matched, const IsLive& is_live) {
  std::vector<int> refreshed;
  for (int k = 0; k < matched; ++k) {
    if (is_breakpoint(boundaries[static_cast<std::size_t>(k)], minimum_tokens) && is_live(k)) {
      refreshed.push_back(k);
    }
  }
  refreshed.push_back(matched);
  return refreshed;
}

int find_match(std::span<const Boundary> boundaries, int minimum_tokens, const IsLive& is_live) {
  for (std::size_t k = boundaries.size(); k-- > 0;) {
    if (!is_breakpoint(boundaries[k], minimum_tokens)) continue;
    for (const int tested : lookback(boundaries, static_cast<int>(k))) {
      if (is_live(tested)) return tested;
    }
  }
  return -1;
}

}  // namespace

std::vector<int> lookback(std::span<const Boundary> boundaries, int breakpoint) {
  std::vector<int> tested;
  int positions = 1;
  for (int k = breakpoint; k >= 0; --k) {
    tested.push_back(k);
    if (continues_run(boundaries, static_cast<std::size_t>(k))) continue;
    if (++positions > max_lookback_positions) break;
  }
  return tested;
}

Decision decide(std::span<const Boundary> boundaries, int minimum_tokens, const IsLive& is_live) {
  Decision decision;
  decision.matched = find_match(boundaries, minimum_tokens, is_live);
  if (decision.matched >= 0) {
    decision.refreshed = refreshed_by_read(boundaries, minimum_tokens, decision.matched, is_live);
  }
  decision.written = breakpoints_after(boundaries, minimum_tokens, decision.matched);
  return decision;
}

std::vector<int> breakpoints_after(std::span<const Boundary> boundaries, int minimum_tokens,
                                   int matched) {
  std::vector<int> found;
  for (int k = matched + 1; k < static_cast<int>(boundaries.size()); ++k) {
    if (is_breakpoint(boundaries[static_cast<std::size_t>(k)], minimum_tokens)) found.push_back(k);
  }
  return found;
}

std::vector<int> breakpoints_past(std::span<const Boundary> boundaries, int minimum_tokens,
                                  int read_tokens) {
  std::vector<int> found = breakpoints_after(boundaries, minimum_tokens, -1);
  std::erase_if(found, [&](int k) {
    return boundaries[static_cast<std::size_t>(k)].token_end <= read_tokens;
  });
  return found;
}

Usage usage_of(std::span<const Boundary> boundaries, std::span<const int> written,
               int read_tokens) {
  int hour_end = read_tokens;   // C-48's B
  int write_end = read_tokens;  // C-48's C
  for (const int k : written) {
    const Boundary& boundary = boundaries[static_cast<std::size_t>(k)];
    write_end = std::max(write_end, boundary.token_end);
    if (boundary.marker == Ttl::one_hour) hour_end = std::max(hour_end, boundary.token_end);
  }
  const int total = boundaries.empty() ? 0 : boundaries.back().token_end;
  Usage usage;
  usage.cache_read_input_tokens = read_tokens;
  usage.cache_creation_1h = hour_end - read_tokens;
  usage.cache_creation_5m = write_end - hour_end;
  usage.input_tokens = total - write_end;
  assert(usage.prompt_tokens() == total);
  assert(usage.input_tokens >= 0 && usage.cache_read_input_tokens >= 0);
  assert(usage.cache_creation_5m >= 0 && usage.cache_creation_1h >= 0);
  return usage;
}

Lifetime written_at(TimePoint start, Ttl ttl) {
  return {ttl, start + lifetime(ttl)};
}

Lifetime after_read(const Lifetime& entry, TimePoint start) {
  // Requests may reach the ledger in another order than they started: never shorten.
  return {entry.ttl, std::max(entry.expires, start + lifetime(entry.ttl))};
}

Lifetime after_double_write(const Lifetime& existing, const Lifetime& written) {
  const bool hour = existing.ttl == Ttl::one_hour || written.ttl == Ttl::one_hour;
  return {hour ? Ttl::one_hour : Ttl::five_minutes, std::max(existing.expires, written.expires)};
}

bool is_live_at(TimePoint expires, TimePoint now) {
  return now < expires;
}

bool reaches_minimum(int tokens, int minimum_tokens) {
  return tokens >= minimum_tokens;
}

}  // namespace anthropic

}  // namespace incipit::gateway
