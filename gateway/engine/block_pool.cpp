#include "gateway/engine/block_pool.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>
#include <tuple>

namespace incipit::gateway {

namespace {

void require(bool condition, const char* what, int block) {
  if (!condition)
    throw std::logic_error("block pool: " + std::string(what) + ", block " + std::to_string(block));
}

}  // namespace

BlockPool::BlockPool(int blocks, int block_tokens, const Digest& model, ChainHash hash)
    : block_tokens_(block_tokens),
      index_(blocks, block_tokens, model, hash),
      slots_(static_cast<std::size_t>(blocks)) {
  free_.reserve(slots_.size());
  for (int block = blocks - 1; block >= 0; --block)
    free_.push_back(block);
}

// --- the three lists -----------------------------------------------------------------------------

BlockPool::Place BlockPool::place_at(const Slot& slot, TimePoint now) {
  if (slot.deadlines[1] > now) return Place::one_hour;
  return slot.deadlines[0] > now ? Place::five_minutes : Place::automatic;
}

bool BlockPool::precedes(Place list, int a, int b) const {
  const auto key = [&](const Slot& s) {
    const auto deadline =
        list == Place::automatic ? TimePoint{} : s.deadlines[static_cast<std::size_t>(list) - 1];
    return std::tuple(deadline, s.last_use);
  };
  return key(slot(a)) < key(slot(b));
}

// Inserts in order, looking from `start` (a member, or none for the tail). What is released or
// refreshed last belongs at or near the tail, and a path's blocks belong beside each other, so the
// walk is short.
void BlockPool::enlist(int block, Place place, int start) {
  List& list = lists_[static_cast<std::size_t>(place)];
  int before = start == none ? list.tail : start;
  while (before != none && precedes(place, block, before))
    before = slot(before).previous;
  int after = before == none ? list.head : slot(before).next;
  while (after != none && precedes(place, after, block)) {
    before = after;
    after = slot(after).next;
  }
  Slot& s = slot(block);
  s.place = place;
  s.previous = before;
  s.next = after;
  (before == none ? list.head : slot(before).next) = block;
  (after == none ? list.tail : slot(after).previous) = block;
  ++cached_;
}

void BlockPool::delist(int block) {
  Slot& s = slot(block);
  List& list = lists_[static_cast<std::size_t>(s.place)];
  (s.previous == none ? list.head : slot(s.previous).next) = s.next;
  (s.next == none ? list.tail : slot(s.next).previous) = s.previous;
  s.next = s.previous = none;
  s.place = Place::in_use;
  --cached_;
}

// An expired block takes its place in L0 by its last use, so it neither outlives what was used
// after it nor goes before its own children.
void BlockPool::expire(TimePoint now) {
  int cursor = lists_[0].head;
  for (const Place place : {Place::five_minutes, Place::one_hour}) {
    const std::size_t list = static_cast<std::size_t>(place);
    while (lists_[list].head != none) {
      const int block = lists_[list].head;
      if (slot(block).deadlines[list - 1] > now) break;
      delist(block);
      const Place next = place_at(slot(block), now);
      enlist(block, next, next == Place::automatic ? cursor : none);
      if (next == Place::automatic) cursor = block;
    }
  }
}

// --- references ----------------------------------------------------------------------------------

void BlockPool::hold(std::span<const std::int32_t> path) {
  for (const int block : path) {
    if (slot(block).references++ == 0) delist(block);
  }
}

bool BlockPool::can_adopt(int block, int tokens) const {
  return slot(block).references == 0 && index_.size(block) == tokens && tokens < block_tokens_;
}

int BlockPool::allocate(TimePoint now) {
  int block = none;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else {
    expire(now);
    for (const List& list : lists_) {
      if ((block = list.head) != none) break;
    }
    if (block == none) return none;
    ++evictions_;
    if (slot(block).place != Place::automatic) ++protected_evictions_;
    delist(block);
    index_.remove(block);
  }
  slot(block) = Slot{.references = 1, .place = Place::in_use};
  return block;
}

void BlockPool::release(std::span<const std::int32_t> path, TimePoint now) {
  std::array<int, lists> cursors{none, none, none};
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    const int block = *it;
    assert(slot(block).references > 0);
    if (--slot(block).references > 0) continue;
    if (!index_.contains(block)) {
      drop(block);
      continue;
    }
    if (index_.size(block) < block_tokens_) {
      const int longer = index_.longer_sibling(block);
      if (longer != none) {
        absorb(longer, block);
        if (slot(longer).references == 0) {
          delist(longer);
          cache(longer, now, cursors);
        }
        continue;
      }
      absorb_shorter_siblings(block);
    }
    cache(block, now, cursors);
  }
}

