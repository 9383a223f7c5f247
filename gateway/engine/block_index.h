// Which tokens each resident KV block holds, and the tree they form: a block's parent holds the
// tokens before it. Hash finds, tokens decide: a block is found by the 128-bit chain hash of its
// prefix, and accepted only if its tokens are equal and its parent is the very block we came from,
// so a colliding hash costs time and never shares wrong KV.
//
// A parent is named by its slot. That is sound because a block leaves the tree only as a leaf
// (`remove` refuses anything else), so a slot is never reused under a living child.
//
// One thread. Unknown slots and broken preconditions are programming errors (assert).
#pragma once

#include "gateway/model/model.h"

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace incipit::gateway {

struct BlockHash {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

// The hash of a prefix from that of its parent and the tokens of its last block.
using ChainHash = BlockHash (*)(const BlockHash& parent, std::span<const std::int32_t> tokens);
[[nodiscard]] BlockHash xxh3_chain(const BlockHash& parent, std::span<const std::int32_t> tokens);

class BlockIndex {
 public:
  static constexpr int none = -1;

  // `model` goes into every root; `hash` is a parameter so that tests can make it collide.
  BlockIndex(int blocks, int block_tokens, const Digest& model, ChainHash hash);

  // The longest run of resident KV for a prompt.
  struct Match {
    std::vector<std::int32_t> full;  // whole blocks from the start, to be shared
    int tail = none;  // a block whose first `tail_tokens` tokens come next, to be copied
    int tail_tokens = 0;
  };

  [[nodiscard]] Match match(const Digest& salt, std::span<const std::int32_t> wanted) const;

  // The node above a salt's first blocks; made when missing, gone with its last child.
  [[nodiscard]] int root(const Digest& salt);

  // Puts an empty block under a root or a full block.
  void insert(int block, int parent);
  // Adds tokens to a block that is not yet full.
  void append(int block, std::span<const std::int32_t> added);
  // Makes a filled block findable by hash. Not allowed if `twin` finds one.
  void seal(int block);
  // A sealed block with the same parent and the same tokens as a filled one, or none.
  [[nodiscard]] int twin(int block) const;
  // A sibling that begins with all tokens of this block, or none.
  [[nodiscard]] int longer_sibling(int block) const;
  // Takes out a block without children.
  void remove(int block);

  [[nodiscard]] bool contains(int block) const { return nodes_[at(block)].parent != none; }

  [[nodiscard]] int parent(int block) const { return nodes_[at(block)].parent; }

  [[nodiscard]] bool is_root(int node) const { return node >= blocks_; }

  [[nodiscard]] int size(int block) const { return nodes_[at(block)].size; }

  [[nodiscard]] int first_child(int node) const { return nodes_[at(node)].first_child; }

  [[nodiscard]] int next_sibling(int block) const { return nodes_[at(block)].next; }

  [[nodiscard]] std::span<const std::int32_t> tokens(int block) const;
  // Whether the first `size(block)` tokens of `other` are those of `block`.
  [[nodiscard]] bool begins_with(int other, int block) const;

  // Throws std::logic_error that says what is inconsistent. For tests.
  void check_integrity() const;

 private:
  struct Node {
    int parent = none;
    int first_child = none, next = none, previous = none;
    int size = 0;
    bool sealed = false;
    BlockHash hash;
  };

  struct HashOfHash {
    std::size_t operator()(const BlockHash& hash) const noexcept { return hash.low; }
  };

  [[nodiscard]] static std::size_t at(int node) { return static_cast<std::size_t>(node); }

  [[nodiscard]] int find(const BlockHash& hash, int parent,
                         std::span<const std::int32_t> wanted) const;
  [[nodiscard]] BlockHash root_hash(const Digest& salt) const;

  int blocks_;
  int block_tokens_;
  BlockHash model_;
  ChainHash hash_;
  std::vector<Node> nodes_;  // one per block, then the roots
  std::vector<std::int32_t> tokens_;
  std::vector<int> free_roots_;
  std::map<Digest, int> roots_;
  std::unordered_multimap<BlockHash, int, HashOfHash> by_hash_;
};

}  // namespace incipit::gateway
