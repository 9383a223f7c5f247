#include "gateway/prompt/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace incipit::gateway {

namespace {

// Below this, scanning for the lowest rank is faster than keeping a heap.
constexpr std::size_t short_word = 32;
constexpr std::uint32_t no_merge = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void MergeTable::reserve(std::size_t count) {
  slots_.assign(std::bit_ceil(std::max<std::size_t>(2 * count, 16)), Slot{});
  mask_ = slots_.size() - 1;
}

std::size_t MergeTable::slot_of(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U)
                             | static_cast<std::uint32_t>(right);
  const std::uint64_t mixed = (pair ^ (pair >> 29U)) * 0x9E3779B97F4A7C15U;
  std::size_t slot = static_cast<std::size_t>(mixed >> 32U) & mask_;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & mask_;
  }
  return slot;
}

void MergeTable::add(std::int32_t left, std::int32_t right, std::uint32_t rank,
                     std::int32_t merged) {
  Slot& slot = slots_[slot_of(left, right)];
  if (slot.left >= 0 && slot.rank <= rank) return;
  slot = {left, right, rank, merged};
}

const MergeTable::Slot* MergeTable::find(std::int32_t left, std::int32_t right) const {
  if (left < 0 || right < 0) return nullptr;
  const Slot& slot = slots_[slot_of(left, right)];
  return slot.left >= 0 ? &slot : nullptr;
}

void MergeTable::apply(std::vector<Symbol>& symbols, Workspace& work) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= short_word) return apply_short(symbols);

  auto& links = work.links;
  auto& heap = work.heap;
  const auto count = static_cast<std::int32_t>(symbols.size());
  links.resize(symbols.size());
  heap.clear();
  const auto later = [](const Workspace::Candidate& a, const Workspace::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto propose = [&](std::int32_t at, std::int32_t next) {
    const Symbol& left = symbols[static_cast<std::size_t>(at)];
    const Symbol& right = symbols[static_cast<std::size_t>(next)];
    const Slot* slot = find(left.id, right.id);
    if (slot == nullptr) return false;
    heap.push_back(
        {slot->rank, static_cast<std::uint32_t>(at), slot->left, slot->right, slot->merged});
    return true;
  };
  for (std::int32_t i = 0; i < count; ++i) {
    links[static_cast<std::size_t>(i)] = {i - 1, i + 1 < count ? i + 1 : -1};
    if (i + 1 < count) propose(i, i + 1);
  }
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Workspace::Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = symbols[best.at];
    const std::int32_t next = links[best.at].next;
    // Neighbours that have changed since they were proposed have been proposed again.
    if (left.id != best.left || next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(next)];
    if (right.id != best.right) continue;

    left.id = best.merged;
    left.end = right.end;
    right.id = -1;
    right.end = right.begin;  // empty: dropped below
    const std::int32_t after = links[static_cast<std::size_t>(next)].next;
    links[best.at].next = after;
    const auto at = static_cast<std::int32_t>(best.at);
    if (after >= 0) {
      links[static_cast<std::size_t>(after)].previous = at;
      if (propose(at, after)) std::push_heap(heap.begin(), heap.end(), later);
    }
    const std::int32_t before = links[best.at].previous;
    if (before >= 0 && propose(before, at)) std::push_heap(heap.begin(), heap.end(), later);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
}

void MergeTable::apply_short(std::vector<Symbol>& symbols) const {
  std::array<const Slot*, short_word> merges{};  // of symbol i and its right neighbour
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i)
    merges[i] = find(symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    std::uint32_t lowest = no_merge;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (merges[i] != nullptr && merges[i]->rank < lowest) {
        lowest = merges[i]->rank;
        at = i;
      }
    }
    if (lowest == no_merge) break;
    symbols[at].id = merges[at]->merged;
    symbols[at].end = symbols[at + 1].end;
    for (std::size_t i = at + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i] = merges[i + 1];
    }
    --count;
    merges[count - 1] = nullptr;
    if (at + 1 < count) merges[at] = find(symbols[at].id, symbols[at + 1].id);
    if (at > 0) merges[at - 1] = find(symbols[at - 1].id, symbols[at].id);
  }
  symbols.resize(count);
}

}  // namespace incipit::gateway
