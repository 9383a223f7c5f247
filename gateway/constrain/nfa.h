// A nondeterministic automaton over bytes, grown from its start to its ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace incipit::constrain {

// More states than the limit: whoever knows what was being built says so to the outside.
struct TooManyStates {};

class Nfa {
 public:
  using Node = std::uint32_t;
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  struct Edge {
    unsigned char low, high;  // inclusive
    Node to;
    std::uint32_t next;  // of the same node
  };

  struct Skip {
    Node to;
    std::uint32_t next;
  };

  // Throws TooManyStates from any function that would add a node beyond the limit.
  explicit Nfa(std::size_t most_nodes) : most_nodes_(most_nodes) {}

  Node add();
  void edge(Node from, unsigned char low, unsigned char high, Node to);
  // A way without a byte.
  void skip(Node from, Node to);
  // Returns the node behind the text.
  Node literal(Node from, std::string_view text);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  [[nodiscard]] std::uint32_t first_edge(Node node) const { return nodes_[node].first_edge; }

  [[nodiscard]] std::uint32_t first_skip(Node node) const { return nodes_[node].first_skip; }

  [[nodiscard]] const Edge& edge_at(std::uint32_t index) const { return edges_[index]; }

  [[nodiscard]] const Skip& skip_at(std::uint32_t index) const { return skips_[index]; }

 private:
  struct Heads {
    std::uint32_t first_edge = none, first_skip = none;
  };

  std::size_t most_nodes_;
  std::vector<Heads> nodes_;
  std::vector<Edge> edges_;
  std::vector<Skip> skips_;
};

}  // namespace incipit::constrain
