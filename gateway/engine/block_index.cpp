#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's own switch
#include "gateway/engine/block_index.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <stdexcept>
#include <string>

namespace incipit::gateway {

namespace {

int common_run(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t limit = std::min(a.size(), b.size());
  return static_cast<int>(std::mismatch(a.begin(), a.begin() + limit, b.begin()).first - a.begin());
}

void require(bool condition, const char* what, int node) {
  if (!condition)
    throw std::logic_error("block index: " + std::string(what) + ", node " + std::to_string(node));
}

}  // namespace

BlockHash xxh3_chain(const BlockHash& parent, std::span<const std::int32_t> tokens) {
  // Streaming, because parent and tokens lie apart; the state is on the stack.
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &parent, sizeof parent);
  XXH3_128bits_update(&state, tokens.data(), tokens.size_bytes());
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  return {digest.low64, digest.high64};
}

BlockIndex::BlockIndex(int blocks, int block_tokens, const Digest& model, ChainHash hash)
    : blocks_(blocks),
      block_tokens_(block_tokens),
      hash_(hash),
      nodes_(at(blocks)),
      tokens_(at(blocks) * at(block_tokens)) {
  std::memcpy(&model_, model.data(), sizeof model_);
}

BlockHash BlockIndex::root_hash(const Digest& salt) const {
  std::array<std::int32_t, 4> words{};
  std::memcpy(words.data(), salt.data(), sizeof words);
  return hash_(model_, words);
}

std::span<const std::int32_t> BlockIndex::tokens(int block) const {
  return {tokens_.data() + at(block) * at(block_tokens_), at(size(block))};
}

bool BlockIndex::begins_with(int other, int block) const {
  return size(other) >= size(block) && common_run(tokens(other), tokens(block)) == size(block);
}

int BlockIndex::find(const BlockHash& hash, int parent,
                     std::span<const std::int32_t> wanted) const {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const int block = it->second;
    if (nodes_[at(block)].parent == parent && std::ranges::equal(tokens(block), wanted)) {
      return block;
    }
  }
  return none;
}

BlockIndex::Match BlockIndex::match(const Digest& salt,
                                    std::span<const std::int32_t> wanted) const {
  Match result;
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return result;
  int node = root->second;
  const std::size_t whole = at(block_tokens_);
  while (wanted.size() >= whole) {
    const auto run = wanted.first(whole);
    const int block = find(hash_(nodes_[at(node)].hash, run), node, run);
    if (block == none) break;
    result.full.push_back(block);
    wanted = wanted.subspan(whole);
    node = block;
  }
  for (int child = first_child(node); child != none; child = next_sibling(child)) {
    const int run = common_run(tokens(child), wanted);
    // Of equally long runs prefer the block that ends there: it may be taken over instead of
    // copied.
    if (run > result.tail_tokens
        || (run > 0 && run == result.tail_tokens && size(child) < size(result.tail))) {
      result.tail = child;
      result.tail_tokens = run;
    }
  }
  return result;
}

int BlockIndex::root(const Digest& salt) {
  const auto [it, is_new] = roots_.try_emplace(salt, none);
  if (is_new) {
    if (free_roots_.empty()) {
      it->second = static_cast<int>(nodes_.size());
      nodes_.emplace_back();
    } else {
      it->second = free_roots_.back();
      free_roots_.pop_back();
    }
    nodes_[at(it->second)].hash = root_hash(salt);
  }
  return it->second;
}

void BlockIndex::insert(int block, int parent) {
  assert(!contains(block));
  assert(is_root(parent) || nodes_[at(parent)].sealed);
  Node& node = nodes_[at(block)];
  Node& above = nodes_[at(parent)];
  node.parent = parent;
  node.next = above.first_child;
  if (node.next != none) nodes_[at(node.next)].previous = block;
  above.first_child = block;
}

void BlockIndex::append(int block, std::span<const std::int32_t> added) {
  Node& node = nodes_[at(block)];
  assert(contains(block) && node.size + static_cast<int>(added.size()) <= block_tokens_);
  std::ranges::copy(added, tokens_.begin() + block * std::ptrdiff_t{block_tokens_} + node.size);
  node.size += static_cast<int>(added.size());
}

int BlockIndex::twin(int block) const {
  const int parent = nodes_[at(block)].parent;
  return find(hash_(nodes_[at(parent)].hash, tokens(block)), parent, tokens(block));
}

void BlockIndex::seal(int block) {
  Node& node = nodes_[at(block)];
  assert(node.size == block_tokens_ && !node.sealed);
  node.hash = hash_(nodes_[at(node.parent)].hash, tokens(block));
  node.sealed = true;
  by_hash_.emplace(node.hash, block);
}

int BlockIndex::longer_sibling(int block) const {
  for (int other = first_child(parent(block)); other != none; other = next_sibling(other)) {
    if (other != block && begins_with(other, block)) return other;
  }
  return none;
}

void BlockIndex::remove(int block) {
  Node& node = nodes_[at(block)];
  assert(contains(block) && node.first_child == none);
  if (node.sealed) {
    const auto [first, last] = by_hash_.equal_range(node.hash);
    const auto it = std::find_if(first, last, [&](const auto& e) { return e.second == block; });
    assert(it != last);
    by_hash_.erase(it);
  }
  Node& above = nodes_[at(node.parent)];
  if (node.next != none) nodes_[at(node.next)].previous = node.previous;
  if (node.previous != none) {
    nodes_[at(node.previous)].next = node.next;
  } else {
    above.first_child = node.next;
  }
  if (is_root(node.parent) && above.first_child == none) {
    const int root = node.parent;
    std::erase_if(roots_, [&](const auto& entry) { return entry.second == root; });
    free_roots_.push_back(root);
  }
  node = Node{};
}

void BlockIndex::check_integrity() const {
  std::size_t sealed = 0;
  for (int block = 0; block < blocks_; ++block) {
    const Node& node = nodes_[at(block)];
    if (node.parent == none) {
      require(node.first_child == none && node.size == 0, "a block outside the tree has content",
              block);
      continue;
    }
    require(node.size >= 0 && node.size <= block_tokens_, "wrong number of tokens", block);
    require(node.sealed || node.first_child == none, "a block that is not full has children",
            block);
    if (!is_root(node.parent)) {
      const Node& above = nodes_[at(node.parent)];
      require(above.parent != none && above.sealed, "the parent is not a full block", block);
    }
    if (!node.sealed) continue;
    ++sealed;
    require(node.size == block_tokens_, "a sealed block is not full", block);
    require(node.hash == hash_(nodes_[at(node.parent)].hash, tokens(block)), "wrong chain hash",
            block);
    require(find(node.hash, node.parent, tokens(block)) == block,
            "not found under its hash, or has a twin", block);
  }
  require(sealed == by_hash_.size(), "the hash table has stale entries", none);
  std::size_t linked = 0, contained = 0;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    if (!is_root(node) && contains(node)) ++contained;
    int previous = none;
    for (int child = first_child(node); child != none; child = next_sibling(child)) {
      require(nodes_[at(child)].parent == node && nodes_[at(child)].previous == previous,
              "broken sibling links", child);
      previous = child;
      ++linked;
      require(linked <= at(blocks_), "the tree has a cycle", child);
    }
  }
  require(linked == contained, "a block is not among its parent's children", none);
  for (const auto& [salt, root] : roots_) {
    require(first_child(root) != none, "a root has no children", root);
    require(nodes_[at(root)].hash == root_hash(salt), "a root has the wrong hash", root);
  }
}

}  // namespace incipit::gateway
