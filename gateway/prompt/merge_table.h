// Byte-pair merging: which neighbours join, in which order, into what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace incipit::gateway {

// A stretch of text on its way to being a token. `id` < 0: not in the vocabulary, never merged.
struct Symbol {
  std::int32_t id;
  std::uint32_t begin;  // byte offset in the text being merged
  std::uint32_t end;
};

class MergeTable {
 public:
  // Room for `count` merges; must be called once, first.
  void reserve(std::size_t count);
  // Pieces `left` and `right`, side by side, become `merged`. A lower rank goes first. Of two
  // merges of one pair the lower rank stays.
  void add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged);

  // What `apply` works in, kept by the caller between calls to save allocations.
  struct Workspace {
    struct Candidate {
      std::uint32_t rank, at;
      std::int32_t left, right, merged;
    };

    struct Link {
      std::int32_t previous, next;
    };

    std::vector<Candidate> heap;
    std::vector<Link> links;
  };

  // Joins neighbours in `symbols` until no merge applies: always the lowest rank, of equal ranks
  // the leftmost. O(n log n), whatever the text.
  void apply(std::vector<Symbol>& symbols, Workspace& work) const;

 private:
  struct Slot {
    std::int32_t left = -1, right = -1;
    std::uint32_t rank = 0;
    std::int32_t merged = -1;
  };

  [[nodiscard]] std::size_t slot_of(std::int32_t left, std::int32_t right) const;
  [[nodiscard]] const Slot* find(std::int32_t left, std::int32_t right) const;
  void apply_short(std::vector<Symbol>& symbols) const;

  std::vector<Slot> slots_;  // open addressing, at most half full; left < 0 = free
  std::size_t mask_ = 0;
};

}  // namespace incipit::gateway
