// What a request cost in tokens, as the Messages API reports it.
// Source: anthropic-cache-semantics sections 4 and 8 (rule ids C-n in docs/prompt-caching.md).
#pragma once

#include <cstdint>

namespace incipit {

// The two lifetimes of a cache entry (C-16).
enum class Ttl : std::uint8_t { five_minutes, one_hour };

// Invariants: `prompt_tokens()` is the rendered prompt (C-46); creation is the sum of the two
// classes (C-47).
struct Usage {
  std::int64_t input_tokens = 0;       // after the last effective breakpoint, neither read nor written
  std::int64_t cache_creation_5m = 0;  // written with the 5-minute TTL
  std::int64_t cache_creation_1h = 0;  // written with the 1-hour TTL
  std::int64_t cache_read_input_tokens = 0;
  std::int64_t output_tokens = 0;

  [[nodiscard]] std::int64_t cache_creation_input_tokens() const {
    return cache_creation_5m + cache_creation_1h;
  }

  [[nodiscard]] std::int64_t prompt_tokens() const {
    return input_tokens + cache_creation_input_tokens() + cache_read_input_tokens;
  }

  friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace incipit
