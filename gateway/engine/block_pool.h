// The KV blocks of the machine: who uses them, what they hold, and which one goes next.
//
// A block is free, in use (referenced by running sequences), or cached: unreferenced, its KV kept
// for a later match, in one of three lists. L0 holds what nothing protects, in order of last use;
// L1 and L2 what a 5-minute or 1-hour entry of the ledger covers, in order of deadline. The victim
// is a free block, else the head of L0, L1, L2, after what has expired went to its place in L0.
// Protection is a bias, not a lock: when nothing else is left, protected blocks go too (counted).
//
// A list's head is always a leaf of the tree, so eviction never orphans a suffix: a path is
// released leaf first and protected as a whole, hence a cached parent is never older than its
// child and never protected for a shorter time, in either class.
//
// One thread; time is an argument and never goes back. Broken preconditions assert.
#pragma once

#include "gateway/cache/ledger.h"
#include "gateway/clock.h"
#include "gateway/engine/block_index.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace incipit::gateway {

// Blocks of a sequence in order: the i-th holds positions [i * P, (i + 1) * P).
using BlockTable = std::vector<std::int32_t>;

class BlockPool {
 public:
  static constexpr int none = BlockIndex::none;

  BlockPool(int blocks, int block_tokens, const Digest& model, ChainHash hash = xxh3_chain);

  [[nodiscard]] BlockIndex::Match match(const Digest& salt,
                                        std::span<const std::int32_t> tokens) const {
    return index_.match(salt, tokens);
  }

  // Adds one reference to each; cached ones leave their lists. `path` starts at a root.
  void hold(std::span<const std::int32_t> path);
  // Whether the block ends after `tokens` tokens and nobody uses it, so that a sequence may hold it
  // as its own tail and go on writing.
  [[nodiscard]] bool can_adopt(int block, int tokens) const;
  // A block with one reference and no content, evicting if necessary; none when all are in use.
  [[nodiscard]] int allocate(TimePoint now);
  // The KV of positions [from, to) is now in the blocks of `table`. Every full block is findable at
  // once; one that equals a resident block is replaced by that in `table`, and freed.
  void record(BlockTable& table, const Digest& salt, std::span<const std::int32_t> tokens, int from,
              int to);
  // Raises the protection of blocks in use. `path` starts at a root.
  void protect(std::span<const std::int32_t> path, Ttl ttl, TimePoint deadline);
  // Drops one reference of each. What nobody else uses stays cached, less what is empty or begins
  // another cached block. `path` starts at a root.
  void release(std::span<const std::int32_t> path, TimePoint now);
  // Frees what of a released path from block number `first` on nobody uses or builds on: its
  // content is not to be trusted.
  void forget(std::span<const std::int32_t> path, int first);

  [[nodiscard]] int block_tokens() const { return block_tokens_; }

  [[nodiscard]] int total() const { return static_cast<int>(slots_.size()); }

  [[nodiscard]] int in_use() const { return total() - available(); }

  [[nodiscard]] int cached() const { return cached_; }

  // Blocks that `allocate` could still hand out.
  [[nodiscard]] int available() const { return static_cast<int>(free_.size()) + cached_; }

  [[nodiscard]] int references(int block) const { return slot(block).references; }

  [[nodiscard]] std::int64_t evictions() const { return evictions_; }

  // Evictions of a block whose protection had not expired.
  [[nodiscard]] std::int64_t protected_evictions() const { return protected_evictions_; }

  // Throws std::logic_error that says what is inconsistent. For tests.
  void check_integrity() const;

 private:
  enum class Place : std::uint8_t { automatic, five_minutes, one_hour, free, in_use };
  static constexpr int lists = 3;

  struct Slot {
    int references = 0;
    int next = none, previous = none;
    Place place = Place::free;
    // By class, so that a path that outlives its 1-hour entry still has its 5-minute one.
    std::array<TimePoint, 2> deadlines{};
    std::uint64_t last_use = 0;  // order of release
  };

  struct List {
    int head = none, tail = none;
  };

  [[nodiscard]] Slot& slot(int block) { return slots_[static_cast<std::size_t>(block)]; }

  [[nodiscard]] const Slot& slot(int block) const {
    return slots_[static_cast<std::size_t>(block)];
  }

  [[nodiscard]] static Place place_at(const Slot& slot, TimePoint now);
  [[nodiscard]] bool precedes(Place list, int a, int b) const;
  void enlist(int block, Place place, int start);
  void delist(int block);
  void cache(int block, TimePoint now, std::array<int, lists>& cursors);
  void expire(TimePoint now);
  [[nodiscard]] int seal(int block);
  void absorb(int into, int from);
  void absorb_shorter_siblings(int block);
  void drop(int block);

  int block_tokens_;
  BlockIndex index_;
  std::vector<Slot> slots_;
  std::vector<int> free_;
  std::array<List, lists> lists_;
  int cached_ = 0;
  std::uint64_t uses_ = 0;
  std::int64_t evictions_ = 0, protected_evictions_ = 0;
};

}  // namespace incipit::gateway
