// What a request cost in tokens, as the Messages API reports it.
// Source: anthropic-cache-semantics sections 4 and 8 (rule ids C-n in docs/prompt-caching.md).
#pragma once

#include <cstdint>
#include <string>

namespace incipit {

// The two lifetimes of a cache entry (C-16).
enum class Ttl : std::uint8_t { five_minutes, one_hour };

// The five input counters, with two invariants: `prompt_tokens()` is the rendered prompt (C-46),
// and creation is the sum of its two classes (C-47). Where a server states a total without the
// split, or a total above it, the difference is counted as 5-minute writes: the default TTL, and
// the only one of the writes that server tools add (C-70).
struct Usage {
  std::int64_t input_tokens = 0;  // after the last effective breakpoint, neither read nor written
  std::int64_t cache_creation_5m = 0;  // written with the 5-minute TTL
  std::int64_t cache_creation_1h = 0;  // written with the 1-hour TTL
  std::int64_t cache_read_input_tokens = 0;
  std::int64_t output_tokens = 0;

  std::int64_t thinking_tokens = 0;  // part of output_tokens
  std::int64_t web_search_requests = 0;
  std::int64_t web_fetch_requests = 0;
  std::string service_tier = {};   // "standard", "priority", "batch"; empty when not said
  std::string inference_geo = {};  // "global", "us"; empty when not said
  std::string speed = {};          // "standard", "fast"; empty when not said

  [[nodiscard]] std::int64_t cache_creation_input_tokens() const {
    return cache_creation_5m + cache_creation_1h;
  }

  [[nodiscard]] std::int64_t prompt_tokens() const {
    return input_tokens + cache_creation_input_tokens() + cache_read_input_tokens;
  }

  // The part of the prompt that was read from the cache, 0 to 1; 0 for an empty prompt.
  [[nodiscard]] double hit_ratio() const {
    const std::int64_t all = prompt_tokens();
    return all == 0 ? 0.0 : static_cast<double>(cache_read_input_tokens) / static_cast<double>(all);
  }

  // Adds the counters. Tier, region and speed become empty where the two differ.
  Usage& operator+=(const Usage& other);

  friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace incipit
