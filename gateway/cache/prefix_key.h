// The identity of a prompt prefix: a cumulative 128-bit hash of content (C-2), and the places in a
// prompt where such a prefix ends.
#pragma once

#include "incipit/usage.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace incipit::gateway {

struct PrefixKey {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const PrefixKey&, const PrefixKey&) = default;
};

// Feeds content in prompt order; `key()` at any time is the key of everything fed so far.
// Each `add` is length-delimited, so ("ab", "c") and ("a", "bc") differ.
class PrefixHasher {
 public:
  PrefixHasher();
  ~PrefixHasher();
  PrefixHasher(PrefixHasher&&) noexcept;
  PrefixHasher& operator=(PrefixHasher&&) noexcept;

  void add(std::string_view bytes);
  [[nodiscard]] PrefixKey key() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What the block before a boundary is; runs of the last two count as one position (C-36).
enum class BoundaryKind : std::uint8_t { other, tool_use, tool_result };

// The end of one content block of the flattened prompt (the specification's "position k").
struct Boundary {
  PrefixKey key;
  int token_end = 0;  // T(k): prompt tokens up to here. The last boundary's is the whole prompt.
  BoundaryKind kind = BoundaryKind::other;
  std::optional<Ttl> marker;  // breakpoint, explicit or automatic
};

}  // namespace incipit::gateway

template <>
struct std::hash<incipit::gateway::PrefixKey> {
  std::size_t operator()(const incipit::gateway::PrefixKey& key) const noexcept { return key.low; }
};