void BlockPool::cache(int block, TimePoint now, std::array<int, lists>& cursors) {
  slot(block).last_use = ++uses_;
  const Place place = place_at(slot(block), now);
  int& cursor = cursors[static_cast<std::size_t>(place)];
  enlist(block, place, cursor);
  cursor = block;
}

void BlockPool::forget(std::span<const std::int32_t> path, int first) {
  for (int i = static_cast<int>(path.size()) - 1; i >= first; --i) {
    const int block = path[static_cast<std::size_t>(i)];
    if (slot(block).place == Place::free) continue;
    if (slot(block).references > 0 || index_.first_child(block) != none) return;
    delist(block);
    drop(block);
  }
}

void BlockPool::protect(std::span<const std::int32_t> path, Ttl ttl, TimePoint deadline) {
  for (const int block : path) {
    assert(slot(block).references > 0);
    TimePoint& own = slot(block).deadlines[ttl == Ttl::one_hour ? 1 : 0];
    own = std::max(own, deadline);
  }
}

// --- content -------------------------------------------------------------------------------------

void BlockPool::record(BlockTable& table, const Digest& salt, std::span<const std::int32_t> tokens,
                       int from, int to) {
  while (from < to) {
    const auto i = static_cast<std::size_t>(from / block_tokens_);
    const int block = table[i];
    if (!index_.contains(block)) index_.insert(block, i == 0 ? index_.root(salt) : table[i - 1]);
    assert(index_.size(block) == from % block_tokens_);
    const int run = std::min(to - from, block_tokens_ - from % block_tokens_);
    index_.append(block,
                  tokens.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(run)));
    if (index_.size(block) == block_tokens_) table[i] = seal(block);
    from += run;
  }
}

int BlockPool::seal(int block) {
  const int twin = index_.twin(block);
  if (twin == none) {
    index_.seal(block);
    absorb_shorter_siblings(block);
    return block;
  }
  hold(std::span(&twin, 1));
  slot(block).references = 0;
  absorb(twin, block);
  return twin;
}

// `from` begins `into`: what protects the one protects the other, and `from` is no longer needed.
void BlockPool::absorb(int into, int from) {
  for (std::size_t i = 0; i < 2; ++i) {
    slot(into).deadlines[i] = std::max(slot(into).deadlines[i], slot(from).deadlines[i]);
  }
  if (slot(from).place != Place::in_use) delist(from);
  drop(from);
}

void BlockPool::absorb_shorter_siblings(int block) {
  int next = none;
  for (int other = index_.first_child(index_.parent(block)); other != none; other = next) {
    next = index_.next_sibling(other);
    const bool is_idle = other != block && slot(other).references == 0;
    if (is_idle && index_.begins_with(block, other)) absorb(block, other);
  }
}

// Of no list, without a reference: free.
void BlockPool::drop(int block) {
  if (index_.contains(block)) index_.remove(block);
  slot(block) = Slot{};
  free_.push_back(block);
}

// --- checks --------------------------------------------------------------------------------------

void BlockPool::check_integrity() const {
  index_.check_integrity();
  std::size_t free = 0;
  int cached = 0;
  for (int block = 0; block < total(); ++block) {
    const Slot& s = slot(block);
    const bool is_indexed = index_.contains(block);
    if (s.place == Place::free) {
      require(s.references == 0 && !is_indexed, "a free block is used", block);
      ++free;
      continue;
    }
    require((s.references > 0) == (s.place == Place::in_use), "references and place disagree",
            block);
    if (s.place != Place::in_use) {
      require(is_indexed && index_.size(block) > 0, "a cached block is empty", block);
      ++cached;
    }
    if (!is_indexed) continue;
    require(index_.size(block) == block_tokens_ || s.references <= 1,
            "a block that is not full is shared", block);
    const int parent = index_.parent(block);
    if (index_.is_root(parent)) continue;
    const Slot& above = slot(parent);
    for (std::size_t i = 0; i < 2; ++i) {
      require(above.deadlines[i] >= s.deadlines[i], "protected longer than its parent", block);
    }
    require(above.references >= s.references, "more references than its parent", block);
    require(above.references > 0 || above.last_use > s.last_use, "used later than its parent",
            block);
  }
  require(free == free_.size(), "the free stack is wrong", none);
  require(cached == cached_, "the count of cached blocks is wrong", none);
  for (std::size_t list = 0; list < lists; ++list) {
    int previous = none;
    for (int block = lists_[list].head; block != none; block = slot(block).next) {
      require(slot(block).place == static_cast<Place>(list), "in the wrong list", block);
      require(slot(block).previous == previous, "broken list links", block);
      require(previous == none || precedes(static_cast<Place>(list), previous, block),
              "a list is out of order", block);
      previous = block;
      --cached;
    }
    require(previous == lists_[list].tail, "a list's tail is wrong", previous);
  }
  require(cached == 0, "a cached block is in no list", none);
}

}  // namespace incipit::gateway
