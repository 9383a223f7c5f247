// The tokens of a vocabulary by their bytes, laid out so that one scan visits all that fit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::constrain {

using TokenId = std::int32_t;

// Immutable after construction; any thread.
class TokenTrie {
 public:
  using Node = std::uint32_t;
  static constexpr std::uint32_t stop = 0xFFFFFFFF;  // of `visit_below`: no way on from here

  // Empty strings are left out. Tokens of the same bytes share a node.
  explicit TokenTrie(std::span<const std::string> tokens);

  [[nodiscard]] static constexpr Node root() { return 0; }

  [[nodiscard]] bool has_children(Node node) const { return nodes_[node].end > node + 1; }

  // `stop` when there is none.
  [[nodiscard]] Node child(Node node, unsigned char byte) const;

  [[nodiscard]] std::span<const TokenId> tokens_at(Node node) const {
    const auto first = nodes_[node].first_token;
    const auto last = node + 1 < nodes_.size() ? nodes_[node + 1].first_token : ids_.size();
    return {ids_.data() + first, last - first};
  }

  // Runs an automaton over everything below `from`, at which it is in `state`: `step(state, byte)`
  // gives the next state or `stop`, `visit(node, state)` is called at each node that is reached.
  template <class Step, class Visit>
  void visit_below(Node from, std::uint32_t state, Step&& step, Visit&& visit) const {
    std::vector<std::uint32_t> states(max_depth_ + 1);  // by depth
    states[nodes_[from].depth] = state;
    const Node end = nodes_[from].end;
    for (Node node = from + 1; node < end;) {
      const Entry& entry = nodes_[node];
      const std::uint32_t next = step(states[entry.depth - 1], entry.byte);
      if (next == stop) {
        node = entry.end;
        continue;
      }
      states[entry.depth] = next;
      visit(node, next);
      ++node;
    }
  }

 private:
  struct Entry {
    std::uint32_t end;          // behind the last node below this one
    std::uint32_t first_token;  // in ids_; the next node's is the end
    std::uint16_t depth;
    unsigned char byte;
  };

  std::vector<Entry> nodes_;  // parents before children, children by byte
  std::vector<TokenId> ids_;  // in the order of the nodes
  std::array<Node, 256> first_level_{};
  std::size_t max_depth_ = 0;
};

}  // namespace incipit::constrain
